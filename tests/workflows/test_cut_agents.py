"""An agent that is cut, reset or forked: it hands up what it has, and nothing is paid twice."""

from __future__ import annotations

import asyncio
import re

import pytest
from temporalio.client import WorkflowFailureError
from test_agents import NOTES, READS, catalogue, goal

from conftest import Handle, Runs, seen
from holdfast.certifying.deployment import outcome
from holdfast.cli.commands.steering import cancel, reset
from holdfast.cli.screen.exits import Code
from holdfast.client.reading import Reader
from holdfast.contracts import Bill, Order, Report
from holdfast.contracts.errors import PossiblyBilled
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from holdfast.rendering.report import as_markdown
from holdfast.replaying import faults
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, calls, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("hears_soon")]

SAYS = calls(("read_file", NOTES), says="So far: it may be 40.")
TWO = ready(subtask("t1", role="reader", inputs=["repo"]), subtask("t2", role="researcher"))


async def below(runs: Runs, report: Report) -> list[str]:
    """The activities of the first segment of t1's agent; its history is replayed."""
    agent = runs.client.get_workflow_handle(f"{report.run_id}.t1.1")
    history = await agent.fetch_history()
    assert await replay(history, WORKFLOWS, runs.store) == ()
    return [
        event.activity_task_scheduled_event_attributes.activity_id
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


async def test_an_agent_cut_by_the_deadline_hands_up_what_it_has_with_its_real_bill(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {"t1": [SAYS, asyncio.Event()], "t2": [works("two")], "synthesize": [synthesizes("2 [t2]")]}
    )
    limits = {"deadline_seconds": 24, "replans": 0}
    report = await runs.run(goal(runs, plan=TWO, limits=limits), model, catalogue=catalogue(runs))
    assert report.status == "deadline_partial"
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("failed", "So far: it may be 40.")
    assert finding.why.startswith("not finished: the deadline was reached: work may take 18 s of ")
    assert finding.dollars and not finding.assumed, "the second turn had not left"
    assert await below(runs, report) == ["turn-1", "tool-1-1", "turn-2"]


async def test_an_agent_that_the_budget_leaves_nothing_for_hands_up_what_it_has(
    runs: Runs,
) -> None:
    says = [calls(("read_file", NOTES), says=f"So far: it may be {n}.") for n in (38, 39, 40)]
    model = ScriptedModel(
        {"t1": [*says], "t2": [works("two")], "synthesize": [synthesizes("2 [t2]")]}
    )
    limits = {"model_calls": 5, "replans": 0}
    report = await runs.run(goal(runs, plan=TWO, limits=limits), model, catalogue=catalogue(runs))
    assert report.status == "budget_stopped"
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("failed", "So far: it may be 40.")
    short = "the limit of 5 model calls does not cover another call, though $1.99 is left"
    assert finding.why == f"not finished: {short}"
    assert finding.dollars and not finding.assumed


async def half_way(runs: Runs, model: ScriptedModel) -> Handle:
    """A run whose agent has said something and will never say more."""
    limits = {"replans": 0}
    handle = await runs.start(goal(runs, plan=TWO, limits=limits), skipping=False)
    await model.asked("t2")
    while model.heard.count("t1") < 2:  # noqa: ASYNC110 - the script tells of the first alone
        await asyncio.sleep(0.02)
    return handle


async def test_an_agent_of_a_cancelled_run_hands_up_what_it_has_with_its_real_bill(
    runs: Runs,
) -> None:
    model = ScriptedModel({"t1": [SAYS, asyncio.Event()], "t2": [works("two")]})
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await half_way(runs, model)
        await handle.cancel(reason="ada")
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query(SupervisorWorkflow.report)
    assert report.status == "cancelled"
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("cancelled", "So far: it may be 40.")
    assert finding.why == "not finished: the run was cancelled by ada"
    assert finding.dollars and not finding.assumed
    assert await below(runs, report) == ["turn-1", "tool-1-1", "turn-2"]


async def test_an_agent_that_a_person_skips_hands_up_what_it_has_with_its_real_bill(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "t1": [SAYS, asyncio.Event()],
            "t2": [works("two")],
            "synthesize": [synthesizes("2 [t2]")],
        }
    )
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await half_way(runs, model)
        await handle.execute_update("skip", Order(subtask_id="t1", by="ada", text="too slow"))
        report = await outcome(handle)
    assert report.status == "complete_with_gaps"
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("cancelled", "So far: it may be 40.")
    assert finding.why == "skipped by ada: too slow"
    assert finding.dollars and not finding.assumed
    assert await below(runs, report) == ["turn-1", "tool-1-1", "turn-2"]


async def test_an_agent_is_tried_again_by_a_person_from_the_beginning(runs: Runs) -> None:
    failed = works("", status="failed", why="it is not there")
    model = ScriptedModel(
        {
            "t1": [READS, failed, works("40")],
            "t2": [asyncio.Event()],
        }
    )
    limits = {"tries_per_subtask": 1, "replans": 0}
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(runs, plan=TWO, limits=limits), skipping=False)
        await seen(handle, lambda view: any(row.status == "failed" for row in view.rows))
        order = Order(subtask_id="t1", text="Read part t1 of the goal again", tier="sonnet")
        await handle.execute_update("retry", order)
        await seen(handle, lambda view: any(row.status == "complete" for row in view.rows))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    request = [each for each in model.requests if each.messages][-1]
    assert len(request.messages) == 1, "the conversation begins anew"
    assert "sonnet" in request.model


async def test_a_run_that_is_reset_asks_its_agents_for_nothing_that_they_had(
    runs: Runs, connection: Connection
) -> None:
    unheard = asyncio.Event()
    model = ScriptedModel(
        {
            "t1": [READS, works("40")],
            "t2": [unheard, works("two")],
            "synthesize": [synthesizes("40 [t1], 2 [t2]")],
        }
    )
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        handle = await runs.start(goal(runs, plan=TWO), skipping=False)
        await model.asked("t2")
        view = await seen(handle, lambda view: any(row.status == "complete" for row in view.rows))
        paid = next(row for row in view.rows if row.id == "t1")
        assert paid.status == "complete"
        before, *_ = faults.reset_points((await handle.fetch_history()).events)
        assert await reset.run(connection, handle.id, before, yes=True) == Code.COMPLETE
        unheard.set()
        again: Handle = runs.client.get_workflow_handle(handle.id, result_type=Report)
        report = await again.result()
    runs.handles.clear()
    assert report.status == "complete"
    assert model.heard.count("t1") == 2, "its answers came from the journal"
    assert report.model_calls == 5 and report.assumed == 0, "what was found again counts once"
    assert not [each for each in report.notes if "agent-t1-1" in each], "it is not lost"


async def test_an_agents_own_id_is_read_and_ended_as_what_it_is(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ScriptedModel(
        {"t1": [asyncio.Event()], "t2": [works("two")], "synthesize": [synthesizes("2 [t2]")]}
    )
    async with runs.worker(model, catalogue=catalogue(runs)), asyncio.timeout(60):
        limits = {"replans": 0}
        handle = await runs.start(goal(runs, plan=TWO, limits=limits), skipping=False)
        await model.asked("t1")
        agent = f"{handle.id}.t1.1"
        told = f"{agent} is an agent of {handle.id}, no run"
        with pytest.raises(HoldfastError, match=re.escape(told)):
            await Reader(connection, agent).look()
        assert await cancel.run(connection, agent) == Code.COMPLETE
        assert told in capsys.readouterr().err
        report = await handle.result()
        with pytest.raises(HoldfastError, match=re.escape(told)):
            await cancel.run(connection, agent)
    assert report.status == "complete_with_gaps"
    assert "t2" in report.answer and report.findings[0].status == "failed"
    assert report.findings[0].why.startswith("cancelled by "), "by whom, and no run above"


async def test_an_agent_whose_turns_bring_no_answer_is_told_with_each_of_them(runs: Runs) -> None:
    gone = [PossiblyBilled("dropped", Bill(model="claude-haiku-5-5", calls=1)) for _ in range(3)]
    model = ScriptedModel(
        {"t1": [READS, *gone], "t2": [works("two")], "synthesize": [synthesizes("2 [t2]")]}
    )
    wanted = goal(runs, plan=TWO, limits={"replans": 0})
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    finding = report.findings[0]
    assert (finding.status, finding.turns) == ("failed", 1)
    assert [each.id for each in finding.unanswered] == ["turn-2", "turn-again1-2", "turn-again2-2"]
    assert all(each.dollars and each.why.endswith("dropped") for each in finding.unanswered)
    assert sum(each.assumed for each in finding.unanswered) == finding.assumed
    page = as_markdown(report, "{} {}".format)
    (section,) = [part for part in page.split("### ") if part.startswith("t1 ")]
    for said in ("**failed**", "1 turn, 1 tool call", "≤ $", "call turn-again1-2 on haiku, no"):
        assert said in section
    assert section.count("dropped") == 4, "why it failed, and each turn"
    (row,) = [each for each in page.splitlines() if each.startswith("| t1 ")]
    assert row.split(" | ")[4] == "1", "it was tried once"


async def test_what_was_skipped_has_its_section_with_the_reason(runs: Runs) -> None:
    failed = works("", status="failed", why="it is not there")
    plan = ready(subtask("t1"), subtask("t2", "t1"), subtask("t3"))
    model = ScriptedModel(
        {"t1": [failed], "t3": [works("three")], "synthesize": [synthesizes("3 [t3]")]}
    )
    limits = {"replans": 0, "tries_per_subtask": 1}
    report = await runs.run(goal(runs, plan=plan, limits=limits), model)
    assert [each.status for each in report.findings] == ["failed", "skipped", "complete"]
    page = as_markdown(report, "{} {}".format)
    (section,) = [part for part in page.split("### ") if part.startswith("t2 ")]
    assert "**skipped**" in section and report.findings[1].why in section
