"""Files that only their owner may read, write or have put there: no link is followed, and nothing
of another user's is taken for ours.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.errors import EmbeddedError
from holdfast.storage.files import create
from holdfast.untrusted.folders import read_regular

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_REMEDY = "set HOLDFAST_STATE_DIR to a folder of yours"


def make_folder(path: Path) -> None:
    """Make a folder that only this user can use. EmbeddedError if it is another user's or others
    can write to it; OSError if it cannot be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise EmbeddedError("the state directory holds a link or a file", path, "remove it")
    if found.st_uid != os.geteuid():
        raise EmbeddedError(
            "the state directory belongs to another user", f"{path} (uid {found.st_uid})", _REMEDY
        )
    if found.st_mode & _OTHERS_WRITE and any(path.iterdir()):
        raise EmbeddedError(
            "others can write into the state directory",
            f"{path} (mode {stat.S_IMODE(found.st_mode):o})",
            f"look through what is in it and `chmod 700` it, or {_REMEDY}",
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)


def open_file(path: Path, flags: int = os.O_RDWR) -> int:
    """Open a private file, creating it if it is missing. OSError for a link, EmbeddedError for
    another user's file.
    """
    handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(handle)
        raise EmbeddedError("the state directory holds what is not ours", path, "remove it")
    return handle


def write(path: Path, content: str) -> None:
    """Replace a file in one step, so that readers need no lock. One writer at a time."""
    fresh = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    create(fresh, content.encode())
    fresh.replace(path)


def touch(path: Path) -> None:
    """Create an empty file, or set its modification time to now."""
    handle = open_file(path)
    try:
        os.utime(handle)
    finally:
        os.close(handle)


def read(path: Path, limit: int) -> bytes:
    """Return the content of a small file. OSError if it is missing, a link, or larger than `limit`
    bytes.
    """
    return read_regular(path, limit)
