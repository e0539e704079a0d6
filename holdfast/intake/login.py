"""Who starts or steers a run."""

from __future__ import annotations

import getpass


def login() -> str:
    """Return the user's login name for the record; empty if the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
