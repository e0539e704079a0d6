"""Private files that are there whole or not at all, whatever happens to whoever writes them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def create(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Create a new private file, whole and on the disk, or leave none behind.

    OSError says why it could not; FileExistsError that somebody was faster. Without `sync` it
    survives its process, but not a power failure.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def drafted(path: Path, content: bytes, *, sync: bool = True) -> Iterator[Path]:
    """Yield a private file beside `path`, on the disk, for the block to move into place; removed
    afterwards. A killed process leaves it with a name that ends in `.draft`.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.draft")
    create(draft, content, sync=sync)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a private file, replacing an earlier one in one step. OSError says why it could not."""
    with drafted(path, content, sync=sync) as draft:
        draft.replace(path)


def to_disk(path: Path | str) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
