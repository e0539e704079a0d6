"""A map in a run: a child of its own, in slices of money, that people steer row by row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.service import RPCError

from conftest import Handle, Runs, seen
from holdfast.certifying.deployment import outcome
from holdfast.cli.commands.steering import reset
from holdfast.cli.screen.exits import Code
from holdfast.client.forking import ForkChange, describe_fork, fork_goal, with_rows
from holdfast.contracts import Capabilities, Goal, GoalInput, Order, Plan, Report
from holdfast.contracts.plans import MapSpec
from holdfast.intake.connection import Connection
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.rendering.findings import tried
from holdfast.replaying import faults
from holdfast.replaying.replay import replay
from holdfast.rules.prices import LOST
from holdfast.workflows import WORKFLOWS
from outage import waits
from parameters import rest_long
from scripted import USAGE, Lost, ScriptedModel, lost, ready, subtask, synthesizes, works
from scripted_maps import ScriptedMaps

pytestmark = pytest.mark.anyio


def plan(*others: Any, **spec: Any) -> Plan:
    told = {"over": "tickets", "by": "records", "lane": "now", "most": 10_000, **spec}
    mapped = MapSpec.model_validate(told)
    whole = ready(subtask("classify", tier="haiku", inputs=["tickets"]), *others)
    first, *rest = whole.subtasks
    return whole.model_copy(update={"subtasks": (first.model_copy(update={"map": mapped}), *rest)})


def goal(*others: Any, limits: dict[str, Any] | None = None, **spec: Any) -> Goal:
    more = {each: spec.pop(each) for each in ("ask_people",) if each in spec}
    lines = "\n".join(['{"text": "broken"}'] * spec.pop("count", 1_000))
    return Goal.model_validate(
        {
            "text": "Classify the tickets",
            "use_models": True,
            "inputs": [GoalInput(name="tickets", kind="text", value=lines)],
            "plan": plan(*others, **spec),
            "limits": {"dollars": "5", **(limits or {})},
            **more,
        }
    )


def model(**script: Any) -> ScriptedModel:
    return ScriptedModel({"synthesize": [synthesizes("Done [classify].")], **script})


@pytest.fixture(autouse=True)
async def every_segment_replays(runs: Runs) -> AsyncIterator[None]:
    """What a map did follows from its events alone, arguments and all."""
    yield
    for handle in runs.handles:
        number = 1
        while True:
            segment = runs.client.get_workflow_handle(f"{handle.id}.classify.{number}")
            try:
                history = await segment.fetch_history()
            except RPCError:
                break
            assert await replay(history, WORKFLOWS, runs.store) == ()
            number += 1


async def events(runs: Runs, workflow_id: str) -> list[Any]:
    return list((await runs.client.get_workflow_handle(workflow_id).fetch_history()).events)


async def test_a_map_asks_its_rows_in_a_child_and_hands_its_counts_to_whoever_waits(
    runs: Runs,
) -> None:
    maps = ScriptedMaps(250)
    asked = model(report=[works("All is well.")])
    report = await runs.run(goal(subtask("report", "classify")), asked, maps=maps)
    assert report.status == "complete", report.gaps
    found = report.findings[0]
    assert found.content.startswith("250 of 250 rows complete.")
    assert found.data["table"] == "classify"
    assert sorted(maps.asked) == [("now", n) for n in range(250)]
    assert found.dollars is not None and f"{found.dollars:.4f}" == "0.0250"
    told = next(each for each in asked.requests if "part report of the goal" in str(each))
    assert "250 of 250 rows complete" in str(told), "and it may ask the table"
    assert report.model_calls == 3, "rows count in dollars"


@pytest.mark.parametrize("count", rest_long([1_000, 10_000]))
async def test_many_rows_are_few_events_of_the_child_and_hardly_any_of_the_run(
    runs: Runs, count: int
) -> None:
    report = await runs.run(goal(count=count), model(), maps=ScriptedMaps(count))
    assert report.status == "complete", report.gaps
    run = runs.handles[-1].id
    child = await events(runs, f"{run}.classify.1")
    assert len(child) <= count * 0.4
    assert len(await events(runs, run)) < 60
    timeline = [
        event.user_metadata.summary.data.decode()
        for event in child
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert '"classify rows 301–400 · haiku · now"' in timeline


async def test_rows_that_fail_within_what_is_tolerated_leave_a_map_complete(runs: Runs) -> None:
    maps = ScriptedMaps(100, row=lambda n, _: "hopeless" if n == 7 else "complete")
    report = await runs.run(goal(), model(), maps=maps)
    assert report.status == "complete", report.gaps
    assert "99 of 100 rows complete, 1 failed." in report.findings[0].content
    assert "- row 7: it failed" in report.findings[0].content


async def test_too_many_failures_give_the_subtask_back_with_what_there_is(runs: Runs) -> None:
    maps = ScriptedMaps(1_000, row=lambda n, _: "hopeless" if n % 5 == 0 else "complete")
    report = await runs.run(goal(limits={"replans": 0}), model(), maps=maps)
    (found,) = report.findings
    assert found.status == "escalated" and found.escalation is not None
    assert found.why == "40 of 1,000 rows failed, more than 2 %"
    (gap,) = report.gaps
    named = "; ".join(f"row {n}: it failed" for n in range(0, 25, 5))
    assert gap.why == (
        f"{found.why}. These rows failed, among others: {named}."
        f" All: show {report.run_id} classify --rows failed"
    )
    assert len(maps.asked) <= 300, "a few chunks were out, and no more was asked"


async def test_a_person_lets_a_map_go_on_although_too_many_rows_fail(runs: Runs) -> None:
    maps = ScriptedMaps(300, row=lambda n, _: "hopeless" if n % 5 == 0 else "complete")
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(ask_people=True), skipping=False)
        view = await seen(handle, lambda view: view.waiting)
        assert "Answer 'go on' or 'stop'" in view.waiting[0].text
        with pytest.raises(Exception) as refused:
            await order(handle, "answer", text="perhaps")
        assert "takes 'go on' or 'stop'" in str(refused.value.__cause__)
        await order(handle, "answer", text="go on", by="ada")
        report = await outcome(handle)
    assert report.findings[0].status == "complete"
    assert len(maps.asked) == 300, "nothing was asked twice"
    assert "let go on by ada" in report.findings[0].sources[0]


async def order(handle: Handle, name: str, **fields: Any) -> str:
    told = Order.model_validate({"subtask_id": "classify", **fields})
    said: str = await handle.execute_update(name, told)
    return said


async def test_a_map_goes_on_in_slices_of_money_and_stops_within_the_cap(runs: Runs) -> None:
    maps = ScriptedMaps(600, dollars=Decimal("0.0005"))
    limits = {"dollars": "0.2", "replans": 0}
    report = await runs.run(goal(limits=limits), model(), maps=maps)
    assert report.status == "budget_stopped"
    assert report.dollars is not None and report.dollars <= Decimal("0.2")
    (found,) = report.findings
    assert found.status == "escalated" and "not asked" in found.content
    assert len(maps.asked) == len(dict.fromkeys(maps.asked)), "no row twice"


@pytest.mark.long
async def test_a_raise_lets_a_map_go_on_where_it_stood(runs: Runs) -> None:
    maps = ScriptedMaps(600, dollars=Decimal("0.0005"))
    wanted = goal(limits={"dollars": "0.2", "replans": 0})
    wanted = wanted.model_copy(update={"wait_for_raise": True})
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(wanted, skipping=False)
        await seen(handle, lambda view: view.waiting)
        limits = wanted.limits.model_copy(update={"dollars": Decimal(5)})
        await order(handle, "raise_cap", limits=limits)
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert sorted(n for _, n in maps.asked) == [*range(600)]


async def test_a_paused_map_holds_its_rows_and_goes_on_after_resume(runs: Runs) -> None:
    maps = ScriptedMaps(300, holds=asyncio.Event())
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(), skipping=False)
        await maps.begun.wait()
        await order(handle, "pause")
        await runs.client.get_workflow_handle(f"{handle.id}.classify.1").result()
        assert not maps.asked
        assert maps.holds is not None
        maps.holds.set()
        await order(handle, "resume")
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert sorted(n for _, n in maps.asked) == [*range(300)]


async def test_an_order_about_rows_ends_the_segment_and_the_next_one_carries_it_out(
    runs: Runs,
) -> None:
    maps = ScriptedMaps(300, holds=asyncio.Event(), settled=(5,))
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(), skipping=False)
        await maps.begun.wait()
        said = await order(handle, "supply", rows=True, ids=["6"], value="spam", by="ada")
        assert said == "1 row of classify has the result that was given"
        await runs.client.get_workflow_handle(f"{handle.id}.classify.1").result()
        assert maps.holds is not None
        maps.holds.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    (told,) = maps.orders
    assert (told.kind, told.ids, told.value, told.by) == ("supply", ("6",), "spam", "ada")
    assert sorted(n for _, n in maps.asked) == [n for n in range(300) if n != 5]
    assert "299 of 300 rows complete, 1 supplied." in report.findings[0].content


@pytest.mark.long
async def test_rows_of_a_map_that_has_ended_are_tried_again_before_anybody_builds_on_it(
    runs: Runs,
) -> None:
    failing = [3]
    maps = ScriptedMaps(
        100, row=lambda n, _: "hopeless" if n in failing else "complete", retry=(3,)
    )
    lens = asyncio.Event()
    asked = model(other=[lens, works("Other.")])
    async with runs.worker(asked, maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(subtask("other")), skipping=False)
        await seen(handle, lambda view: view.rows and view.rows[0].status == "complete")
        failing.clear()
        assert await order(handle, "retry", rows=True) == "1 row of classify is tried again"
        lens.set()
        report = await outcome(handle)
    assert report.findings[0].content.startswith("100 of 100 rows complete.")
    assert [n for _, n in maps.asked].count(3) == 2


@pytest.mark.long
async def test_a_map_by_batches_waits_for_days_if_need_be_and_costs_half(runs: Runs) -> None:
    maps = ScriptedMaps(1_000, batch_looks=20)
    told = goal(count=1_000, lane="batch", limits={"deadline_seconds": 200_000})
    report = await runs.run(told, model(), maps=maps, capabilities=with_batches)
    assert report.status == "complete", report.gaps
    assert maps.asked and {lane for lane, _ in maps.asked} == {"batch"}
    assert report.findings[0].dollars == Decimal("0.05")
    assert len(await events(runs, f"{runs.handles[-1].id}.classify.1")) < 400


async def test_an_order_about_rows_in_a_batch_says_so_and_open_ones_that_are_skipped_cancel_it(
    runs: Runs,
) -> None:
    maps = ScriptedMaps(1_000, batch_looks=10_000, settled=tuple(range(500, 1_000)))
    told = goal(lane="batch", limits={"deadline_seconds": 200_000})
    async with runs.worker(model(), maps=maps, capabilities=with_batches), asyncio.timeout(60):
        handle = await runs.start(told, skipping=False)
        await maps.begun.wait()
        said = await order(handle, "skip", rows=True, ids=["3", "4"])
        assert said == "2 rows of classify are skipped as soon as its open batches are back"
        said = await order(handle, "skip", rows=True, which="open")
        late = "rows of classify are skipped as soon as its open batches are cancelled and read"
        assert said == late
        report = await outcome(handle)
    assert maps.cancelled == ["batch-1"]
    assert [(each.ids, each.which) for each in maps.orders] == [
        (("3", "4"), "failed"),
        ((), "open"),
    ]
    assert report.status == "complete" and report.dollars == Decimal("0.025"), report.gaps
    assert [(each.about, each.refused) for each in report.orders] == [("500 rows", "")] * 2


async def test_an_order_that_concerns_no_row_is_refused_by_what_came_of_it(runs: Runs) -> None:
    maps = ScriptedMaps(300, holds=asyncio.Event())
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(), skipping=False)
        await maps.begun.wait()
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await order(handle, "retry", rows=True, which="open")
        assert "retry takes rows that are failed or skipped, or ids" in str(refused.value.cause)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await order(handle, "skip", rows=True, ids=["nope"])
        assert "no row has the id 'nope'" in str(refused.value.cause)
        assert maps.holds is not None
        maps.holds.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert [each.refused for each in report.orders] == ["no row has the id 'nope'"]
    assert sorted(n for _, n in maps.asked) == [*range(300)]


@pytest.mark.long
async def test_an_order_about_rows_needs_no_money(runs: Runs) -> None:
    maps = ScriptedMaps(600, dollars=Decimal("0.0005"), settled=tuple(range(600)))
    wanted = goal(limits={"dollars": "0.2", "replans": 0})
    wanted = wanted.model_copy(update={"wait_for_raise": True})
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(wanted, skipping=False)
        await seen(handle, lambda view: view.waiting)
        said = await order(handle, "skip", rows=True, which="open")
        assert said == "600 rows of classify are skipped"
        report = await outcome(handle)
    assert report.status == "complete", report.gaps


async def with_batches() -> Capabilities:
    return Capabilities(batches=True)


@pytest.mark.long
async def test_a_cancelled_run_cancels_its_batches_and_pays_what_they_did_once(
    runs: Runs,
) -> None:
    maps = ScriptedMaps(1_000, batch_looks=10_000)
    told = goal(lane="batch", limits={"deadline_seconds": 200_000})
    async with runs.worker(model(), maps=maps, capabilities=with_batches), asyncio.timeout(60):
        handle = await runs.start(told, skipping=False)
        child = runs.client.get_workflow_handle(f"{handle.id}.classify.1")
        await maps.begun.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query("report", result_type=Report)
        await child.result()
    assert maps.cancelled == ["batch-1"]
    assert report.dollars == Decimal("0.025"), "half of its rows, at half the price"
    (found,) = report.findings
    assert found.status == "cancelled"
    assert found.why.endswith("; 500 of 1,000 rows complete, 500 not asked")


async def test_a_map_that_a_person_cancels_says_how_its_rows_stood(runs: Runs) -> None:
    maps = ScriptedMaps(300, holds=asyncio.Event())
    async with runs.worker(model(), maps=maps), asyncio.timeout(60):
        handle = await runs.start(goal(limits={"replans": 0}), skipping=False)
        await maps.begun.wait()
        await order(handle, "cancel_subtask", by="ada")
        report = await outcome(handle)
    assert [(each.status, each.why) for each in report.findings] == [
        ("cancelled", "cancelled by ada; 0 of 300 rows complete, 300 not asked")
    ]


class Clerk(Lost):
    """Answers rows in the same way, and all else from its script."""

    lose_at = 0
    """The row at whose call the endpoint is lost, until `back`."""

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        if "why_failed" not in request.schema["properties"]:
            return await super().ask(request)
        self.heard.append("row")
        if self.heard.count("row") >= self.lose_at > 0 and not self.back.is_set():
            raise lost()
        wrong = "of a row 13" in str(request.prompt)
        said = {"result": "broken" if not wrong else "", "why_failed": "", "status": "complete"}
        if wrong:
            said = {**said, "status": "failed", "why_failed": "it is no ticket"}
        return ModelAnswer(
            json.dumps(said), "end_turn", request.model, USAGE, raw={"content": [said]}
        )


def of_rows(count: int, *others: Any, **spec: Any) -> Goal:
    lines = "\n".join(json.dumps({"id": f"k{n}", "text": f"of a row {n}"}) for n in range(count))
    tickets = GoalInput(name="tickets", kind="text", value=lines)
    return goal(*others, id="id", **spec).model_copy(update={"inputs": (tickets,)})


async def test_a_run_maps_its_rows_with_the_shipped_activities_and_asks_the_table(
    runs: Runs,
) -> None:
    asked = Clerk({"report": [works("All of it.")], "synthesize": [synthesizes("[report]")]})
    report = await runs.run(of_rows(120, subtask("report", "classify")), asked)
    assert report.status == "complete", report.gaps
    found = report.findings[0]
    assert found.content.startswith("119 of 120 rows complete, 1 failed.")
    assert "k13" in found.content and "it is no ticket" in found.content
    assert "121 answers about 120 rows, 120 by haiku, 1 by sonnet; none by batch" in found.content
    columns = "id, place, status, result, why_failed, same_as, tier, tries, dollars"
    assert f"the table classify: {columns}; with the item's own text." in found.content
    assert tried(found) == "120 haiku, 1 sonnet answers" and "result:" not in found.content
    assert asked.heard.count("row") == 121, "and one of a stronger model"
    assert [each.name for each in found.files] == ["classify.jsonl", "classify.csv"]


@pytest.mark.long
async def test_a_fork_takes_the_complete_rows_of_a_map_over_that_it_does_again(
    runs: Runs, connection: Connection
) -> None:
    asked = Clerk({"synthesize": [synthesizes("[classify]")]})
    told = of_rows(120, limits={"replans": 0}, tolerate=0)
    first = await runs.run(told, asked)
    assert first.findings[0].status == "escalated" and asked.heard.count("row") == 121
    wanted = fork_goal(told, first, ForkChange())
    wanted = await with_rows(connection, wanted, runs.handles[-1].id)
    assert describe_fork(wanted) == (
        "Taken over: nothing. Done again: classify. Of these, what is asked the same is taken over:"
        " 119 of 120 rows of classify."
    )
    again = Clerk({"synthesize": [synthesizes("[classify]")]})
    second = await runs.run(wanted, again)
    assert again.heard.count("row") == 2, "the failed one alone, with a stronger model for it"
    assert "taken over from an earlier run" in second.findings[0].content


@pytest.mark.long
async def test_a_map_waits_for_a_lost_endpoint_and_asks_only_the_rest_of_its_rows(
    runs: Runs,
) -> None:
    asked = Clerk({"synthesize": [synthesizes("[classify]")]})
    asked.lose_at = 60
    async with runs.worker(asked), asyncio.timeout(60):
        handle = await runs.start(of_rows(120, tolerate=5), skipping=False)
        await waits(handle)
        refused = asked.heard.count("row") - 59
        asked.back.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert report.findings[0].content.startswith("119 of 120 rows complete, 1 failed.")
    assert asked.heard.count("row") == 121 + refused, "what was answered is not asked again"
    assert report.assumed == 0 and asked.looks == 1


@pytest.mark.long
async def test_a_run_that_is_reset_counts_the_rows_that_it_had_once_and_asks_for_none_of_them(
    runs: Runs, connection: Connection
) -> None:
    unheard = asyncio.Event()
    asked = Clerk({"other": [unheard, works("Two.")], "synthesize": [synthesizes("[other]")]})
    async with runs.worker(asked), asyncio.timeout(60):
        told = of_rows(60, subtask("other"), tolerate=5)
        handle = await runs.start(told, skipping=False)
        await asked.asked("other")
        view = await seen(handle, lambda view: view.rows[0].status == "complete")
        before, *_ = faults.reset_points((await handle.fetch_history()).events)
        assert await reset.run(connection, handle.id, before, yes=True) == Code.COMPLETE
        unheard.set()
        again: Handle = runs.client.get_workflow_handle(handle.id, result_type=Report)
        report = await again.result()
    runs.handles.clear()
    assert report.status == "complete" and report.assumed == 0
    assert asked.heard.count("row") == 61, "its answers came from the journal"
    found = report.findings[0]
    assert found.dollars == view.rows[0].dollars
    shares = sum((each.dollars or Decimal(0) for each in report.shares), Decimal(0))
    assert report.dollars == shares
    assert not [each for each in report.shares if each.kind == LOST], "found again counts once"
    assert not [each for each in report.notes if "classify" in each], report.notes
