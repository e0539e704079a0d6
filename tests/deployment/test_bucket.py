"""A store in a bucket: nothing is believed before it was compared with its name, what fails for a
while is tried again, and what only a person can mend is said in one line.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

import buckets
import holdfast.storage
from buckets import BUCKET, Bucket
from encrypted import write_keys
from holdfast.cli.checks.kept import check_storage
from holdfast.cli.main import explain
from holdfast.contracts.errors import BlobLost
from holdfast.deployment.settings import HOME, Settings
from holdfast.storage import BadStore, DirectoryStore, Store, StoreAway, s3, store_at
from holdfast.storage.keys import Keyring
from holdfast.storage.payloads import PayloadLost, external_storage, fetch, find_stored
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio

CONTENT = b"What was examined was found to be sound. " * 300
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = f"a/place/{DIGEST[:2]}/{DIGEST}"
SAME = cache(s3.S3Objects)
URL = f"s3://{BUCKET}/a/place"


@pytest.fixture(scope="module")
def served() -> Iterator[Bucket]:
    with buckets.serve() as bucket:
        yield bucket


@pytest.fixture
def bucket(served: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The served bucket, empty, as the processes of a deployment are told of it."""
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    # To make a client of a bucket takes long.
    monkeypatch.setitem(holdfast.storage.BUCKETS, "s3", SAME)
    holdfast.storage._bucket.cache_clear()
    for name in served.names():
        served.client.delete_object(Bucket=BUCKET, Key=name)
    served.broken, served.denied, served.slow = 0, (), 0.0
    served.asked.clear()
    return served


def store(url: str = URL) -> Store:
    """A store as another process would have it."""
    holdfast.storage._bucket.cache_clear()
    return store_at(url)


async def test_a_blob_is_written_by_one_request_and_read_by_one_elsewhere(bucket: Bucket) -> None:
    here = store()
    assert await here.put(CONTENT) == await here.put(CONTENT) == DIGEST
    assert await here.get(DIGEST) == CONTENT
    assert bucket.asked == [f"PUT /{BUCKET}/{NAME}"]
    assert await store().get(DIGEST) == CONTENT
    assert bucket.asked[1:] == [f"GET /{BUCKET}/{NAME}"]
    assert here.url == URL


async def test_a_file_is_taken_in_piece_by_piece_and_is_a_file_again(bucket: Bucket) -> None:
    digest, size = await store().put_file(io.BytesIO(CONTENT))
    assert (digest, size) == (DIGEST, len(CONTENT))
    async with store().file(DIGEST) as path:
        assert path.read_bytes() == CONTENT
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()
    with pytest.raises(BlobLost, match="it is not there"):
        async with store().file("0" * 64):
            raise AssertionError("nothing is there")


async def test_what_is_not_there_and_what_is_damaged_is_lost_and_says_where(bucket: Bucket) -> None:
    with pytest.raises(BlobLost, match=rf"{DIGEST} of the store {URL} is lost: it is not there"):
        await store().get(DIGEST)
    bucket.client.put_object(Bucket=BUCKET, Key=NAME, Body=b"another blob")
    here = store()
    for _ in range(2):
        with pytest.raises(BlobLost, match=r"is lost: it is damaged \(12 bytes\)"):
            await here.get(DIGEST)
    with pytest.raises(BlobLost, match="it is damaged"):
        async with here.file(DIGEST):
            raise AssertionError("nothing of it is believed")
    assert await here.put(CONTENT) == DIGEST
    assert await store().get(DIGEST) == CONTENT
    for name in ("", "../../etc/passwd", "A" * 64, "a" * 63):
        with pytest.raises(BlobLost, match="no digest"):
            await here.get(name)


async def test_a_bucket_that_fails_once_is_asked_again(bucket: Bucket) -> None:
    bucket.broken = 1
    assert await store().put(CONTENT) == DIGEST
    bucket.broken = 1
    assert await store().get(DIGEST) == CONTENT
    assert len(bucket.asked) == 4


@pytest.mark.parametrize("harm", ["broken", "denied", "gone", "no bucket", "no credentials"])
async def test_a_store_that_cannot_be_used_is_said_in_a_line_and_nothing_counts_as_lost(
    bucket: Bucket, harm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(s3, "TRIES", 1)
    monkeypatch.setitem(holdfast.storage.BUCKETS, "s3", s3.S3Objects)
    url = URL
    match harm:
        case "broken":
            bucket.broken, passes, why = 9, True, "SlowDown"
        case "denied":
            bucket.denied, passes, why = ("PUT", "GET"), False, "AccessDenied"
        case "gone":
            passes, why = True, "does not answer"
            monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        case "no bucket":
            url, passes, why = "s3://nobody-has-it", False, "NoSuchBucket"
        case _:
            passes, why = False, "Unable to locate credentials"
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.delenv(name)
            monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    here = store(url)
    for use in (here.put(CONTENT), here.get(DIGEST), here.read("journal/x")):
        with pytest.raises(StoreAway) as away:
            await use
        assert away.value.passing is passes
        said, _ = explain(away.value)
        assert said.startswith(f"{url}: the store cannot be used: ") and why in said
        assert "\n" not in said and bucket.environment["AWS_SECRET_ACCESS_KEY"] not in said
        assert ("give workers and starters the rights" in said) is not passes


@pytest.mark.parametrize("url", ["s3://a/b", "gs://a/b"])
def test_without_its_package_a_bucket_is_refused_with_the_way_to_get_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"s3": "s3", "gs": "gcs"}[url[:2]]
    monkeypatch.setattr("holdfast.storage.lacking", lambda *what: f"needs {what}: make setup")
    with pytest.raises(BadStore, match=rf"STORE_URL '{url}' needs \('{extra}',\): make setup"):
        store_at(url)


@pytest.mark.parametrize(
    "url", ["", "s3://", "s3:///a", "s3://me@a", "s3://a:1", "s3://a?b", "gs://", "gs://a:1", "x"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadStore, match=r"file:///PATH, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"):
        store_at(url)


@pytest.mark.parametrize(
    ("denied", "said"),
    [
        ((), "STORE_URL ok {url}: written and read in "),
        (("PUT",), "STORE_URL bad {url}: the store cannot be used: "),
        (("GET",), "STORE_URL bad {url}: the store cannot be used: "),
    ],
)
def test_doctor_writes_reads_and_says_in_a_line_what_is_wrong(
    bucket: Bucket, denied: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    bucket.denied = denied
    moved = f"{URL} {(tmp_path / 'before').as_uri()}"
    lines = check_storage(Settings(_env_file=None, state_dir=tmp_path / "s", store_url=moved))
    told = [" ".join(each) for each in lines if each[0].startswith("STORE_URL")]
    assert len(told) == 2 and told[0].startswith(said.format(url=URL))
    assert told[1].startswith("STORE_URL before note ") and "is missing" in told[1]
    assert bucket.names() == ([] if "PUT" in denied else ["a/place/probe/doctor"])


# ---------------------------------------------------------------- payloads


def big(text: str = "found to be sound. ") -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(text * 1_000).encode())


async def stored(url: str, payload: Payload) -> Payload:
    """The reference that stands in a history for a payload of a run."""
    return await external_storage(store(url))._store_payload(payload)


async def test_with_keys_nothing_in_a_bucket_is_plain_and_no_name_tells_a_content(
    bucket: Bucket, tmp_path: Path
) -> None:
    keys = Keyring(write_keys(tmp_path / "keys", "one"))

    def fresh() -> Store:
        holdfast.storage._bucket.cache_clear()
        return store_at(URL, keys)

    here = fresh()
    assert await here.put(CONTENT) == DIGEST
    assert await here.put_file(io.BytesIO(CONTENT)) == (DIGEST, len(CONTENT))
    await here.write("journal/own", CONTENT)
    names = bucket.names()
    assert len(names) == 2 and not any(DIGEST in name for name in names)
    kept = [bucket.client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in names]
    assert not any(b"examined" in each for each in kept)
    assert await fresh().get(DIGEST) == CONTENT == await fresh().read("journal/own")
    async with fresh().file(DIGEST) as path:
        assert path.read_bytes() == CONTENT
    for name in names:
        bucket.client.put_object(Bucket=BUCKET, Key=name, Body=kept[0][:-1])
    with pytest.raises(BlobLost, match="it is damaged"):
        await fresh().get(DIGEST)
    with pytest.raises(BlobLost, match="it is damaged"):
        async with fresh().file(DIGEST):
            pass


async def test_payloads_are_written_anew_by_each_process_that_has_them(
    bucket: Bucket,
) -> None:
    reference = await stored(URL, big())
    assert await stored(URL, big()) == reference
    (name,) = bucket.names()
    assert name.startswith("a/place/v0/d/sha256/")
    assert [each.split()[0] for each in bucket.asked] == ["PUT", "PUT"]
    assert await fetch(reference, store()) == big()
    event = HistoryEvent()
    event.workflow_execution_started_event_attributes.input.payloads.append(reference)
    assert find_stored([event, event]) == (reference,)


async def test_a_payload_that_is_lost_and_one_that_is_away_are_told_apart(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = await stored(URL, big())
    bucket.denied = ("GET",)
    converter = data_converter(external_storage(store()))
    with pytest.raises(StoreAway):
        await converter.decode([reference])
    try:
        await converter.decode([reference])
    except StoreAway as error:
        failure = Failure()
        wrapped = RuntimeError("Failed decoding arguments")
        wrapped.__cause__ = error
        converter.failure_converter.to_failure(wrapped, converter.payload_converter, failure)
    told = failure.application_failure_info
    assert (told.type, told.non_retryable) == ("StoreAway", False)
    assert told.next_retry_delay.seconds == 30 and failure.message.startswith(URL)
    bucket.denied = ()
    bucket.client.delete_object(Bucket=BUCKET, Key=bucket.names()[0])
    with pytest.raises(PayloadLost, match="is lost: it is not there"):
        await data_converter(external_storage(store())).decode([reference])


async def test_a_store_that_has_moved_reads_what_it_had_and_writes_to_the_new_place(
    bucket: Bucket, tmp_path: Path
) -> None:
    folder = DirectoryStore(tmp_path / "store")
    old = await stored(folder.url, big())
    digest = await folder.put(CONTENT)
    await folder.write("journal/x", b"paid")
    moved = store(f"{URL} {folder.url}")
    assert await moved.get(digest) == CONTENT
    async with moved.file(digest) as path:
        assert path.read_bytes() == CONTENT
    assert await moved.read("journal/x") == b"paid" and await moved.read("journal/y") is None
    assert await fetch(old, moved) == big()
    assert await data_converter(external_storage(moved)).decode([old]) == [json.loads(big().data)]
    before = set(folder.root.rglob("*"))
    new = await stored(moved.url, big("elsewhere. "))
    await moved.put(b"something else")
    assert set(folder.root.rglob("*")) == before and len(bucket.names()) == 2
    assert await fetch(new, moved) == big("elsewhere. ")
    with pytest.raises(BlobLost, match=f"of the store {URL} is lost"):
        await moved.get("0" * 64)
    # And from one bucket, or part of one, to another; back to a folder as well.
    for url in (f"s3://{BUCKET}/elsewhere {URL} {folder.url}", f"{folder.url} {URL}"):
        for each in (old, new):
            assert await fetch(each, store(url))


def test_the_rule_of_the_page_is_one_that_a_bucket_takes(bucket: Bucket) -> None:
    page = (HOME / "docs" / "running.md").read_text()
    (told,) = re.findall(r"```json\n(\{\"Rules\".*?)```", page, re.DOTALL)
    rule, client = json.loads(told), bucket.client
    client.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration=rule)
    (kept,) = client.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
    assert kept["Expiration"] == {"Days": 90} and kept["Filter"] == {"Prefix": "PREFIX/"}
