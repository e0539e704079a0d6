"""A store in a bucket of Google's: what fails, what is missing and what is forbidden are told apart
as they are in Amazon's, and what one has can be found in the other.
"""

from __future__ import annotations

import gc
import hashlib
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload

import google_buckets
import holdfast.storage
from google_buckets import BUCKET, GoogleBucket
from holdfast.cli.main import explain
from holdfast.contracts.errors import BlobLost
from holdfast.storage import DirectoryStore, Store, StoreAway, gcs, store_at
from holdfast.storage.payloads import PayloadLost, external_storage, fetch
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio

CONTENT = b"What was examined was found to be sound. " * 300
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = f"a/place/{DIGEST[:2]}/{DIGEST}"
URL = f"gs://{BUCKET}/a/place"
SAME = cache(gcs.GCSObjects)


@pytest.fixture(scope="module")
def served() -> Iterator[GoogleBucket]:
    with google_buckets.serve() as bucket:
        yield bucket


@pytest.fixture
def bucket(served: GoogleBucket, monkeypatch: pytest.MonkeyPatch) -> GoogleBucket:
    """The served bucket, empty, as the processes of a deployment are told of it."""
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(holdfast.storage.BUCKETS, "gs", SAME)
    served.empty()
    return served


def store(url: str = URL) -> Store:
    """A store as another process would have it."""
    holdfast.storage._bucket.cache_clear()
    return store_at(url)


async def test_a_blob_is_written_by_one_request_and_read_by_one_elsewhere(
    bucket: GoogleBucket,
) -> None:
    here = store()
    assert await here.put(CONTENT) == await here.put(CONTENT) == DIGEST
    assert await here.get(DIGEST) == CONTENT == await store().get(DIGEST)
    assert bucket.objects() == {NAME: CONTENT} and here.url == URL
    assert [each.partition("/")[0] for each in bucket.asked] == ["POST ", "GET "]
    await here.write("journal/own", b"paid")
    assert await store().read("journal/own") == b"paid"
    assert await store().read("journal/none") is None


@pytest.mark.parametrize("content", [CONTENT, b"0123456789abcdef" * 2**19 + b"more than one piece"])
async def test_a_file_is_taken_in_and_is_a_file_again(bucket: GoogleBucket, content: bytes) -> None:
    digest, size = await store().put_file(io.BytesIO(content))
    assert (digest, size) == (hashlib.sha256(content).hexdigest(), len(content))
    async with store().file(digest) as path:
        assert path.read_bytes() == content
    with pytest.raises(BlobLost, match="it is not there"):
        async with store().file("0" * 64):
            raise AssertionError("nothing is there")


async def test_what_is_not_there_and_what_is_damaged_is_lost_and_says_where(
    bucket: GoogleBucket,
) -> None:
    with pytest.raises(BlobLost, match=rf"{DIGEST} of the store {URL} is lost: it is not there"):
        await store().get(DIGEST)
    bucket.replace(NAME, b"another blob")
    with pytest.raises(BlobLost, match=r"is lost: it is damaged \(12 bytes\)"):
        await store().get(DIGEST)


# The client drops the answer that it tries again after, with its connection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_bucket_that_fails_once_is_asked_again(
    bucket: GoogleBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    for use in (store().put(CONTENT), store().get(DIGEST)):
        bucket.broken = 1
        assert await use in (DIGEST, CONTENT)
    assert len(bucket.asked) == 4
    gc.collect()


@pytest.mark.parametrize("harm", ["broken", "denied", "gone", "no bucket", "no credentials"])
async def test_a_store_that_cannot_be_used_is_said_in_a_line_and_nothing_counts_as_lost(
    bucket: GoogleBucket, harm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gcs, "AGAIN_SECONDS", 0.0)
    if harm in ("gone", "no credentials"):
        monkeypatch.setitem(holdfast.storage.BUCKETS, "gs", gcs.GCSObjects)
    url = URL
    match harm:
        case "broken":
            bucket.broken, passes, why = 9, True, "503 We encountered an internal error."
        case "denied":
            bucket.denied, passes, why = True, False, "403 nobody@example.com does not have"
        case "gone":
            passes, why = True, "it does not answer ("
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
        case "no bucket":
            url, passes, why = "gs://nobody-has-it", False, "404 The specified bucket does not"
        case _:
            passes, why = False, "Your default credentials were not found."
            monkeypatch.delenv("STORAGE_EMULATOR_HOST")
            monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "none"))
    here = store(url)
    for use in (here.put(CONTENT), here.get(DIGEST), here.read("journal/x")):
        with pytest.raises(StoreAway) as away:
            await use
        assert away.value.passing is passes
        said, _ = explain(away.value)
        assert said.startswith(f"{url}: the store cannot be used: {why}") and "\n" not in said
        assert ("give workers and starters the rights" in said) is not passes


# ---------------------------------------------------------------- payloads


def big(text: str = "found to be sound. ") -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(text * 1_000).encode())


async def stored(there: Store) -> Payload:
    """The reference that stands in a history for a payload of a run."""
    return await external_storage(there)._store_payload(big())


async def test_payloads_are_kept_by_the_driver_for_this_bucket(bucket: GoogleBucket) -> None:
    reference = await stored(store())
    assert json.loads(reference.data)["driverName"] == "gcp.gcsdriver"
    (name,) = bucket.objects()
    assert name.startswith("a/place/v0/d/sha256/") and len(bucket.asked) == 1
    assert await fetch(reference, store()) == big()
    bucket.denied = True
    converter = data_converter(external_storage(store()))
    with pytest.raises(StoreAway):
        await converter.decode([reference])
    bucket.denied = False
    bucket.remove(name)
    with pytest.raises(PayloadLost, match="is lost: it is not there"):
        await converter.decode([reference])


async def test_a_store_that_has_moved_finds_what_it_had_in_a_folder_and_what_an_s3_bucket_had(
    bucket: GoogleBucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = DirectoryStore(tmp_path / "store")
    monkeypatch.setattr(SAME(BUCKET, "old"), "scheme", "s3")
    in_folder, in_amazons = await stored(folder), await stored(store(f"gs://{BUCKET}/old"))
    assert json.loads(in_amazons.data)["driverName"] == "aws.s3driver"
    (name,) = bucket.objects()
    bucket.replace(name.replace("old/", "a/place/"), bucket.objects()[name])
    bucket.remove(name)
    moved = store(f"{URL} {folder.url}")
    assert await fetch(in_folder, moved) == await fetch(in_amazons, moved) == big()
    digest = await moved.put(CONTENT)
    assert NAME in bucket.objects() and await moved.get(digest) == CONTENT
