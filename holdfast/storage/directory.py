"""A content-addressed store of blobs: what is big is kept once, under the hash of its content."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.contracts.errors import BlobLost
from holdfast.errors import MissingKey, Undecipherable
from holdfast.storage.files import create, drafted, to_disk, write_whole
from holdfast.storage.keys import PIECE_BYTES, Keyring, keyring

LOOKED_AT_ONCE = 2**16
"""Bytes of a blob up to which a look whether it was just put takes less than a thread to begin."""
FRESH_SECONDS = 60.0
"""For so long after it was put a blob that is still as it was is not put again: runs that start
together put the same.
"""
MOST_KNOWN = 1_000
"""Blobs that were last put, and are known for that."""
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


class Hashed:
    """Reads a file piece by piece, and knows its SHA-256 and its bytes when it has been read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._hashed = hashlib.sha256()
        self.size = 0

    def pieces(self) -> Iterator[bytes]:
        """Yield what is left of the file."""
        while piece := self._source.read(PIECE_BYTES):
            self._hashed.update(piece)
            self.size += len(piece)
            yield piece

    @property
    def digest(self) -> str:
        return self._hashed.hexdigest()


class DirectoryStore:
    """Keeps blobs as private files named by their SHA-256; equal content is kept once.

    Content is compared with its name whenever it is read, and a `put` of the same content repairs
    what is missing or damaged. The modification time tells when a blob was last put, so that a
    clean-up spares what a starting run relies on. With keys, content is encrypted, and its name is
    one that only who has them can tell from it.
    """

    def __init__(self, root: Path, keys: Keyring | None = None) -> None:
        self.root = root
        self.keys = keys or keyring("")
        self._known: dict[Path, tuple[int, int]] = {}

    @property
    def url(self) -> str:
        """The store's address."""
        return self.root.as_uri()

    async def put(self, content: bytes) -> str:
        """Store content and return its SHA-256 in hex. A crash half-way leaves no such name."""
        if len(content) <= LOOKED_AT_ONCE:
            digest = hashlib.sha256(content).hexdigest()
            if self._is_fresh(self._path(digest)):
                return digest
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
        path = await asyncio.to_thread(self._check, digest)
        if path.name == digest:
            yield path
            return
        # What reads it is often another program, which wants a file.
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            plain = Path(folder) / digest
            await asyncio.to_thread(self._decrypt, path, plain)
            yield plain

    async def get(self, digest: str) -> bytes:
        """Return a blob. BlobLost if it is missing or damaged."""
        return await asyncio.to_thread(self._read, digest)

    async def write(self, name: str, content: bytes) -> None:
        """Keep content under a name of its own, whole and on the disk."""
        await asyncio.to_thread(self._write_named, self.root / name, self.keys.sealed(content))

    async def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing."""
        with suppress(FileNotFoundError):
            return self.keys.opened(await asyncio.to_thread((self.root / name).read_bytes))
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
                if blob.digest and not self._is_whole(blob):
                    found.append(blob.digest)
        return tuple(found)

    def keep(self, blob: Blob) -> None:
        """Mark a blob as needed today; does nothing if it is missing. Blocking."""
        # The file of another user of a shared store cannot be marked; that user's worker does it.
        with suppress(OSError):
            os.utime(blob.path)

    def pieces(self, blob: Blob) -> Iterator[bytes]:
        """Yield what a blob holds, in pieces. Blocking. Raise Undecipherable, and OSError if it
        cannot be read.
        """
        with blob.path.open("rb") as file:
            yield from self.keys.open(file)

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
        """Return where content with this SHA-256 is put."""
        if not _DIGEST.fullmatch(digest):
            raise self._lost(digest[:80], "that is no digest")
        return self._place(self.keys.name(digest))

    def _place(self, name: str) -> Path:
        return self.root / name[:2] / name

    def _found(self, digest: str) -> Path:
        """Return where content with this SHA-256 is: put with an older key, maybe, or with none."""
        path = self._path(digest)
        places = map(self._place, self.keys.names(digest))
        return next((each for each in places if os.path.lexists(each)), path)

    def _read(self, digest: str) -> bytes:
        path = self._found(digest)
        try:
            written = path.read_bytes()
            content = self.keys.opened(written)
        except FileNotFoundError:
            there = self.root.is_dir()
            what = "its file" if there else "the whole store"
            raise self._lost(digest, f"{what} is missing") from None
        except OSError as error:
            raise self._lost(digest, f"its file cannot be read ({error.strerror})") from None
        except MissingKey:
            raise
        except Undecipherable:
            raise self._lost(digest, f"its file is damaged ({len(written)} bytes)") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._lost(digest, f"its file is damaged ({len(written)} bytes)")
        return content

    def _check(self, digest: str) -> Path:
        path = self._found(digest)
        try:
            found = self._digest_of(path)
        except FileNotFoundError:
            raise self._lost(digest, "its file is missing") from None
        if found != digest:
            raise self._lost(digest, "its file is damaged or cannot be read")
        return path

    def _decrypt(self, path: Path, plain: Path) -> None:
        create(plain, b"", sync=False)
        with path.open("rb") as source, plain.open("ab") as file:
            file.writelines(self.keys.open(source))

    def _is_whole(self, blob: Blob) -> bool:
        """True for a blob whose name is that of its content, as far as can be told here.
        FileNotFoundError if it is gone.
        """
        try:
            return blob.digest in self.keys.names(self._digest_of(blob.path))
        except MissingKey:
            return True

    def _digest_of(self, path: Path) -> str:
        """Return the SHA-256 of what a blob holds; empty if it cannot be read. FileNotFoundError if
        it is gone, MissingKey if that is.
        """
        hashed = hashlib.sha256()
        try:
            with path.open("rb") as file:
                for piece in self.keys.open(file):
                    hashed.update(piece)
        except (FileNotFoundError, MissingKey):
            raise
        except (OSError, Undecipherable):
            return ""
        return hashed.hexdigest()

    def _copy(self, source: BinaryIO) -> tuple[str, int]:
        # Its place is known only once it has been read; clean-ups look for drafts where blobs are.
        beside = self.root / "00" / "copied"
        self._create(beside.parent)
        told = Hashed(source)
        with drafted(beside, b"", sync=False) as draft:
            with draft.open("ab") as file:
                file.writelines(self.keys.seal(told.pieces()))
                file.flush()
                os.fsync(file.fileno())
            path = self._path(told.digest)
            self._create(path.parent)
            with self._locked(fcntl.LOCK_SH):
                draft.replace(path)
        to_disk(path.parent)
        return told.digest, told.size

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
            if self._holds(path, content):
                os.utime(path)
                self._know(path)
                return digest
        with drafted(path, self.keys.sealed(content)) as draft, self._locked(fcntl.LOCK_SH):
            draft.replace(path)
        to_disk(path.parent)
        self._know(path)
        return digest

    def _know(self, path: Path) -> None:
        """Remember how a blob looks that was just put."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        # Somebody may have removed it again.
        with suppress(OSError):
            self._known[path] = _look_of(path)

    def _is_fresh(self, path: Path) -> bool:
        """True if this blob was put less than FRESH_SECONDS ago and nobody has changed it since."""
        known = self._known.get(path)
        if known is None or time.time_ns() - known[0] > FRESH_SECONDS * 1e9:
            return False
        with suppress(OSError):
            return _look_of(path) == known
        return False

    def _write_named(self, path: Path, content: bytes) -> None:
        self._create(path.parent)
        write_whole(path, content)
        to_disk(path.parent)

    def _holds(self, path: Path, content: bytes) -> bool:
        """True if a file has exactly this content."""
        try:
            return self.keys.opened(path.read_bytes()) == content
        except (OSError, Undecipherable):
            return False

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


def _look_of(path: Path) -> tuple[int, int]:
    """Return when a file was last written or kept, and its bytes."""
    status = path.lstat()
    return status.st_mtime_ns, status.st_size
