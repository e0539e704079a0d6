"""The roles and playbooks that ship, read once for all tests of a process."""

from __future__ import annotations

import functools
from dataclasses import replace

from holdfast.activities.catalogue.catalogue import Catalogue

_read = functools.cache(Catalogue.load)


def shipped_catalogue() -> Catalogue:
    """Return what ships; a test may put other roles and playbooks into its own."""
    shipped = _read()
    return replace(shipped, roles=dict(shipped.roles), playbooks=dict(shipped.playbooks))
