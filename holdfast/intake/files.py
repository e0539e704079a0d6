"""Files that a person names on the command line: read whole, within a bound, never waited for."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import Refused
from holdfast.untrusted.folders import Unreadable, read_named

TEXT_BYTES = 4 * 1024 * 1024


def read_text(path: Path, what: str, limit: int = TEXT_BYTES) -> str:
    """Return the text of a regular file. Refused begins with `what` and says why it is not read."""
    try:
        return read_named(path, limit)
    except Unreadable as error:
        raise Refused(f"{what}: {error}") from error
