"""A team that is cut, or fails, hands up what it has, with its real bill."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from test_teams import catalogue, goal

from conftest import Handle, Runs, folded, seen
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Finding, Order, Report
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import Line, ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("hears_soon")]

PLAN = ready(subtask("t1", role="department"), subtask("t2"))


def half_done(**more: list[Line]) -> ScriptedModel:
    """A team of which one agent has found something and the other never will."""
    return ScriptedModel(
        {
            "plan": [plans(subtask("a"), subtask("b"))],
            "a": [works("what a found")],
            "b": [asyncio.Event()],
            "t2": [works("two")],
            **more,
        }
    )


async def team_of(runs: Runs, report: Report) -> Report:
    """Its own report; its history replays, and a reader's state is the workflow's own."""
    team: Handle = runs.client.get_workflow_handle_for(
        SupervisorWorkflow.run, f"{report.run_id}.t1.1"
    )
    assert await replay(await team.fetch_history(), WORKFLOWS, runs.store) == ()
    assert (await team.describe()).status is WorkflowExecutionStatus.COMPLETED
    return await team.result()


def check_bill(report: Report, team: Report) -> Finding:
    """The slice settled at what the team spent, and its finding is there."""
    [finding] = [each for each in report.findings if each.subtask_id == "t1"]
    assert finding.dollars == team.dollars
    # What the scripted model was asked and cut in had not been charged.
    assert team.model_calls == 2 and not team.assumed, "a plan and an agent"
    assert report.dollars is not None and report.dollars < Decimal("0.1")
    assert "what a found" in finding.content
    return finding


async def test_a_team_has_time_to_answer_before_the_run_above_has_to(runs: Runs) -> None:
    model = half_done(synthesize=[synthesizes("half of it [a]"), synthesizes("so far [t1]")])
    wanted = goal(plan=PLAN, limits={"deadline_seconds": 40, "concurrency": 3})
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    team = await team_of(runs, report)
    assert (team.status, team.answer) == ("deadline_partial", "half of it [a]")
    [finding, _] = report.findings
    assert (finding.status, finding.content) == ("escalated", "half of it [a]")
    assert finding.escalation is not None and finding.escalation.reason == "timeout"
    assert finding.dollars == team.dollars


async def test_a_team_cut_by_the_deadline_hands_up_what_it_found_with_its_real_bill(
    runs: Runs,
) -> None:
    unwritten: list[Line] = [asyncio.Event(), synthesizes("as far as it came [t1]")]
    model = half_done(synthesize=unwritten)
    wanted = goal(plan=PLAN, limits={"deadline_seconds": 40, "concurrency": 3})
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    assert report.status == "deadline_partial"
    team = await team_of(runs, report)
    finding = check_bill(report, team)
    assert finding.status == "escalated" and finding.why.startswith("its team ended ")
    assert "what a found" in model.requests[-1].prompt
    assert report.model_calls == team.model_calls + 2


async def test_a_team_of_a_cancelled_run_hands_up_its_bill(runs: Runs) -> None:
    model = half_done()
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(plan=PLAN), skipping=False)
        await model.asked("b")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query(SupervisorWorkflow.report)
    assert report.status == "cancelled"
    finding = check_bill(report, await team_of(runs, report))
    assert finding.status == "cancelled"


async def test_a_team_that_a_person_skips_hands_up_its_bill(runs: Runs) -> None:
    model = half_done(synthesize=[synthesizes("without it [t2]")])
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(plan=PLAN), skipping=False)
        await model.asked("b", "t2")
        await handle.execute_update("skip", Order(subtask_id="t1", by="me"))
        report = await handle.result()
    assert report.status == "complete_with_gaps"
    finding = check_bill(report, await team_of(runs, report))
    assert (finding.status, finding.why) == ("cancelled", "skipped by me")


async def test_a_team_that_fails_fails_its_run_and_costs_what_it_spent(runs: Runs) -> None:
    fails = works("", status="failed", why="closed")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a"))],
            "a": [fails],
            "t2": [works("two")],
            "synthesize": [synthesizes("two [t2]")],
        }
    )
    limits = {"tries_per_subtask": 1, "replans": 0}
    report = await runs.run(goal(plan=PLAN, limits=limits), model, catalogue=catalogue(runs))
    assert report.status == "complete_with_gaps"
    gap = report.gaps[0]
    assert (gap.status, gap.why) == ("failed", "its team ended failed: Subtask a: closed")
    assert report.model_calls == 5 and report.assumed == 0
    team = runs.client.get_workflow_handle(f"{report.run_id}.t1.1")
    assert (await team.describe()).status is WorkflowExecutionStatus.FAILED


async def test_a_team_cancelled_before_its_first_step_costs_nothing(runs: Runs) -> None:
    model = ScriptedModel({"t2": [asyncio.Event()]})
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(plan=PLAN), skipping=False)
        await seen(handle, lambda view: view.rows)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    state = await folded(handle)
    assert state is not None and state.work["t1"].paid.assumed == 0


async def test_a_team_is_given_what_is_left_of_the_time_and_what_was_asked_above(
    runs: Runs,
) -> None:
    """A department that is given the same instruction again below itself is refused, at whatever
    level; and what the run above asks already is not asked below.
    """
    again = subtask("x", role="department", instruction="List everything about part t1 of the goal")
    model = ScriptedModel(
        {
            "plan": [plans(again, subtask("y", instruction=INSTRUCTION)), plans(subtask("a"))],
            "a": [works("a")],
            "t2": [works("two")],
            "synthesize": [synthesizes("below"), synthesizes("done")],
        }
    )
    plan = ready(
        subtask("t1", role="department", instruction="list  everything about part t1 OF the goal"),
        subtask("t2"),
    )
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs, repeat=2))
    assert report.status == "complete"
    second = model.requests[[n for n, what in enumerate(model.heard) if what == "plan"][1]].prompt
    assert second.count("repeats a subtask of a run above: same role, same instruction") == 2
    team = runs.client.get_workflow_handle(f"{report.run_id}.t1.1")
    state = await folded(team)
    assert state is not None
    assert 600 < state.goal.limits.deadline_seconds <= 720, "900 s less what the synthesis keeps"


INSTRUCTION = "Find out everything about part t2 of the goal, as a list"


def with_fallback(runs: Runs) -> Catalogue:
    """The shipped roles, and a team whose fallback is one of them."""
    found = catalogue(runs)
    department = found.roles["department"]
    card = department.card.model_copy(update={"fallback": "writer"})
    roles = {**found.roles, "department": replace(department, card=card)}
    return Catalogue(roles, found.playbooks)


async def test_a_team_that_its_deadline_ended_with_nothing_in_hand_is_handed_to_nobody(
    runs: Runs,
) -> None:
    """Neither its fallback nor another plan is paid for, though a subtask needs what is missing."""
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a"))],
            "a": [asyncio.Event()],
            "t2": [works("two")],
            "synthesize": [synthesizes("two [t2]")],
        }
    )
    plan = ready(subtask("t1", role="department"), subtask("t2"), subtask("t3", "t1"))
    wanted = goal(plan=plan, limits={"deadline_seconds": 40, "concurrency": 3})
    report = await runs.run(wanted, model, catalogue=with_fallback(runs))
    assert sorted(model.heard) == ["a", "critique", "plan", "synthesize", "t2"]
    gap = next(each for each in report.gaps if each.subtask_id == "t1")
    assert gap.status == "failed"
    assert "the deadline was reached: work may take 22.5 s of this team's 30 s" in gap.why
    assert "which the run above had left" in gap.why
