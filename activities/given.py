"""Read the file that a goal names, once, when its run is prepared."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.activities.repositories.documents import (
    DOCUMENT_BYTES,
    NotReadable,
    is_blank,
    reader_of,
)
from holdfast.contracts import GoalInput
from holdfast.contracts.errors import BadGoal
from holdfast.untrusted.folders import NotRegular, TooLarge, read_handle
from holdfast.untrusted.roots import Outside, Roots, open_file


def read_given(given: GoalInput, roots: Roots) -> tuple[bytes, str]:
    """Return the bytes of a file, and the tool that reads them; empty: they are text. Raise BadGoal
    saying why it cannot be used.
    """
    with _refusing(given):
        content = read_handle(open_file(Path(given.value), roots), DOCUMENT_BYTES)
        reader = reader_of(content)
    if is_blank(content):
        what = f"input {given.name!r}: {given.value!r:.300}"
        raise BadGoal(f"{what}: there is nothing in it; give a file that says something")
    return content, reader


def open_given(given: GoalInput, roots: Roots) -> BinaryIO:
    """Open a file. Raise BadGoal saying why it cannot be used."""
    with _refusing(given):
        return os.fdopen(open_file(Path(given.value), roots), "rb")


@contextmanager
def _refusing(given: GoalInput) -> Iterator[None]:
    """Raise BadGoal for what the system says against reading a file."""
    what = f"input {given.name!r}: {given.value!r:.300}"
    try:
        yield
    except Outside as error:
        raise BadGoal(f"{what} {error}") from None
    except NotRegular as error:
        raise BadGoal(f"{what}: {error.strerror}; name a regular file") from None
    except TooLarge:
        raise BadGoal(f"input {given.name!r} is larger than {DOCUMENT_BYTES} bytes") from None
    except NotReadable as error:
        raise BadGoal(f"{what}: {error}") from None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # ValueError: a NUL in it.
        raise BadGoal(f"input {given.name!r}: no such path: {given.value!r:.300}") from None
    except OSError as error:
        raise BadGoal(f"{what}: cannot be read: {error.strerror}") from None
