"""A run as a Python program starts, follows and steers it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

import holdfast
from conftest import Runs
from holdfast import (
    Holdfast,
    IdTaken,
    NoSuchRun,
    OrderRefused,
    PlanWaits,
    Refused,
    Run,
    RunEnded,
    RunOver,
    RunRequest,
)
from holdfast.client.events import Place
from holdfast.client.holdfast import as_input
from holdfast.contracts.events import AnyEvent
from holdfast.history.fold import Fold
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, lost, plans, subtask, synthesizes, works
from steered import script

ROUND: dict[str, Any] = {}
ROUND["x"] = ROUND
pytestmark = pytest.mark.anyio


@pytest.fixture
async def hf(runs: Runs, connection: Connection) -> AsyncIterator[Holdfast]:
    # Who follows waits for people, not for a clock.
    with runs.env.with_time_skipping_disabled():
        yield Holdfast.on(connection)


async def told(run: Run, after: str = "") -> list[AnyEvent]:
    async with asyncio.timeout(60):
        return [each async for each in run.events(after)]


async def test_a_program_starts_follows_approves_and_reads_a_run(runs: Runs, hf: Holdfast) -> None:
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", approval="always", dollars=2, id="py-ten")
        seen = []
        async for event in run:
            seen.append(event.kind)
            if isinstance(event, PlanWaits):
                assert event.price.expected is not None and event.price.expected < 1
                assert await run.approve(by="ada") == "the plan is approved"
        report = await run.report()
    assert seen == [
        "run_started", "plan_made", "plan_waits", "order_taken", "subtask_started",
        "subtask_ended", "subtask_started", "subtask_ended", "run_ended",
    ]  # fmt: skip
    assert (report.status, report.answer.split(" [")[0]) == ("complete", "Both")
    again = await told(await hf.run_of("py-ten"))
    assert [each.kind for each in again] == seen
    (order,) = [each for each in again if each.kind == "order_taken"]
    assert (order.command, order.by, order.refused) == ("approve", "ada", "")
    assert isinstance(again[-1], RunEnded) and again[-1].dollars == report.dollars


async def test_a_stream_that_is_cut_at_any_event_goes_on_behind_it(
    runs: Runs, hf: Holdfast
) -> None:
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", id="py-cut")
        await run.report()
        whole = await told(run)
        ids = [each.id for each in whole]
        assert len({*ids}) == len(ids)
        assert ids == sorted(ids, key=lambda each: Place.parse(each)[0])
        for number in range(len(ids)):
            behind = await told(await hf.run_of("py-cut"), ids[number])
            assert [each.id for each in behind] == ids[number + 1 :]


@pytest.mark.long
async def test_a_stream_that_is_cut_after_each_event_while_the_run_goes_on_loses_and_doubles_none(
    runs: Runs, hf: Holdfast
) -> None:
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", id="py-live")
        got: list[AnyEvent] = []
        while not (got and got[-1].kind == "run_ended"):
            async with asyncio.timeout(60):
                async for event in run.events(got[-1].id if got else ""):
                    got.append(event)
                    break
        assert got == await told(run)


async def test_an_outage_is_told_with_its_end(runs: Runs, hf: Holdfast) -> None:
    lines: dict[str, Any] = {
        "plan": [plans(subtask("t1"))],
        "t1": [lost(), works("one")],
        "synthesize": [synthesizes("One [t1].")],
        "reach": [lost(), None],
    }
    async with runs.worker(ScriptedModel(lines)):
        run = await hf.start("Compare three engines", id="py-away")
        kinds = [each.kind for each in await told(run)]
    away = kinds.index("endpoint_away")
    assert kinds[away + 1 :].count("endpoint_back") == 1


async def test_the_same_request_and_id_is_one_run_and_another_is_refused(
    runs: Runs, hf: Holdfast
) -> None:
    async with runs.worker(script()):
        first = await hf.start("Compare three engines", id="py-once")
        second = await hf.start("Compare three engines", id="py-once")
        assert (first.attached, second.attached) == (False, True)
        with pytest.raises(IdTaken, match="in use by a run with another goal"):
            await hf.start("Compare two engines", id="py-once")
        with pytest.raises(IdTaken, match="has another approval"):
            await hf.start("Compare three engines", id="py-once", approval="always")
        await first.report()


async def test_orders_that_make_no_sense_raise_with_the_reason(runs: Runs, hf: Holdfast) -> None:
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", approval="always", id="py-orders")
        preview = await run.preview()
        assert [row.id for row in preview.subtasks] == ["t1", "t2"]
        assert (await run.subtask("t2")).id == "t2"
        with pytest.raises(NoSuchRun, match="run py-orders has no subtask 't3'; it has t1, t2"):
            await run.subtask("t3")
        with pytest.raises(OrderRefused, match="the run is not paused"):
            await run.resume()
        with pytest.raises(Refused, match="unknown role 'wizard'"):
            assert preview.plan is not None
            first, second = preview.plan.subtasks
            changed = first.model_copy(update={"role": "wizard"})
            await run.edit(preview.plan.model_copy(update={"subtasks": (changed, second)}))
        await run.raise_cap(3)
        assert (await run.look()).dollars_cap == Decimal(3)
        await run.reject("too dear")
        report = await run.report()
        assert report.status == "declined"
        with pytest.raises(RunOver, match="is over"):
            await run.pause()
        with pytest.raises(RunOver, match=f"failed rows alone again, .* --reuse {run.id}"):
            await run.retry("t1", rows="failed")
    with pytest.raises(NoSuchRun, match="no run 'nobody'"):
        await hf.run_of("nobody")


async def test_a_cancelled_run_keeps_what_it_had_and_a_fork_goes_on_from_it(
    runs: Runs, hf: Holdfast
) -> None:
    held = asyncio.Event()
    async with runs.worker(script(t2=[held, works("two"), works("two")])):
        run = await hf.start("Compare three engines", id="py-cancel")
        async for event in run:
            if event.kind == "subtask_started" and event.subtask == "t2":
                await run.cancel(by="ada")
                held.set()
        report = await run.report()
        assert report.status == "cancelled"
        fork = await run.fork(id="py-fork")
        assert (await fork.report()).status == "complete"
        listed = {each.id async for each in hf.runs()}
    assert {"py-cancel", "py-fork"} <= listed


@pytest.mark.long
async def test_a_fork_of_a_plan_that_a_person_rejected_waits_for_a_person_again(
    runs: Runs, hf: Holdfast
) -> None:
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", approval="always", id="py-rejected")
        async for event in run:
            if event.kind == "plan_waits":
                await run.reject("too dear", by="ada")
        assert (await run.report()).status == "declined"
        with pytest.raises(Refused, match=r"id '\.\./x'"):
            await run.fork(id="../x")
        fork = await run.fork(id="py-fork-of-rejected")
        async for event in fork:
            if event.kind == "plan_waits":
                await fork.reject("still too dear", by="ada")
        assert (await fork.report()).status == "declined"


class Engines(BaseModel):
    best: str
    count: int


async def test_an_answer_of_a_class_of_ones_own_is_typed(runs: Runs, hf: Holdfast) -> None:
    answer: Any = {"best": "A", "count": 3}
    async with runs.worker(script(synthesize=[synthesizes(answer)])):
        run = await hf.start("Compare three engines", answer=Engines, id="py-typed")
        report = await run.report()
    assert report.data == Engines(best="A", count=3)
    later = await (await hf.run_of("py-typed", answer=Engines)).report()
    assert later.data == report.data
    assert report.data is not None and report.data.count == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dollars": float("nan")}, "dollars: "),
        ({"dollars": -1}, "dollars: "),
        ({"limits": {"dolars": 2}}, "unknown limit 'dolars'"),
        ({"playbok": "code-review"}, "playbok: there is no such field"),
        ({"inputs": {"a": 5}}, "an input is a int"),
        ({"inputs": {"a": [1, 2]}}, "an input is a list of other things"),
        ({"inputs": {"a": [{(1, 2): 3}]}}, "a row that is not plain data"),
        ({"inputs": {"a": [{"x": float("nan")}]}}, "a row that is not plain data"),
        ({"inputs": {"a": [ROUND]}}, "a row that is not plain data"),
        ({"inputs": {"a": "text:a\0b"}}, "has a NUL in it"),
        ({"inputs": ["a"]}, "inputs: give a mapping"),
        ({"columns": 5}, "answer.columns: "),
        ({"answer": 5}, "answer: give markdown"),
        ({"inputs": {"../a": [{"x": 1}]}}, "inputs.../a: "),
        ({"inputs": {"/tmp/a": b"b"}}, "inputs./tmp/a: "),
        ({"inputs": {"a=text:b": "text:c"}}, "inputs.a=text:b: "),
        ({"inputs": {"a": "missing.txt"}}, "there is no file or folder 'missing.txt'"),
        ({"inputs": {"a": [{"x": 1}, {"y": 2}]}}, "not all rows have the same keys"),
        ({"roles": ["analist"]}, "unknown role 'analist' (did you mean 'analyst'?)"),
        ({"id": "../x"}, "id '../x'"),
        ({"answer": {"type": "object"}}, "schema"),
    ],
)
async def test_what_cannot_be_asked_for_is_refused_before_anything_starts(
    hf: Holdfast, options: dict[str, Any], said: str
) -> None:
    before = [each.id async for each in hf.runs()]
    with pytest.raises(Refused) as refused:
        await hf.start("Compare three engines", **options)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert [each.id async for each in hf.runs()] == before


async def test_an_order_that_cannot_be_is_refused_before_it_is_sent(hf: Holdfast) -> None:
    run = Run(hf.connection, "none")
    wrong: Any = "x"
    number: Any = 5
    for ordered in (
        run.approve(wrong),
        run.pause(by=number),
        run.cancel(by=wrong * 201),
        run.edit(wrong),
        run.retry("t1", tier=wrong),
    ):
        with pytest.raises(Refused):
            await ordered


async def test_bytes_and_rows_are_files_that_a_worker_reads(hf: Holdfast) -> None:
    inputs = {"notes": b"It rose.", "rates": [{"day": 1, "rate": 2.5}, {"day": 2, "rate": 2.6}]}
    request = RunRequest.model_validate(
        {"goal": "Which rates?", "inputs": {name: as_input(each) for name, each in inputs.items()}}
    )
    goal = await hf.goal_of(request)
    notes, rates = (Path(each.value) for each in goal.inputs)
    assert notes.read_bytes() == b"It rose."
    assert json.loads(rates.read_text()) == inputs["rates"]
    assert rates.suffix == ".json" and rates.stat().st_mode & 0o077 == 0
    assert (await hf.goal_of(request)) == goal, "the same content is the same file"


async def test_what_others_handed_in_is_no_place_that_a_request_may_name(hf: Holdfast) -> None:
    payroll = as_input(b"Ada earns 100.")
    ours = RunRequest.model_validate({"goal": "Who earns what?", "inputs": {"a": payroll}})
    file = Path((await hf.goal_of(ours, below=())).inputs[0].value)
    assert file.is_file()
    for named in (file, file.parent, file.parent.parent):
        theirs = RunRequest.model_validate(
            {"goal": "Who earns what?", "inputs": {"a": str(named), "b": as_input(b"mine")}}
        )
        with pytest.raises(Refused, match="below no allowed root"):
            await hf.goal_of(theirs, below=())


async def test_a_workflow_that_is_not_ours_is_no_run_and_gets_no_order(hf: Holdfast) -> None:
    client = hf.connection.client
    theirs = await client.start_workflow("TheirPayroll", id="payroll", task_queue="theirs")
    run = Run(hf.connection, "payroll")
    for asked in (hf.run_of("payroll"), run.look(), run.cancel(), run.pause(), run.approve()):
        with pytest.raises(NoSuchRun):
            await asked
    with pytest.raises(NoSuchRun):
        await told(run)
    kinds = [each.event_type for each in (await theirs.fetch_history()).events]
    assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED not in kinds
    await theirs.terminate()


@pytest.mark.parametrize("id", ["", "a/b", "../a", "x" * 300])
async def test_what_is_no_id_names_no_run(hf: Holdfast, id: str) -> None:
    with pytest.raises(NoSuchRun):
        await hf.run_of(id)


@pytest.mark.parametrize("after", ["x", "0", "1.0", "-1", "57@zz", "9" * 400])
async def test_what_names_no_event_is_refused(hf: Holdfast, after: str) -> None:
    with pytest.raises(Refused, match="is no event of a run"):
        await told(Run(hf.connection, "whatever"), after)


def test_all_that_is_promised_is_there_and_in_order() -> None:
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None
    assert {*holdfast.__all__} <= {*dir(holdfast)}


def test_places_are_in_the_order_of_the_history() -> None:
    ids = ["4", "19.1", "19", "31.1", "31.2", "31", "46"]
    places = [Place.parse(each)[0] for each in ids]
    assert all(one < other for one, other in itertools.pairwise(places))


@pytest.mark.long
async def test_a_second_look_folds_only_what_is_new_and_one_in_vain_is_made_anew(
    runs: Runs, hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = 0
    take = Fold.take

    async def counted(fold: Fold, event: HistoryEvent) -> None:
        nonlocal folded
        folded += event.event_id > fold.last_event
        await take(fold, event)

    monkeypatch.setattr(Fold, "take", counted)
    async with runs.worker(script()):
        run = await hf.start("Compare three engines", approval="always", id="py-kept")
        await run.preview()
        folded = 0
        first = await run.look(wait=False)
        begun = folded
        assert await run.look(wait=False) == first and folded == begun > 5
        await run.approve()
        report = await run.report()
        folded = 0
        last = await run.look(wait=False)
    assert last.phase == "closed" and last.dollars_spent == report.dollars
    assert run._reader.fold is not None
    assert folded == run._reader.fold.last_event - begun
    run._reader.fold.unreadable = "a blob is away"
    assert "a blob is away" in (await run.look(wait=False)).notes[0]
    assert (await run.look(wait=False)).notes == last.notes
