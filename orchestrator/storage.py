"""Where big payloads and blobs live: a content-addressed store, and the SDK's external storage on
top of it.

Payloads above 16 KiB are stored once, by content hash, so that equal prompts share one blob and a
wide fan-out
cannot pass the 4 MiB that one workflow task may carry. What belongs to a workflow (Goal, Report,
Update arguments)
stays inline up to 256 KiB, readable in the Web UI. The only module that imports this experimental
API.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
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

INLINE_BYTES = 16 * 1024
WORKFLOW_INLINE_BYTES = 256 * 1024
READABLE = "readable"
"""Metadata key of payloads that belong to a workflow; the SDK tells the driver only the workflow,
not the use.
"""


class BadStore(ValueError):
    """The store's address is of a kind that is not served."""


class DirectoryStore:
    """Blobs as private files named by their SHA-256; equal content is kept once. Never deletes."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def at(cls, url: str) -> DirectoryStore:
        """The store of a `file:///PATH` address."""
        parts = urlsplit(url)
        if parts.scheme != "file" or not parts.path.startswith("/") or parts.netloc:
            raise BadStore(f"STORE_URL {url!r}: not an address of the form file:///PATH")
        return cls(Path(unquote(parts.path)))

    async def put(self, content: bytes) -> str:
        """Store and return the SHA-256 in hex. Survives a crash half-way: the name appears when it
        is whole.
        """
        return await asyncio.to_thread(self._write, content)

    async def get(self, digest: str) -> bytes:
        """The blob; FileNotFoundError if this store does not have it."""
        return await asyncio.to_thread(self._path(digest).read_bytes)

    def _path(self, digest: str) -> Path:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise FileNotFoundError(f"not a digest: {digest[:80]!r}")
        return self._root / digest[:2] / digest

    def _write(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if path.exists():
            return digest
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return digest


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
        blobs = [await self._store.get(claim.claim_data["sha256"]) for claim in claims]
        return [Payload.FromString(blob) for blob in blobs]


def external_storage(store: DirectoryStore) -> ExternalStorage:
    """What keeps big payloads out of history: from 16 KiB for activities, from 256 KiB for
    workflows.
    """
    driver = StoreDriver(store)

    def select(_context: StorageDriverSelectContext, payload: Payload) -> StorageDriver | None:
        readable = READABLE in payload.metadata and payload.ByteSize() < WORKFLOW_INLINE_BYTES
        return None if readable else driver

    return ExternalStorage(
        drivers=[driver], driver_selector=select, payload_size_threshold=INLINE_BYTES
    )


async def inline(message: Message, store: DirectoryStore) -> None:
    """Replace every reference to a stored payload, anywhere in a history event, by its content."""
    if isinstance(message, Payload):
        if message.external_payloads:
            reference = json.loads(message.data)
            message.ParseFromString(await store.get(reference["claimData"]["sha256"]))
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            values = [each for each in value.values() if isinstance(each, Message)]
        else:
            values = list(value) if descriptor.is_repeated else [value]
        for each in values:
            await inline(each, store)
