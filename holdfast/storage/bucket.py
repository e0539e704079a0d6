"""A content-addressed store of blobs in a bucket of an object store.

What it sends goes through a few threads of its own, one request a time each: nothing waits on the
event loop, and no burst opens more connections than that. Blobs stand under the names that they
have in a folder, so that a folder's store can be copied into a bucket as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from holdfast.contracts.errors import BlobLost
from holdfast.errors import MissingKey, Undecipherable
from holdfast.storage.directory import Hashed
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.objects import THREADS, Missing, Objects
from holdfast.storage.store import StoreAway

KEPT_BYTES = 32 * 2**20
"""Of what was last written or read, in memory: a worker reads most of what it has just written."""
FRESH_SECONDS = 3_600.0
"""For so long after it was put a blob is not put again. Later it is, so that it counts as young to
the rule by which the bucket lets things expire.
"""
PROBE = "probe/doctor"
NEVER = float("-inf")
_DIGEST = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class _Recent:
    """What was last written or read, up to so many bytes; the oldest goes first."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._kept: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, name: str, content: bytes, *, written: bool) -> None:
        """Keep content, which was written or read just now."""
        if len(content) > self._most // 4:
            return
        with self._lock:
            before, _ = self._kept.pop(name, (b"", NEVER))
            self._kept[name] = content, time.monotonic() if written else NEVER
            self._bytes += len(content) - len(before)
            while self._bytes > self._most:
                self._bytes -= len(self._kept.popitem(last=False)[1][0])

    def find(self, name: str) -> bytes | None:
        """Return what was kept."""
        with self._lock:
            return self._kept.get(name, (None, NEVER))[0]

    def is_fresh(self, name: str) -> bool:
        """True if this was written within `FRESH_SECONDS`."""
        with self._lock:
            return time.monotonic() - self._kept.get(name, (b"", NEVER))[1] < FRESH_SECONDS


class BucketStore:
    """Keeps blobs as objects named by their SHA-256, and other things under names of their own.
    With keys, these are encrypted, and blobs have names that only who has the keys can tell.
    """

    def __init__(self, objects: Objects, keys: Keyring | None = None) -> None:
        self._objects = objects
        self._keys = keys or keyring("")
        self._threads = ThreadPoolExecutor(THREADS, "store")
        self._recent = _Recent(KEPT_BYTES)

    @property
    def url(self) -> str:
        """The store's address."""
        return self._objects.url

    @property
    def scheme(self) -> str:
        """What its address begins with: whose bucket it is."""
        return self._objects.scheme

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self._objects.bucket

    async def put(self, content: bytes) -> str:
        """Store content and return its SHA-256 in hex. StoreAway."""
        return await self._run(self._put, content)

    async def put_file(self, source: BinaryIO) -> tuple[str, int]:
        """Store what a file has from where it stands on, piece by piece, and return its SHA-256 in
        hex and its bytes. StoreAway.
        """
        return await self._run(self._put_file, source)

    async def get(self, digest: str) -> bytes:
        """Return a blob. BlobLost if it is missing or damaged; StoreAway."""
        return await self._run(self._get, digest)

    async def fetch(self, name: str) -> bytes:
        """Return what `save` has written. BlobLost if it is missing or damaged; StoreAway."""
        return await self._run(self._fetch, name)

    @asynccontextmanager
    async def file(self, digest: str) -> AsyncIterator[Path]:
        """Yield a copy of a blob, for reading; it is removed afterwards. BlobLost if it is missing
        or damaged; StoreAway.
        """
        with tempfile.NamedTemporaryFile(prefix="holdfast-blob-") as copy:
            await self._run(self._copy, digest, copy)
            yield Path(copy.name)

    async def write(self, name: str, content: bytes) -> None:
        """Keep content under a name of its own. StoreAway."""
        await self._run(self._objects.write, name, self._keys.sealed(content))

    async def save(self, name: str, content: bytes) -> None:
        """Write an object whose name ends in its SHA-256, as it is. StoreAway."""
        await self._run(self._save, name, content)

    async def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; None if there is nothing. StoreAway."""
        try:
            return self._keys.opened(await self._run(self._objects.read, name))
        except Missing:
            return None

    def check(self, *, write: bool) -> None:
        """Write something and read it, and look for what is not there. Blocking. StoreAway says
        what of it does not work.
        """
        try:
            if write:
                self._objects.write(PROBE, PROBE.encode())
                self._objects.read(PROBE)
        except Missing:
            raise StoreAway(self.url, "what was written is not there", passing=False) from None
        try:
            self._objects.read(f"{PROBE}-{secrets.token_hex(8)}")
        except Missing:
            return
        except StoreAway as away:
            why = f"what is not there cannot be told from what is forbidden ({away.why})"
            raise StoreAway(self.url, why, passing=away.passing) from None

    async def _run(self, do: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(do, *arguments))

    def _save(self, name: str, content: bytes) -> None:
        if not self._recent.is_fresh(name):
            self._objects.write(name, content)
            self._recent.keep(name, content, written=True)

    def _fetch(self, name: str) -> bytes:
        digest = name.rpartition("/")[2]
        try:
            return self._content(name, digest, lambda read: read)
        except Missing:
            raise self._lost(digest, "it is not there") from None

    def _get(self, digest: str) -> bytes:
        for name in self._names(digest):
            with suppress(Missing):
                return self._content(name, digest, self._keys.opened)
        raise self._lost(digest, "it is not there")

    def _content(self, name: str, digest: str, open: Callable[[bytes], bytes]) -> bytes:
        """Return an object's content, which has this SHA-256. Missing; BlobLost if it is damaged;
        MissingKey.
        """
        content = self._recent.find(name)
        if content is not None:
            return content
        read = self._objects.read(name)
        try:
            content = open(read)
        except MissingKey:
            raise
        except Undecipherable:
            content = b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._lost(digest, f"it is damaged ({len(read)} bytes)")
        self._recent.keep(name, content, written=False)
        return content

    def _put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        name = _name_of(self._keys.name(digest))
        if not self._recent.is_fresh(name):
            self._objects.write(name, self._keys.sealed(content))
            self._recent.keep(name, content, written=True)
        return digest

    def _put_file(self, source: BinaryIO) -> tuple[str, int]:
        # Its name is known only once it has been read, and then it may have changed.
        told = Hashed(source)
        with tempfile.TemporaryFile(prefix="holdfast-blob-") as copy:
            copy.writelines(self._keys.seal(told.pieces()))
            copy.seek(0)
            self._objects.write_file(_name_of(self._keys.name(told.digest)), copy)
        return told.digest, told.size

    def _copy(self, digest: str, target: BinaryIO) -> None:
        for name in self._names(digest):
            with tempfile.TemporaryFile(prefix="holdfast-blob-") as copy:
                try:
                    self._objects.read_file(name, copy)
                except Missing:
                    continue
                copy.seek(0)
                self._decrypt(digest, copy, target)
                return
        raise self._lost(digest, "it is not there")

    def _decrypt(self, digest: str, source: BinaryIO, target: BinaryIO) -> None:
        hashed = hashlib.sha256()
        try:
            for piece in self._keys.open(source):
                hashed.update(piece)
                target.write(piece)
        except MissingKey:
            raise
        except Undecipherable:
            raise self._lost(digest, "it is damaged") from None
        target.flush()
        if hashed.hexdigest() != digest:
            raise self._lost(digest, "it is damaged")

    def _names(self, digest: str) -> list[str]:
        """Return the names under which a blob may be."""
        if not _DIGEST.fullmatch(digest):
            raise self._lost(digest[:80], "that is no digest")
        return [_name_of(each) for each in self._keys.names(digest)]

    def _lost(self, digest: str, why: str) -> BlobLost:
        return BlobLost(
            f"blob {digest} of the store {self.url} is lost: {why}; put it back from a version or a"
            " copy of the bucket, or give all workers and starters the STORE_URL that has it"
        )


def _name_of(digest: str) -> str:
    return f"{digest[:2]}/{digest}"
