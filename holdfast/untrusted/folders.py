"""Files of folders that are not trusted, opened step by step from a handle: no link is followed on
the way, no FIFO is waited on, no device is opened.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
CHUNK = 1024 * 1024


class NotRegular(OSError):
    """This name is not a regular file but a link, folder, FIFO, socket or device."""


class TooLarge(OSError):
    """The file is larger than its reader takes."""


class Unreadable(ValueError):
    """A file that a person named cannot be read. The message names it and says why."""


class Folder:
    """An open folder. `path` is where it was found, for messages and names."""

    def __init__(self, handle: int, path: Path) -> None:
        self.handle = handle
        self.path = path

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open the folder at a path. OSError if it is none, or a link."""
        return cls(os.open(path, FOLDER), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle."""
        os.close(self.handle)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: they survive renaming, and differ when another folder takes the
        name.
        """
        found = os.fstat(self.handle)
        return found.st_dev, found.st_ino

    @property
    def owner(self) -> int:
        """The user id of the folder's owner."""
        return os.fstat(self.handle).st_uid

    @property
    def reached(self) -> str:
        """A path to this very folder while it is open, whatever its name leads to meanwhile; its
        name where the system has no such path.
        """
        held = f"/proc/{os.getpid()}/fd/{self.handle}"
        return held if sys.platform == "linux" and os.path.exists(held) else str(self.path)

    def enter(self, *names: str) -> Folder:
        """Open a folder below. OSError if one of the names is none, or a link."""
        handle = os.dup(self.handle)
        for name in names:
            try:
                below = os.open(name, FOLDER, dir_fd=handle)
            finally:
                os.close(handle)
            handle = below
        return Folder(handle, self.path.joinpath(*names))

    def read(self, *names: str, limit: int) -> bytes | None:
        """Return the bytes of a regular file below, of at most `limit` bytes; None for anything
        else.
        """
        with suppress(OSError, ValueError), self.enter(*names[:-1]) as folder:
            return read_regular(names[-1], limit, folder.handle)
        return None

    def kind(self, name: str) -> int:
        """Return the type of the entry with this name, as `stat.S_IFMT` gives it; 0 if there is
        none.
        """
        with suppress(OSError, ValueError):
            found = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
            return stat.S_IFMT(found.st_mode)
        return 0

    def modified(self, name: str) -> int:
        """Return when the entry of this name was written, in ns since 1970; 0: there is none."""
        with suppress(OSError, ValueError):
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_mtime_ns
        return 0

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield an iterator over its entries, in no order."""
        with os.scandir(self.handle) as found:
            yield found


def open_regular(path: str | Path, folder: int | None = None) -> int:
    """Open a regular file for reading. NotRegular before anything else is opened: opening a device
    can have effects.
    """
    found = os.stat(path, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(0, "not a regular file", str(path))
    handle = os.open(path, READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegular(0, "not a regular file", str(path))
    return handle


def resolve_path(path: Path) -> Path:
    """Return where a path leads, without links. OSError where nothing is, ELOOP for a link that
    leads to itself: `resolve` raises RuntimeError for it before Python 3.13.
    """
    try:
        return path.resolve(strict=True)
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def read_regular(path: str | Path, limit: int, folder: int | None = None) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes. OSError says why not."""
    return read_handle(open_regular(path, folder), limit, path)


def read_named(path: Path, limit: int) -> str:
    """Return the text of a regular file that a person named. Unreadable says why not."""
    content = read_named_bytes(path, limit)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{str(path)!r} is no UTF-8 text; convert it first") from error


def read_named_bytes(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file that a person named. Unreadable says why not."""
    shown = repr(str(path))
    try:
        # A link that a person names is meant.
        return read_regular(resolve_path(path.expanduser()), limit)
    except FileNotFoundError as error:
        raise Unreadable(f"there is no file {shown}") from error
    except NotRegular as error:
        raise Unreadable(f"{shown} is no file to read: {error.strerror}") from error
    except TooLarge as error:
        raise Unreadable(f"{shown} is {error.strerror}; give a smaller one") from error
    except OSError as error:
        raise Unreadable(f"{shown} cannot be read: {error.strerror}") from error
    except (ValueError, RuntimeError) as error:
        # A NUL in the name, or a user there is not.
        raise Unreadable(f"{shown} names no file") from error


def read_handle(handle: int, limit: int, path: str | Path = "") -> bytes:
    """Return the bytes behind a handle and close it. TooLarge above `limit` bytes; OSError for a
    kernel file that keeps its readers waiting.
    """
    parts: list[bytes] = []
    left = limit + 1
    with os.fdopen(handle, "rb", buffering=0) as file:
        while left > 0:
            part = file.read(min(left, CHUNK))
            if part is None:
                raise NotRegular(0, "keeps its readers waiting", str(path))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    if left <= 0:
        raise TooLarge(0, f"larger than {_size(limit)}", str(path))
    return b"".join(parts)


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= CHUNK else f"{count >> 10} KiB"
