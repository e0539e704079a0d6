"""Big payloads outside of the histories: the SDK's external storage, on top of a store of blobs.

Payloads above 6 KiB are stored once, by content hash, so that equal prompts share one blob and a
wide fan-out cannot pass the 4 MiB that one workflow task may carry. In a bucket the SDK's own
drivers keep them; every run writes what it has anew, so that nothing of it is older than the run
to a rule that lets things expire. What people read in the Web UI (Goal, Report, a run's board and
view) stays inline up to 256 KiB, or they would see a digest. The only module that imports this
experimental API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.gcp.gcsdriver import GCSStorageDriver, GCSStorageDriverClient
from temporalio.converter import (
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverSelectContext,
    StorageDriverStoreContext,
)

from holdfast.contracts.errors import BlobLost
from holdfast.errors import Undecipherable
from holdfast.storage.bucket import BucketStore
from holdfast.storage.gcs import GCSObjects
from holdfast.storage.moved import MovedStore
from holdfast.storage.store import Store

INLINE_BYTES = 6 * 1024
"""500 calls that are scheduled at once fit into the 4 MiB of a workflow task, and 3,000 with their
results into the 50 MB of a history.
"""
WORKFLOW_INLINE_BYTES = 256 * 1024
_NO_REFERENCE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, DecodeError)
"""What whoever follows a reference that is damaged may meet."""
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


class _Buckets:
    """What the SDK's drivers ask of a bucket, answered by our stores in buckets: the first is
    written to, and whatever bucket a reference names, all are looked through.
    """

    def __init__(self, stores: Sequence[BucketStore]) -> None:
        self._stores = stores

    async def object_exists(self, **_object: str) -> bool:
        # To write what may be there costs one request; to ask first costs two if it is not.
        return False

    async def save(self, key: str, data: bytes) -> None:
        await self._stores[0].save(key, data)

    async def fetch(self, key: str) -> bytes:
        lost: list[BlobLost] = []
        for each in self._stores:
            try:
                return await each.fetch(key)
            except BlobLost as error:
                lost.append(error)
        raise lost[0]


class _S3Client(_Buckets, S3StorageDriverClient):
    async def put_object(self, *, bucket: str, key: str, data: bytes) -> None:  # noqa: ARG002
        await self.save(key, data)

    async def get_object(self, *, bucket: str, key: str) -> bytes:  # noqa: ARG002
        return await self.fetch(key)


class _GCSClient(_Buckets, GCSStorageDriverClient):
    async def put_object(self, *, bucket: str, object_name: str, data: bytes) -> None:  # noqa: ARG002
        await self.save(object_name, data)

    async def get_object(self, *, bucket: str, object_name: str) -> bytes:  # noqa: ARG002
        return await self.fetch(object_name)


class _BucketDriver(StorageDriver):
    """A driver of the SDK, with our errors."""

    def __init__(self, driver: StorageDriver) -> None:
        self._driver = driver

    def name(self) -> str:
        return self._driver.name()

    def type(self) -> str:
        return self._driver.type()

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        try:
            return await self._driver.store(context, payloads)
        except RuntimeError as error:
            raise error.__cause__ or error from None

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        try:
            return await self._driver.retrieve(context, claims)
        except RuntimeError as error:
            if isinstance(error.__cause__, BlobLost):
                raise PayloadLost(error.__cause__) from None
            raise error.__cause__ or error from None


def is_readable(payload: Payload) -> bool:
    """True for what people read in the Web UI."""
    return READABLE in payload.metadata or payload.metadata.get("messageType") == BOARD


def external_storage(store: Store) -> ExternalStorage:
    """Return the SDK's external storage: it takes payloads of activities from 6 KiB and of
    workflows from 256 KiB.
    """
    drivers = _drivers(store)

    def select(_context: StorageDriverSelectContext, payload: Payload) -> StorageDriver | None:
        small = payload.ByteSize() < WORKFLOW_INLINE_BYTES
        return None if is_readable(payload) and small else drivers[0]

    return ExternalStorage(
        drivers=drivers, driver_selector=select, payload_size_threshold=INLINE_BYTES
    )


def _drivers(store: Store) -> list[StorageDriver]:
    """Return the drivers that read what a store or those before it have; the first one writes."""
    stores = store.all if isinstance(store, MovedStore) else (store,)
    blobs = StoreDriver(store)
    buckets = [each for each in stores if isinstance(each, BucketStore)]
    if not buckets:
        return [blobs]
    # Both: objects may have been copied from a bucket of the one maker to one of the other.
    bucket = buckets[0].bucket
    drivers: list[StorageDriver] = [
        _BucketDriver(S3StorageDriver(_S3Client(buckets), bucket)),
        _BucketDriver(GCSStorageDriver(_GCSClient(buckets), bucket)),
    ]
    if buckets[0].scheme == GCSObjects.scheme:
        drivers.reverse()
    return [*drivers, blobs] if stores[0] is buckets[0] else [blobs, *drivers]


async def inline(message: Message, store: Store) -> None:
    """Replace every reference to a stored payload in a history event by its content, still
    encrypted if it is. BlobLost if the store lacks one; StoreAway.
    """
    for payload in _references(message):
        payload.CopyFrom(await fetch(payload, store))


def find_stored(events: Iterable[Message]) -> tuple[Payload, ...]:
    """Return all references of history events to stored payloads, each once."""
    found = {each.data: each for event in events for each in _references(event)}
    return tuple(found.values())


async def fetch(reference: Payload, store: Store) -> Payload:
    """Return the payload that a reference stands for. BlobLost if the store lacks it; StoreAway;
    Undecipherable if it is no reference of ours.
    """
    try:
        told = json.loads(reference.data)
        drivers = {each.name(): each for each in _drivers(store)}
        driver, claim = drivers[told["driverName"]], StorageDriverClaim(told["claimData"])
        (payload,) = await driver.retrieve(StorageDriverRetrieveContext(), [claim])
    except PayloadLost as error:
        raise error.lost from None
    except _NO_REFERENCE as error:
        raise Undecipherable("a reference to what is kept outside is damaged") from error
    return payload


def parts_of(message: Message) -> Iterator[Payload | Failure]:
    """Yield every payload and failure in a message, what is inside of a failure before it."""
    if isinstance(message, Payload):
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
            yield from parts_of(each)
    if isinstance(message, Failure):
        yield message


def _references(message: Message) -> Iterator[Payload]:
    """Yield every payload in a message that is a reference to a stored one."""
    for each in parts_of(message):
        if isinstance(each, Payload) and each.external_payloads:
            yield each
