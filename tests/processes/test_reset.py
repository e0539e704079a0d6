"""Runs that no worker can go on with, and how `reset` frees them: a history that today's code does
not repeat, and a result whose payload is lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from conftest import Handle, Runs, seen
from driving import subtask as subtask_of
from holdfast.activities.asking.journal import FileJournal
from holdfast.certifying.deployment import outcome
from holdfast.cli.commands.runs import show
from holdfast.cli.commands.steering import cancel, reset
from holdfast.cli.screen.exits import Code, Exit
from holdfast.client import orders
from holdfast.client.reading import Reader
from holdfast.client.runs import Run
from holdfast.contracts import Bill, Goal, Limits, Lost, Order, Report, Undone, seal_word
from holdfast.contracts.events import AnyEvent
from holdfast.errors import HoldfastError, RunStuck
from holdfast.intake.connection import Connection
from holdfast.replaying import faults
from holdfast.rules import next_moves
from holdfast.rules.timers import to_datetime
from holdfast.state.events import WasReset
from holdfast.state.moves import Ask, Move
from holdfast.state.run import State
from holdfast.storage.payloads import find_stored
from outcomes import begun
from scripted import Line, ScriptedModel, digests, plans, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio]

PLAN = ready(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"), subtask("t4"))
GOAL = Goal(text="Compare", plan=PLAN, use_models=True)


@pytest.fixture
def connection(connection: Connection, runs: Runs) -> Connection:
    """To runs that get stuck when they are replayed."""
    runs.kept = 0
    runs.task_timeout = timedelta(seconds=2)
    return connection


def backwards(state: State) -> list[Move]:
    """The same moves, what works on subtasks the other way round: a worker of another version."""
    found = list(NEXT_MOVES(state))
    work = [each for each in found if isinstance(each, Ask) and each.call.kind == "work"]
    turned = iter(reversed(work))
    return [next(turned) if each in work else each for each in found]


NEXT_MOVES = next_moves.next_moves


def script(**lines: list[Line]) -> ScriptedModel:
    answers: dict[str, list[Line]] = {
        f"t{number}": [works(f"found {number}")] for number in range(1, 5)
    }
    return ScriptedModel({**answers, "synthesize": [synthesizes("All [t3].")], **lines})


@asynccontextmanager
async def poisoned(
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
    model: ScriptedModel,
    goal: Goal = GOAL,
    journal: str = "",
) -> AsyncIterator[Handle]:
    """A run whose history was written by moves in another order, up to a call that is still in
    flight: t4's. `journal`: of the worker that takes it over, when it is another machine's.
    """
    with monkeypatch.context() as patched:
        patched.setattr(next_moves, "next_moves", backwards)
        async with runs.worker(model), asyncio.timeout(60):
            handle = await runs.start(goal, skipping=False)
            await model.asked("t4")
            await seen(handle, lambda view: settled(view, "t1", "t2", "t3"))
    if journal:
        runs.journal = FileJournal(runs.folder / journal)
    async with runs.worker(model), asyncio.timeout(100):
        yield handle


def settled(view: Any, *ids: str) -> bool:
    return all(row.status == "complete" for row in view.rows if row.id in ids) and bool(view.rows)


async def stuck(connection: Connection, run_id: str) -> str:
    reader = Reader(connection, run_id)
    async with reader.following():
        while not (found := (await reader.look()).stuck):
            reader.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await reader.changed.wait()
    return found


async def result(runs: Runs, run_id: str) -> Report:
    handle: Handle = runs.client.get_workflow_handle(run_id, result_type=Report)
    return await outcome(handle)


def unadvised(report: Report) -> list[str]:
    """The notes of a report but the one that its plan has more agents than work."""
    return [each for each in report.notes if not each.startswith("More agents")]


async def test_a_run_that_is_stuck_says_so_and_reset_frees_it_without_paying_again(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    unheard = asyncio.Event()
    model = script(t4=[unheard, works("found 4")])
    async with poisoned(runs, monkeypatch, model) as handle:
        unheard.set()
        said = await stuck(connection, handle.id)
        assert "the run is stuck: its next step failed" in said
        assert "TMPRL1100" in said
        assert f"starter.py reset {handle.id}" in said
        assert await show.run(connection, handle.id, False, None) == Code.COMPLETE
        assert "the run is stuck" in " ".join(capsys.readouterr().out.split())
        with pytest.raises(RunStuck, match=r"the run is stuck.*reset"):
            await orders.send(connection, handle.id, "pause", Order())
        capsys.readouterr()
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        told = capsys.readouterr().err
        report = await result(runs, handle.id)
    assert "today's code does not take the decisions of event" in told
    assert "Failure {" not in told
    for id in ("work-t1-1", "work-t2-1", "work-t3-1"):
        assert id in told
    assert report.status == "complete"
    # t4 was cut when its worker went, and by what the scripted model says before it left: that is
    # no matter of the reset.
    assert sorted(model.heard) == ["critique", "synthesize", "t1", "t2", "t3", "t4", "t4"]
    assert report.model_calls == len(model.heard) - 1
    [note] = unadvised(report)
    assert "reset by" in note


async def test_a_stream_of_events_goes_on_through_a_reset_and_doubles_none(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = asyncio.Event()
    model = script(t4=[unheard, works("found 4")])
    async with poisoned(runs, monkeypatch, model) as handle:
        run = Run(connection, handle.id)
        told: list[AnyEvent] = []

        async def follow() -> None:
            # One by one: whoever looks meanwhile sees what was told so far.
            async for event in run.events():
                told.append(event)  # noqa: PERF401

        following = asyncio.create_task(follow())
        unheard.set()
        await stuck(connection, handle.id)
        before = [each.id for each in told]
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        await result(runs, handle.id)
        async with asyncio.timeout(60):
            await following
        kinds = [each.kind for each in told]
        assert before and before == [each.id for each in told[: len(before)]]
        assert len({each.id for each in told}) == len(told)
        assert kinds.count("run_reset") == 1 and kinds[-1] == "run_ended"
        behind = [each async for each in run.events(before[-1])]
        assert behind == told[len(before) :], "whoever left before the reset is told the same"


async def test_what_is_asked_again_elsewhere_stays_in_the_bill_and_the_report_says_so(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: dict[str, list[Line]] = {
        f"t{each}": [works("once"), works("twice")] for each in (1, 2, 3)
    }
    model = script(t4=[asyncio.Event(), works("found 4")], **again)
    async with poisoned(runs, monkeypatch, model, journal="of another machine") as handle:
        await stuck(connection, handle.id)
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        report = await result(runs, handle.id)
    assert [each.content for each in report.findings] == ["twice", "twice", "twice", "found 4"]
    assert sorted(model.heard) == sorted([*("t1", "t2", "t3", "t4") * 2, "synthesize", "critique"])
    assert report.model_calls == len(model.heard) - 1, "t4's first was cut before it left"
    [paid] = [each for each in report.notes if "was paid before the run was reset" in each]
    assert all(each in paid for each in ("work-t1-1", "work-t2-1", "work-t3-1"))
    kept = sum((each.dollars or Decimal(0) for each in report.findings), Decimal(0))
    assert report.dollars is not None and report.dollars > kept * 2


async def test_what_a_reset_has_lost_counts_against_the_cap(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = GOAL.model_copy(update={"limits": Limits(model_calls=6)})
    model = script(t4=[asyncio.Event()])
    async with poisoned(runs, monkeypatch, model, goal, journal="of another machine") as handle:
        await stuck(connection, handle.id)
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        report = await result(runs, handle.id)
    assert report.model_calls <= 6
    assert report.status in ("budget_stopped", "failed")


async def test_the_time_in_which_a_run_was_stuck_is_no_working_time(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = GOAL.model_copy(update={"limits": Limits(deadline_seconds=6)})
    model = script(t4=[asyncio.Event(), works("found 4")])
    async with poisoned(runs, monkeypatch, model, goal) as handle:
        await stuck(connection, handle.id)
        deadline = await passed(handle)
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        report = await result(runs, handle.id)
    assert report.status == "complete", report.notes
    assert report.finished is not None and report.finished > deadline


async def passed(handle: Handle) -> datetime:
    """The deadline of the work, once its timer has fired in vain."""
    while True:
        history = await handle.fetch_history()
        fired = [each for each in history.events if each.HasField("timer_fired_event_attributes")]
        if fired:
            return to_datetime(fired[-1].event_time.ToNanoseconds())
        await asyncio.sleep(0.1)


async def test_a_cancel_of_a_stuck_run_says_so_and_is_carried_out_once_it_is_free(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with poisoned(runs, monkeypatch, script(t4=[asyncio.Event()])) as handle:
        with pytest.raises(Exit, match="waits until it is free: the run is stuck") as said:
            await cancel.run(connection, handle.id)
        assert said.value.code == Code.FAILED
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        assert "Told to the run since then, and told again: cancel." in capsys.readouterr().err
        with pytest.raises(WorkflowFailureError) as ended:
            await result(runs, handle.id)
        assert isinstance(ended.value.cause, CancelledError)


async def test_without_a_person_and_without_yes_nothing_is_done(
    runs: Runs,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = script(t4=[asyncio.Event(), works("found 4")])
    async with poisoned(runs, monkeypatch, model) as handle:
        await stuck(connection, handle.id)
        before = await handle.describe()
        assert await reset.run(connection, handle.id, 0, yes=False) == Code.REFUSED
        assert "Nothing was done" in capsys.readouterr().err
        assert (await handle.describe()).run_id == before.run_id
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        assert (await result(runs, handle.id)).status == "complete"


async def test_a_healthy_run_is_refused_and_can_be_taken_back_by_hand(
    runs: Runs, connection: Connection
) -> None:
    unheard = asyncio.Event()
    model = script(t4=[unheard, works("found 4")])
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t4")
        await seen(handle, lambda view: settled(view, "t1", "t2", "t3"))
        with pytest.raises(Exit, match="nothing to free") as refused:
            await reset.run(connection, handle.id, 0, yes=True)
        assert refused.value.code == Code.REFUSED
        with pytest.raises(Exit, match="--event 2: no WorkflowTaskCompleted event; the latest: 4"):
            await reset.run(connection, handle.id, 2, yes=True)
        assert await reset.run(connection, handle.id, 4, yes=True) == Code.COMPLETE
        unheard.set()
        report = await result(runs, handle.id)
        assert report.status == "complete"
        assert report.model_calls >= len(model.heard)
        assert [model.heard.count(each) for each in ("t1", "t2", "t3")] == [1, 1, 1]
        with pytest.raises(Exit, match=r"is over.*fork"):
            await reset.run(connection, handle.id, 0, yes=True)
    with pytest.raises(HoldfastError, match="no run 'nobody'"):
        await reset.run(connection, "nobody", 0, yes=True)


async def test_a_run_whose_result_is_lost_is_freed_by_asking_for_it_again(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    unheard = asyncio.Event()
    long = "It was examined, and found to be sound. " * 1_000
    model = script(t1=[works(long)], t4=[unheard, works("found 4")], digest=[digests("sound")])
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t4")
        await seen(handle, lambda view: settled(view, "t1", "t2", "t3"))
        [digest, *_] = [
            json.loads(each.data)["claimData"]["sha256"]
            for event in (await handle.fetch_history()).events
            if event.HasField("activity_task_completed_event_attributes")
            for each in find_stored([event])
        ]
        (runs.store.root / digest[:2] / digest).unlink()
        unheard.set()
        await stuck(connection, handle.id)
        assert await reset.run(connection, handle.id, 0, yes=True) == Code.COMPLETE
        told = capsys.readouterr().err
        report = await result(runs, handle.id)
    assert f"cannot be read: blob {digest} of the store {runs.store.root.as_uri()} is lost" in told
    assert report.status == "complete" and report.findings[0].content == long
    assert model.heard.count("t1") == 1, "the journal had the answer"


async def test_a_run_is_reset_twice_and_each_payment_counts_once(
    runs: Runs, connection: Connection
) -> None:
    unheard = asyncio.Event()
    model = script(t4=[unheard, works("found 4")])
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t4")
        for _ in range(2):
            await seen(handle, lambda view: settled(view, "t1", "t2", "t3"))
            first, *_ = faults.reset_points((await handle.fetch_history()).events)
            assert await reset.run(connection, handle.id, first, yes=True) == Code.COMPLETE
        unheard.set()
        report = await result(runs, handle.id)
    assert report.status == "complete"
    assert [model.heard.count(each) for each in ("t1", "t2", "t3")] == [1, 1, 1]
    paid = [each for each in report.notes if "was paid before the run was reset" in each]
    assert not any(f"work-t{each}-1" in note for note in paid for each in (1, 2, 3))


@pytest.mark.parametrize(
    "told",
    [
        [],
        ["x"],
        [{"execution": "e", "at": "2026-01-01T00:00:00"}],
        [{"execution": "e", "at": "9999-12-31T23:59:59Z"}],
        [{"execution": "e", "at": "2026-01-01T00:00:00Z"}, "more"],
    ],
    ids=["nothing", "a word", "a time of no zone", "the end of time", "too much"],
)
async def test_what_a_stranger_says_of_a_reset_stops_no_run_and_blinds_no_reader(
    runs: Runs, told: list[object]
) -> None:
    held = asyncio.Event()
    steps: dict[str, list[Line]] = {
        "plan": [plans(subtask("t1"))],
        "t1": [held, works("one")],
        "synthesize": [synthesizes("done")],
    }
    model = ScriptedModel(steps)
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(Goal(text="Compare", use_models=True), skipping=False)
        await model.asked("t1")
        await handle.signal("reset", args=told)
        held.set()
        report = await handle.result()
    assert report.status == "complete"


async def test_a_run_whose_reset_the_server_refuses_goes_on_with_its_own_bill(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise RPCError("busy", RPCStatusCode.UNAVAILABLE, b"")

    service = type(connection.client.workflow_service)
    unheard = asyncio.Event()
    model = script(t4=[unheard, works("found 4")])
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(GOAL, skipping=False)
        await model.asked("t4")
        await seen(handle, lambda view: settled(view, "t1", "t2", "t3"))
        first, *_ = faults.reset_points((await handle.fetch_history()).events)
        with monkeypatch.context() as patched:
            patched.setattr(service, "reset_workflow_execution", refuse, raising=False)
            with pytest.raises(Exit, match="not reset: busy"):
                await reset.run(connection, handle.id, first, yes=True)
        unheard.set()
        report = await result(runs, handle.id)
    assert report.status == "complete" and not unadvised(report)
    assert report.model_calls == len(model.heard)


def test_a_reset_that_the_server_refused_after_it_was_told_leaves_no_trace() -> None:
    run = begun(subtask_of("t1"))
    before = run.state.ledger
    lost = Lost(id="plan-1", bill=Bill(calls=1, dollars=Decimal("0.5")))
    told = Undone(execution="e", at=run.now, lost=(lost,), seal=seal_word("word"))
    run.put(WasReset(told))
    assert run.state.ledger.lost and run.state.resets
    run.put(WasReset(Undone(execution="e", at=run.now, withdrawn=True, word="word")))
    assert run.state.ledger == before and run.state.resets == ()
