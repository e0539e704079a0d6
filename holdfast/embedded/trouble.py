"""What is in the way of the embedded server, for a person."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import EmbeddedError


class StateGone(EmbeddedError):
    """The state directory was deleted while its processes ran; they end."""


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn errors of the file system below the state directory into one EmbeddedError."""
    try:
        yield
    except OSError as error:
        remedy = "set HOLDFAST_STATE_DIR to a folder of yours"
        what = "the state directory cannot be used"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what, remedy = "no space left for the state directory", "free some space, or " + remedy
        if error.errno == errno.ELOOP:
            what, remedy = (
                "a link stands in the state directory",
                "look who put it there, remove it",
            )
        reason = f" ({error.strerror})" if error.strerror else ""
        raise EmbeddedError(what, f"{error.filename or place}{reason}", remedy) from error
