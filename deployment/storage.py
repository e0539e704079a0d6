"""Where big payloads and blobs live: a content-addressed store, and the SDK's external storage on
top of it.

Payloads above 16 KiB are stored once, by content hash, so that equal prompts share one blob and a
wide fan-out cannot pass the 4 MiB that one workflow task may carry. What belongs to a workflow
(Goal, Report, Update arguments) stays inline up to 256 KiB, readable in the Web UI. The only module
that imports this experimental API.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverSelectContext,
    StorageDriverStoreContext,
)

from orchestrator.errors import BlobLost

INLINE_BYTES = 16 * 1024
WORKFLOW_INLINE_BYTES = 256 * 1024
READABLE = "readable"
"""Metadata key of payloads that belong to a workflow; the SDK tells the driver only the workflow,
not the use.
"""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadStore(ValueError):
    """The store's address is of a kind that is not served."""


class PayloadLost(Exception):
    """A stored payload cannot be had: what the SDK is told instead of `BlobLost`.

    An `ApplicationError` that is raised while a workflow task is decoded would close the run, for
    good, or blame its code. This one fails the task, which is tried again: the run goes on when the
    blob is back. Around an activity's arguments, `temporal.py` turns it into `lost` again.
    """

    def __init__(self, lost: BlobLost) -> None:
        super().__init__(lost.message)
        self.lost = lost


@dataclass(frozen=True)
class Blob:
    """A file of the store: a blob, or (`digest` empty) what a killed process left half-written."""

    path: Path
    digest: str
    size: int
    used: float
    """When it was last put or asked to be kept, in seconds since the epoch."""


class DirectoryStore:
    """Blobs as private files named by their SHA-256; equal content is kept once.

    Nothing that is read is believed before its content was compared with its name, and a `put` of
    the same content heals what is missing or damaged. A blob's modification time says when it was
    last put, so that a clean-up can tell what a run that is just starting relies on.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def at(cls, url: str) -> DirectoryStore:
        """The store of a `file:///PATH` address."""
        parts = urlsplit(url)
        if parts.scheme != "file" or not parts.path.startswith("/") or parts.netloc:
            raise BadStore(f"STORE_URL {url!r}: not an address of the form file:///PATH")
        return cls(Path(unquote(parts.path)))

    async def put(self, content: bytes) -> str:
        """Store and return the SHA-256 in hex. After a crash half-way there is no such name."""
        try:
            return await asyncio.to_thread(self._write, content)
        except OSError as error:
            # A handle that cannot be written says what is wrong, and not where.
            error.filename = error.filename or str(self.root)
            raise

    async def get(self, digest: str) -> bytes:
        """The blob, as it was put. BlobLost if this store does not have it, or has it damaged."""
        return await asyncio.to_thread(self._read, digest)

    def files(self) -> Iterator[Blob]:
        """Every file of the store but what vanishes meanwhile or leads nowhere. Blocking."""
        for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(OSError):
                status = path.stat()
                digest = path.name if _DIGEST.fullmatch(path.name) else ""
                yield Blob(path, digest, status.st_size, status.st_mtime)

    def damaged(self, seconds: float) -> tuple[str, ...]:
        """Digests of blobs that are not what their name says, as far as a look of this many seconds
        finds them, the newest first. Blocking.
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
        """Mark a blob as needed today; nothing happens if it is not there. Blocking."""
        # The file of another user of a shared store cannot be marked; that user's worker does it.
        with suppress(OSError):
            os.utime(self._path(digest))

    def remove(self, path: Path, used: float) -> bool:
        """Remove a file unless it was put or kept after `used`; whether it went. Blocking."""
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

    def _lost(self, digest: str, why: str) -> BlobLost:
        return BlobLost(
            f"blob {digest} of the store {self.root.as_uri()} is lost: {why};"
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
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with self._locked(fcntl.LOCK_SH):
                os.replace(temporary, path)
            _sync(path.parent)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return digest

    def _create(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync(self.root)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """Shared to say that a blob is needed, exclusive to remove one: nobody removes what
        somebody else has just been told is there.
        """
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


def _digest_of(path: Path) -> str:
    """Of a blob's content; empty when it cannot be read. FileNotFoundError when it is gone."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _sync(folder: Path) -> None:
    """Make a new name in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StoreDriver(StorageDriver):
    """Payloads as blobs of a store."""

    def __init__(self, store: DirectoryStore) -> None:
        self._store = store

    def name(self) -> str:
        return "store"

    async def store(
        self, _context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        digests = [await self._store.put(payload.SerializeToString()) for payload in payloads]
        return [StorageDriverClaim(claim_data={"sha256": digest}) for digest in digests]

    async def retrieve(
        self, _context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        try:
            blobs = [await self._store.get(claim.claim_data["sha256"]) for claim in claims]
        except BlobLost as lost:
            raise PayloadLost(lost) from None
        return [Payload.FromString(blob) for blob in blobs]


def external_storage(store: DirectoryStore) -> ExternalStorage:
    """Keeps big payloads out of history: those of activities from 16 KiB, of workflows from 256."""
    driver = StoreDriver(store)

    def select(_context: StorageDriverSelectContext, payload: Payload) -> StorageDriver | None:
        readable = READABLE in payload.metadata and payload.ByteSize() < WORKFLOW_INLINE_BYTES
        return None if readable else driver

    return ExternalStorage(
        drivers=[driver], driver_selector=select, payload_size_threshold=INLINE_BYTES
    )


async def inline(message: Message, store: DirectoryStore) -> None:
    """Replace every reference to a stored payload, anywhere in a history event, by its content.
    BlobLost when the store does not have one.
    """
    for payload in _references(message):
        payload.ParseFromString(await store.get(_digest_in(payload)))


def stored(events: Iterable[Message]) -> frozenset[str]:
    """The digests of all payloads that history events only refer to."""
    return frozenset(_digest_in(each) for event in events for each in _references(event))


def _digest_in(reference: Payload) -> str:
    return str(json.loads(reference.data)["claimData"]["sha256"])


def _references(message: Message) -> Iterator[Payload]:
    """Every payload inside a message that stands for a stored one."""
    if isinstance(message, Payload):
        if message.external_payloads:
            yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            values = [each for each in value.values() if isinstance(each, Message)]
        else:
            values = list(value) if descriptor.is_repeated else [value]
        for each in values:
            yield from _references(each)
