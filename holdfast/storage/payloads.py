"""Big payloads outside of the histories: the SDK's external storage, on top of a store of blobs.

Payloads above 6 KiB are stored once, by content hash, so that equal prompts share one blob and a
wide fan-out cannot pass the 4 MiB that one workflow task may carry. What people read in the Web UI
(Goal, Report, a run's board and view) stays inline up to 256 KiB, or they would see a digest. The
only module that imports this experimental API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.converter import (
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverSelectContext,
    StorageDriverStoreContext,
)

from holdfast.contracts.errors import BlobLost
from holdfast.storage.store import Store

INLINE_BYTES = 6 * 1024
"""500 calls that are scheduled at once fit into the 4 MiB of a workflow task, and 3,000 with their
results into the 50 MB of a history.
"""
WORKFLOW_INLINE_BYTES = 256 * 1024
READABLE = "readable"
"""Metadata key of payloads that people read. The SDK tells the driver only the workflow."""
BOARD = WorkflowMetadata.DESCRIPTOR.full_name.encode()
"""The message that carries a run's board to the Web UI, which cannot read references."""


class PayloadLost(Exception):
    """A stored payload cannot be had: what the SDK is told instead of `BlobLost`.

    An `ApplicationError` that is raised while a workflow task is decoded would close the run, for
    good, or blame its code. This one fails the task, which is tried again: the run goes on when the
    blob is back. Around an activity's arguments, `temporal.py` turns it into `lost` again.
    """

    def __init__(self, lost: BlobLost) -> None:
        super().__init__(lost.message)
        self.lost = lost


class StoreDriver(StorageDriver):
    """Puts payloads into a store as blobs."""

    def __init__(self, store: Store) -> None:
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


def external_storage(store: Store) -> ExternalStorage:
    """Return the SDK's external storage: it takes payloads of activities from 6 KiB and of
    workflows from 256 KiB.
    """
    driver = StoreDriver(store)

    def select(_context: StorageDriverSelectContext, payload: Payload) -> StorageDriver | None:
        marked = READABLE in payload.metadata or payload.metadata.get("messageType") == BOARD
        return None if marked and payload.ByteSize() < WORKFLOW_INLINE_BYTES else driver

    return ExternalStorage(
        drivers=[driver], driver_selector=select, payload_size_threshold=INLINE_BYTES
    )


async def inline(message: Message, store: Store) -> None:
    """Replace every reference to a stored payload in a history event by its content. BlobLost if
    the store lacks one.
    """
    for payload in _references(message):
        payload.ParseFromString(await store.get(_digest_in(payload)))


def find_stored(events: Iterable[Message]) -> frozenset[str]:
    """Return the digests of all payloads that history events only refer to."""
    return frozenset(_digest_in(each) for event in events for each in _references(event))


def _digest_in(reference: Payload) -> str:
    return str(json.loads(reference.data)["claimData"]["sha256"])


def _references(message: Message) -> Iterator[Payload]:
    """Yield every payload in a message that is a reference to a stored one."""
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
