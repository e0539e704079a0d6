"""What a deployment keeps is bounded, and what a run can need is never touched."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from conftest import Runs
from holdfast.activities.asking.journal import FileJournal
from holdfast.cli.commands.care import clean
from holdfast.cli.screen.exits import Code
from holdfast.contracts import Goal, GoalInput
from holdfast.deployment.settings import Settings
from holdfast.embedded.server import RETENTION
from holdfast.embedded.state import StateDir
from holdfast.storage import DirectoryStore
from holdfast.storage.references import find_needed
from holdfast.temporal.connection import Target
from holdfast.upkeep import cleaning, daily
from holdfast.upkeep.cleaning import DAY, Kind
from repositories import Bench, Repository
from scripted import ScriptedModel, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

NOW = time.time()
BOUND = 1_000_000
LONG_AGO = NOW - 365 * DAY.total_seconds()


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def age(folder: Path, days: float) -> None:
    """Nobody has used anything below this folder for this time."""
    for path in folder.rglob("*"):
        os.utime(path, (NOW - days * DAY.total_seconds(),) * 2)


def write(folder: Path, name: str, days: float, size: int = 10) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(bytes(size))
    os.utime(path, (NOW - days * DAY.total_seconds(),) * 2)
    return path


def names(kind: Kind) -> set[str]:
    """What may go, once it is gone: nothing else has."""
    gone = {item.path.name for item in kind.remove_all()}
    assert gone == {item.path.name for item in kind.going}
    assert all(item.path.exists() for item in kind.staying)
    assert not any(item.path.exists() for item in kind.going)
    return gone


# ---------------------------------------------------------------- the store


async def test_of_the_store_goes_what_no_run_names_and_nobody_used_for_long(
    store: DirectoryStore,
) -> None:
    kept, free = await store.put(b"kept"), await store.put(b"free")
    write(store.root / "ab", "tmp1234", days=1)
    age(store.root, days=31)
    young = await store.put(b"young")
    kind = cleaning.inspect_store(store, frozenset({kept}), RETENTION, BOUND, NOW)
    assert "1 that no run names were used within 30 days" in kind.why
    assert names(kind) == {free, "tmp1234"}
    assert await store.get(young) == b"young"


async def test_above_the_bound_a_day_is_enough_for_what_no_run_names(
    store: DirectoryStore,
) -> None:
    kept, free = await store.put(bytes(800)), await store.put(bytes(900))
    age(store.root, days=2)
    young = await store.put(bytes(700))
    assert names(cleaning.inspect_store(store, frozenset({kept}), RETENTION, 5_000, NOW)) == set()
    assert names(cleaning.inspect_store(store, frozenset({kept}), RETENTION, 1_000, NOW)) == {free}
    assert len(await store.get(young)) == 700


async def test_when_nobody_can_tell_what_runs_need_the_store_stays(store: DirectoryStore) -> None:
    await store.put(b"whatever")
    age(store.root, days=365)
    kind = cleaning.inspect_store(store, "the server does not answer", DAY, 0, NOW)
    assert (kind.going, kind.why) == ((), "the server does not answer")


async def test_what_is_put_again_between_the_look_and_the_removal_stays(
    store: DirectoryStore,
) -> None:
    """Equal content is shared: another run may have just been told that it is there."""
    digest = await store.put(b"shared")
    age(store.root, days=365)
    kind = cleaning.inspect_store(store, frozenset(), DAY, BOUND, NOW)
    assert await store.put(b"shared") == digest
    assert len(kind.going) == 1
    assert kind.remove_all() == ()
    assert await store.get(digest) == b"shared"


async def test_all_that_a_run_can_need_is_named_and_goes_when_the_server_forgets_the_run(
    runs: Runs,
) -> None:
    """The `runs` fixture replays the first run from what the cleaned store still has."""
    note = GoalInput(name="note", kind="text", value="a note " * 5_000)
    long = "It was examined. " * 2_000
    plan = ready(subtask("t1", inputs=["note"]), subtask("t2", "t1"))
    for _ in range(2):
        goal = Goal(
            text="Compare",
            plan=plan,
            inputs=(note,),
            use_models=True,
            probe=await runs.store.put(b"probe"),
        )
        script = {"t1": [works(long)], "t2": [works("two")], "digest": [digests("one")]}
        model = ScriptedModel(script | {"synthesize": [synthesizes("done")]})
        await runs.run(goal, model)
        note = note.model_copy(update={"value": "another note " * 5_000})
        long = "It was looked at. " * 2_000
    await runs.store.put(b"nobody's")
    before = {blob.digest for blob in runs.store.files()}
    assert len(await cleaned(runs)) == len(before) - 1
    second = runs.handles.pop()
    await forget(runs.client, second.id)
    left = await cleaned(runs)
    assert 4 < len(left) <= len(before) - 4


async def cleaned(runs: Runs) -> set[str]:
    """What the store holds after everything in it has grown old and was cleaned."""
    age(runs.store.root, days=365)
    found, _ = await find_needed(runs.client, runs.store)
    # What is needed counts as used today, also for others who share the store.
    assert all(blob.used > NOW - 1 for blob in runs.store.files() if blob.digest in found)
    cleaning.inspect_store(runs.store, found, DAY, BOUND, time.time()).remove_all()
    return {blob.digest for blob in runs.store.files()}


async def forget(client: Client, run_id: str) -> None:
    """What the end of the retention does."""
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run_id),
        )
    )
    while True:
        try:
            await client.get_workflow_handle(run_id).describe()
        except RPCError:
            return
        await asyncio.sleep(0.05)


async def test_a_snapshot_that_a_run_pinned_is_kept_with_its_archive(
    runs: Runs, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    pinned = await bench.pin(Repository.with_a_file(tmp_path / "repo"))
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("one")]})
    goal = Goal(text="Look", plan=ready(subtask("t1")), use_models=True, pinned=(pinned,))
    await runs.run(goal, model)
    await cleaned(runs)
    snapshot = await bench.snapshots.open(pinned.digest)
    assert snapshot.path("a.txt").read_text() == "a\n"


# ---------------------------------------------------------------- journal, reports, snapshots


async def test_of_the_journal_goes_what_is_older_than_the_histories(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    await journal.mark_sent("old")
    await journal.record("old", "answer")
    age(tmp_path / "journal", days=31)
    await journal.mark_sent("young")
    write(tmp_path / "journal", "note.txt", days=365)
    assert len(names(cleaning.inspect_journal([tmp_path / "journal"], BOUND, NOW))) == 2
    assert await journal.sent("young") and not await journal.sent("old")
    assert (tmp_path / "journal" / "note.txt").exists()


def test_above_the_bound_the_journal_loses_its_oldest_but_nothing_of_today(tmp_path: Path) -> None:
    for days in (0.1, 0.2, 2, 3, 4):
        write(tmp_path, f"{days}.answer", days, size=100)
    assert names(cleaning.inspect_journal([tmp_path], 350, NOW)) == {"4.answer", "3.answer"}
    assert names(cleaning.inspect_journal([tmp_path], 0, NOW)) == {"2.answer"}


def test_of_the_reports_goes_what_is_old_or_above_the_bound(tmp_path: Path) -> None:
    for days in (1, 2, 31):
        write(tmp_path, f"{days}.md", days, size=100)
    write(tmp_path, "mine.txt", days=365)
    assert names(cleaning.inspect_reports(tmp_path, BOUND, NOW)) == {"31.md"}
    assert names(cleaning.inspect_reports(tmp_path, 150, NOW)) == {"2.md"}


@pytest.mark.parametrize("kind", ["edits", "inputs"])
def test_of_edits_and_inputs_goes_what_is_old_or_above_the_bound_but_nothing_of_today(
    tmp_path: Path, kind: str
) -> None:
    inspect = {"edits": cleaning.inspect_edits, "inputs": cleaning.inspect_inputs}[kind]
    for days in (0.1, 2, 3, 31):
        folder = tmp_path / f"of-{days}"
        folder.mkdir()
        write(folder, "plan.yaml", days, size=100)
        write(folder, "plan.yaml~", 40)
        os.utime(folder, (NOW - 40 * DAY.total_seconds(),) * 2)
    assert names(inspect(tmp_path, BOUND, NOW)) == {"of-31"}
    assert names(inspect(tmp_path, 250, NOW)) == {"of-3"}
    assert names(inspect(tmp_path, 0, NOW)) == {"of-2"}
    settings = Settings(_env_file=None, state_dir=tmp_path / "state")
    (StateDir.of(settings).path / kind / "of-r").mkdir(parents=True)
    target = Target("", store_url=(tmp_path / "none").as_uri())
    kinds = cleaning.list_kinds(settings, target, frozenset(), DAY, NOW)
    (found,) = [each for each in kinds if each.name == kind]
    assert [each.path.name for each in found.staying] == ["of-r"], "`clean` knows the folder"


async def test_of_the_snapshots_goes_what_nobody_opened_for_a_day(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    snapshot = await bench.snapshot(Repository.with_a_file(tmp_path / "repo"))
    place = snapshot.root.parent
    folder = place.parent
    assert names(cleaning.inspect_snapshots(folder, BOUND, NOW)) == set()
    os.utime(place, (LONG_AGO, LONG_AGO))
    assert names(cleaning.inspect_snapshots(folder, BOUND, NOW)) == {place.name}
    assert list(folder.iterdir()) == []


async def test_above_the_bound_a_snapshot_goes_an_hour_after_it_was_opened(tmp_path: Path) -> None:
    snapshot = await Bench(tmp_path).snapshot(Repository.with_a_file(tmp_path / "repo"))
    place = snapshot.root.parent
    assert names(cleaning.inspect_snapshots(place.parent, 1, NOW)) == set()
    os.utime(place, (NOW - 4_000,) * 2)
    assert names(cleaning.inspect_snapshots(place.parent, 1, NOW)) == {place.name}


def test_what_is_not_there_needs_no_cleaning(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, state_dir=tmp_path / "nothing")
    target = Target("", store_url=(tmp_path / "none").as_uri())
    kinds = cleaning.list_kinds(settings, target, frozenset(), DAY, NOW)
    assert [(kind.going, kind.staying) for kind in kinds] == [((), ())] * 6


# ---------------------------------------------------------------- who cleans


@pytest.fixture
def deployment(runs: Runs, tmp_path: Path) -> Iterator[tuple[Settings, Target]]:
    settings = Settings(_env_file=None, state_dir=tmp_path / "state")
    StateDir.of(settings).create()
    yield settings, Target("", store_url=runs.store.root.as_uri())


async def test_a_worker_cleans_at_once_and_then_once_a_day(
    runs: Runs, deployment: tuple[Settings, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, target = deployment
    times = 0
    clean_for_real = daily.clean

    async def counted(*of: Any) -> None:
        nonlocal times
        times += 1
        await clean_for_real(*of)

    monkeypatch.setattr(daily, "clean", counted)
    monkeypatch.setattr(daily, "LOOK_SECONDS", 0.001)
    free = await runs.store.put(b"nobody's")
    age(runs.store.root, days=365)
    keeping = asyncio.create_task(daily.keep_clean(settings, target, runs.client))
    async with asyncio.timeout(30):
        while any(blob.digest == free for blob in runs.store.files()):  # noqa: ASYNC110 - files tell
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert times == 1
        os.utime(StateDir.of(settings).cleaned, (NOW - 1.1 * DAY.total_seconds(),) * 2)
        while times == 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_what_goes_wrong_while_cleaning_ends_no_worker(
    runs: Runs,
    deployment: tuple[Settings, Target],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings, target = deployment

    async def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(daily, "clean", broken)
    keeping = asyncio.create_task(daily.keep_clean(settings, target, runs.client))
    while "the disk is gone" not in caplog.text:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not keeping.done()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_a_server_that_cannot_be_read_costs_the_store_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = DirectoryStore(tmp_path / "store")
    digest = await store.put(b"who knows")
    age(store.root, days=365)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    settings = Settings(_env_file=None, state_dir=tmp_path / "state", store_url=store.root.as_uri())
    old = write(StateDir.of(settings).journal, "a.answer", days=31)
    monkeypatch.setattr("holdfast.client.connecting.CONNECT_SECONDS", 0.3)
    assert await clean.run(settings, yes=False, only_embedded=False) == Code.COMPLETE
    assert old.exists(), "nobody agreed"
    assert await clean.run(settings, yes=True, only_embedded=False) == Code.COMPLETE
    said = capsys.readouterr()
    assert "cannot be read" in " ".join(said.out.split()) and "Removed 1" in said.err
    assert not old.exists()
    assert await store.get(digest) == b"who knows"
