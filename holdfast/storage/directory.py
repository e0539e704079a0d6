"""A content-addressed store of blobs: what is big is kept once, under the hash of its content."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.contracts.errors import BlobLost
from holdfast.storage.files import drafted, to_disk, write_whole

PIECE_BYTES = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Blob:
    """A file of the store: a blob, or (with an empty `digest`) what a killed process left
    unfinished.
    """

    path: Path
    digest: str
    size: int
    used: float
    """When it was last put or asked to be kept, in seconds since the epoch."""


class DirectoryStore:
    """Keeps blobs as private files named by their SHA-256; equal content is kept once.

    Content is compared with its name whenever it is read, and a `put` of the same content repairs
    what is missing or damaged. The modification time tells when a blob was last put, so that a
    clean-up spares what a starting run relies on.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        """The store's address."""
        return self.root.as_uri()

    async def put(self, content: bytes) -> str:
        """Store content and return its SHA-256 in hex. A crash half-way leaves no such name."""
        try:
            return await asyncio.to_thread(self._write, content)
        except OSError as error:
            # A handle that cannot be written says what is wrong, and not where.
            error.filename = error.filename or str(self.root)
            raise

    async def put_file(self, source: BinaryIO) -> tuple[str, int]:
        """Store what a file has from where it stands on, piece by piece, and return its SHA-256 in
        hex and its bytes. A crash half-way leaves no such name.
        """
        return await asyncio.to_thread(self._copy, source)

    @asynccontextmanager
    async def file(self, digest: str) -> AsyncIterator[Path]:
        """Yield the file of a blob, for reading, its content compared with its name. BlobLost if it
        is missing or damaged.
        """
        yield await asyncio.to_thread(self._check, digest)

    async def get(self, digest: str) -> bytes:
        """Return a blob. BlobLost if it is missing or damaged."""
        return await asyncio.to_thread(self._read, digest)

    async def write(self, name: str, content: bytes) -> None:
        """Keep content under a name of its own, whole and on the disk."""
        await asyncio.to_thread(self._write_named, self.root / name, content)

    async def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing."""
        with suppress(FileNotFoundError):
            return await asyncio.to_thread((self.root / name).read_bytes)
        return None

    def files(self) -> Iterator[Blob]:
        """Yield every file of the store. Blocking; skips what vanishes meanwhile."""
        for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(OSError):
                status = path.stat()
                digest = path.name if _DIGEST.fullmatch(path.name) else ""
                yield Blob(path, digest, status.st_size, status.st_mtime)

    def damaged(self, seconds: float) -> tuple[str, ...]:
        """Return the digests of damaged blobs found within `seconds`, the newest first.
        Blocking.
        """
        until = time.monotonic() + seconds
        found = []
        for blob in sorted(self.files(), key=lambda each: -each.used):
            if time.monotonic() > until:
                break
            with suppress(FileNotFoundError):
                if blob.digest and _digest_of(blob.path) != blob.digest:
                    found.append(blob.digest)
        return tuple(found)

    def keep(self, digest: str) -> None:
        """Mark a blob as needed today; does nothing if it is missing. Blocking."""
        # The file of another user of a shared store cannot be marked; that user's worker does it.
        with suppress(OSError):
            os.utime(self._path(digest))

    def remove(self, path: Path, used: float) -> bool:
        """Remove a file unless it was put or kept after `used`; True if it was removed.
        Blocking.
        """
        # What cannot be removed, such as a folder where a blob should be, stays.
        with self._locked(fcntl.LOCK_EX), suppress(OSError):
            if path.stat().st_mtime <= used:
                path.unlink()
                return True
        return False

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise self._lost(digest[:80], "that is no digest")
        return self.root / digest[:2] / digest

    def _read(self, digest: str) -> bytes:
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            there = self.root.is_dir()
            what = "its file" if there else "the whole store"
            raise self._lost(digest, f"{what} is missing") from None
        except OSError as error:
            raise self._lost(digest, f"its file cannot be read ({error.strerror})") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._lost(digest, f"its file is damaged ({len(content)} bytes)")
        return content

    def _check(self, digest: str) -> Path:
        path = self._path(digest)
        try:
            found = _digest_of(path)
        except FileNotFoundError:
            raise self._lost(digest, "its file is missing") from None
        if found != digest:
            raise self._lost(digest, "its file is damaged or cannot be read")
        return path

    def _copy(self, source: BinaryIO) -> tuple[str, int]:
        # Its place is known only once it has been read; clean-ups look for drafts where blobs are.
        beside = self.root / "00" / "copied"
        self._create(beside.parent)
        hashed, size = hashlib.sha256(), 0
        with drafted(beside, b"", sync=False) as draft:
            with draft.open("ab") as file:
                while piece := source.read(PIECE_BYTES):
                    hashed.update(piece)
                    size += len(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            path = self._path(hashed.hexdigest())
            self._create(path.parent)
            with self._locked(fcntl.LOCK_SH):
                draft.replace(path)
        to_disk(path.parent)
        return path.name, size

    def _lost(self, digest: str, why: str) -> BlobLost:
        return BlobLost(
            f"blob {digest} of the store {self.url} is lost: {why};"
            " put it back from a backup, or give all workers and starters the STORE_URL that has it"
        )

    def _write(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        self._create(path.parent)
        with self._locked(fcntl.LOCK_SH):
            if _holds(path, content):
                os.utime(path)
                return digest
        with drafted(path, content) as draft, self._locked(fcntl.LOCK_SH):
            draft.replace(path)
        to_disk(path.parent)
        return digest

    def _write_named(self, path: Path, content: bytes) -> None:
        self._create(path.parent)
        write_whole(path, content)
        to_disk(path.parent)

    def _create(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            to_disk(self.root)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """Hold the lock: shared to rely on a blob, exclusive to remove one, so that nothing is
        removed that somebody was just told is there.
        """
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


def _digest_of(path: Path) -> str:
    """Return the SHA-256 of a blob's content; empty if it cannot be read. FileNotFoundError if it
    is gone.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


def _holds(path: Path, content: bytes) -> bool:
    """True if a file has exactly this content."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False
