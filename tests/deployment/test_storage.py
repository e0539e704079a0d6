"""The store: nothing is believed before it was compared with its name."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.converter import WorkflowSerializationContext

from holdfast.cli.main import explain
from holdfast.contracts.errors import BlobLost
from holdfast.storage import DirectoryStore
from holdfast.storage.payloads import external_storage
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio

CONTENT = b"What was examined was found to be sound. " * 100


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def file_of(store: DirectoryStore, digest: str) -> Path:
    return store.root / digest[:2] / digest


def flipped(path: Path) -> None:
    path.write_bytes(bytes([CONTENT[0] ^ 1]) + CONTENT[1:])


def truncated(path: Path) -> None:
    path.write_bytes(CONTENT[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def longer(path: Path) -> None:
    path.write_bytes(CONTENT + b" ")


def swapped(path: Path) -> None:
    path.write_bytes(b"another blob")


def missing(path: Path) -> None:
    path.unlink()


HARMS = [flipped, truncated, emptied, longer, swapped, missing]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
async def test_a_bad_blob_is_not_believed_and_a_good_one_heals_it(
    store: DirectoryStore, harm: Callable[[Path], None]
) -> None:
    digest = await store.put(CONTENT)
    harm(file_of(store, digest))
    with pytest.raises(BlobLost) as lost:
        await store.get(digest)
    assert digest in lost.value.message and store.root.as_uri() in lost.value.message
    assert "\n" not in lost.value.message and lost.value.non_retryable
    assert store.damaged(60) == (() if harm is missing else (digest,))
    assert await store.put(CONTENT) == digest
    assert await store.get(digest) == CONTENT
    assert store.damaged(60) == ()


async def test_a_store_that_is_not_there_and_a_name_that_is_none_are_said(
    store: DirectoryStore,
) -> None:
    with pytest.raises(BlobLost, match="the whole store is missing"):
        await store.get(hashlib.sha256(CONTENT).hexdigest())
    for name in ("", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"):
        with pytest.raises(BlobLost, match="no digest"):
            await store.get(name)


async def test_a_blob_that_cannot_be_read_is_lost(store: DirectoryStore) -> None:
    digest = await store.put(CONTENT)
    file_of(store, digest).unlink()
    file_of(store, digest).mkdir()
    with pytest.raises(BlobLost, match="cannot be read"):
        await store.get(digest)
    assert store.damaged(60) == (digest,)
    (blob,) = store.files()
    assert not store.remove(blob.path, blob.used)


def test_a_name_that_leads_nowhere_is_no_blob(store: DirectoryStore) -> None:
    loop = store.root / "aa" / ("a" * 64)
    loop.parent.mkdir(parents=True)
    loop.symlink_to(loop)
    assert not list(store.files())
    assert store.damaged(60) == ()


async def test_a_full_disk_is_said_with_the_folder(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    # The folders are there: making them is said by the folder already.
    (store.root / hashlib.sha256(CONTENT).hexdigest()[:2]).mkdir(parents=True)
    with pytest.raises(OSError, match="No space left") as refused:
        await store.put(CONTENT)
    assert (
        explain(refused.value)[0] == f"{store.root}: No space left on device; free some space there"
    )


async def test_equal_content_is_kept_once_and_counts_as_used_again(store: DirectoryStore) -> None:
    digest = await store.put(CONTENT)
    os.utime(file_of(store, digest), (1.0, 1.0))
    inode = file_of(store, digest).stat().st_ino
    assert await store.put(CONTENT) == digest
    status = file_of(store, digest).stat()
    assert status.st_ino == inode and status.st_mtime > 1e9
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert len(list(store.files())) == 1


async def test_what_was_just_put_is_put_again_only_where_somebody_has_changed_it(
    store: DirectoryStore,
) -> None:
    digest = await store.put(CONTENT)
    [blob] = store.files()
    put = blob.path.stat().st_mtime_ns
    assert await store.put(CONTENT) == digest
    assert blob.path.stat().st_mtime_ns == put, "it was written a moment ago"
    blob.path.write_bytes(b"damaged")
    assert await store.put(CONTENT) == digest
    assert await store.get(digest) == CONTENT


async def test_what_is_put_while_it_is_being_removed_stays(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between seeing that the blob is there and saying so, `put` lets nobody remove it."""
    digest = await store.put(CONTENT)
    path = file_of(store, digest)
    os.utime(path, (1.0, 1.0))
    removed: list[bool] = []
    cleaner = threading.Thread(target=lambda: removed.append(store.remove(path, 1.0)))
    holds = DirectoryStore._holds

    def seen(store: DirectoryStore, path: Path, content: bytes) -> bool:
        there = holds(store, path, content)
        cleaner.start()
        cleaner.join(0.2)
        return there

    monkeypatch.setattr(DirectoryStore, "_holds", seen)
    assert await store.put(CONTENT) == digest
    await asyncio.to_thread(cleaner.join)
    assert removed == [False]
    assert await store.get(digest) == CONTENT


def test_no_converter_asks_whom_a_payload_is_for_as_workflows_are_not_asked(
    store: DirectoryStore,
) -> None:
    """`holdfast/temporal/activations.py` answers for them that there is nothing to say."""
    ours = data_converter(external_storage(store))
    whom = WorkflowSerializationContext(namespace="default", workflow_id="run")
    assert ours.with_context(whom) is ours


async def test_a_file_is_taken_in_piece_by_piece_and_its_blob_is_a_file_that_was_compared(
    store: DirectoryStore, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.write_bytes(CONTENT * 1_000)
    with given.open("rb") as file:
        digest, size = await store.put_file(file)
    assert (digest, size) == (hashlib.sha256(given.read_bytes()).hexdigest(), 4_100_000)
    async with store.file(digest) as path:
        pass
    assert path == file_of(store, digest) and await store.get(digest) == given.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.digest for each in store.files()] == [digest]
    flipped(path)
    with pytest.raises(BlobLost, match="damaged"):
        await store.file(digest).__aenter__()
    with pytest.raises(BlobLost, match="its file is missing"):
        await store.file("0" * 64).__aenter__()
