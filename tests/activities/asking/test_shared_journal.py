"""A journal with its answers in the store: another machine finds what was paid."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking import shared_journal
from holdfast.activities.asking.heartbeat import Past
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.shared_journal import SharedJournal
from holdfast.storage import DirectoryStore, StoreAway

pytestmark = pytest.mark.anyio

HERE = ActivityEnvironment.default_info()
PLACE = f"{HERE.workflow_namespace}/{HERE.workflow_id}/{HERE.workflow_run_id}/{HERE.activity_id}"
KEY = f"{PLACE}/{'d' * 64}"
ANSWER = "It was paid \ud83d."
STORED = f"journal/{hashlib.sha256(KEY.encode()).hexdigest()}.answer"


class Watched(DirectoryStore):
    """A store that counts what is read, dawdles and fails as told."""

    reads = 0
    away = False
    seconds = 0.0

    async def write(self, name: str, content: bytes) -> None:
        await asyncio.sleep(self.seconds)
        if self.away:
            raise StoreAway(self.url, "SlowDown")
        await super().write(name, content)

    async def read(self, name: str) -> bytes | None:
        self.reads += 1
        if self.away:
            raise StoreAway(self.url, "SlowDown")
        return await super().read(name)


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def machine(folder: Path, store: Watched, name: str) -> SharedJournal:
    return SharedJournal(FileJournal(folder / name), store)


async def test_an_answer_is_found_on_another_machine_and_the_mark_is_not(
    store: Watched, folder: Path
) -> None:
    one, other = machine(folder, store, "one"), machine(folder, store, "other")
    await one.mark_sent(KEY)
    assert await other.answer(KEY) is None
    await one.record(KEY, ANSWER)
    assert await other.answer(KEY) == ANSWER and await one.answer(KEY) == ANSWER
    assert await one.sent(KEY) and not await other.sent(KEY)
    assert (store.root / STORED).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("info", "looks"),
    [
        (HERE, 0),
        (replace(HERE, attempt=2), 1),
        # A run that was reset, and a call that goes on with that of an earlier activity.
        (replace(HERE, workflow_run_id="another"), 1),
        (replace(HERE, activity_id="later"), 1),
    ],
)
async def test_the_store_is_asked_only_where_another_machine_may_have_asked(
    store: Watched, folder: Path, info: object, looks: int
) -> None:
    where = ActivityEnvironment()
    where.info = info  # type: ignore[assignment]
    journal = machine(folder, store, "one")
    assert await where.run(journal.answer, KEY) is None
    assert store.reads == looks


async def test_a_store_that_fails_or_dawdles_costs_no_answer(
    store: Watched, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = machine(folder, store, "one")
    store.away = True
    monkeypatch.setattr(shared_journal, "PATIENCE", (0.001, 0.001))
    monkeypatch.setattr(shared_journal, "PAUSE", 0.01)
    with caplog.at_level(logging.WARNING):
        await journal.record(KEY, ANSWER)
    assert await journal.answer(KEY) == ANSWER
    assert "an answer is on this machine alone so far" in caplog.text and "SlowDown" in caplog.text
    assert not (store.root / STORED).exists(), "nobody waited for it"
    store.away = False
    while not (store.root / STORED).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert await machine(folder, store, "other").answer(KEY) == ANSWER


async def test_a_call_with_time_waits_until_its_answer_is_in_the_store(
    store: Watched, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_journal, "PAUSE", 0.01)
    where = ActivityEnvironment()
    where.info = replace(HERE, started_time=datetime.now(UTC))
    store.away = True
    recording = asyncio.create_task(where.run(machine(folder, store, "one").record, KEY, ANSWER))
    await asyncio.sleep(0.05)
    assert not recording.done()
    store.away = False
    await recording
    assert (store.root / STORED).exists()


async def test_an_answer_that_another_machine_still_writes_is_waited_for(
    store: Watched, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_journal, "LATE", 0.1)
    where = ActivityEnvironment()
    where.info = replace(HERE, attempt=2, heartbeat_details=astuple(Past().leaving()))
    journal = machine(folder, store, "other")
    looking = asyncio.create_task(where.run(journal.answer, KEY))
    await machine(folder, store, "one").record(KEY, ANSWER)
    assert await looking == ANSWER


async def test_nothing_is_sent_while_the_store_cannot_tell_whether_it_was(
    store: Watched, folder: Path
) -> None:
    store.away = True
    with pytest.raises(StoreAway):
        await machine(folder, store, "one").answer(KEY)


async def test_an_entry_of_the_store_that_is_damaged_counts_as_none(
    store: Watched, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await machine(folder, store, "one").record(KEY, ANSWER)
    (store.root / STORED).write_bytes(b"0" * 64 + b"\nanother")
    assert await machine(folder, store, "other").answer(KEY) is None
    assert "counts as none" in caplog.text
