"""A role that is itself a team: a run of its own, with a slice of the parent's money."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from temporalio.client import WorkflowFailureError

from conftest import Runs, asking_once
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.commands.runs.report import page_of
from holdfast.client.reading import Reader
from holdfast.contracts import Goal, GoalInput
from holdfast.intake.connection import Connection
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio


def catalogue(runs: Runs, repeat: int = 1) -> Catalogue:
    """The shipped roles, and a team that may stand so often on a path."""
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    head = "name: department\ndescription: a whole team\nmodel: sonnet\nteam: true"
    head += f"\nrepeat: {repeat}" if repeat > 1 else ""
    (home / "department.md").write_text(f"---\n{head}\n---\n")
    extra = Catalogue.load(runs.folder / "home")
    shipped = asking_once(shipped_catalogue())
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare three engines", "use_models": True, **fields})


async def test_a_team_plans_and_works_below_its_parent_and_gives_back_what_it_did_not_use(
    runs: Runs,
) -> None:
    note = GoalInput(name="note", kind="text", value="the note of the goal")
    model = ScriptedModel(
        {
            "t1": [works("one")],
            "plan": [plans(subtask("a", inputs=["note", "finding-of-t1"]), subtask("b"))],
            "a": [works("a")],
            "b": [works("b")],
            "t3": [works("three")],
            "synthesize": [synthesizes("what the team says"), synthesizes("all of it")],
        }
    )
    plan = ready(
        subtask("t1"),
        subtask("t2", "t1", role="department", inputs=["note"]),
        subtask("t3", "t2"),
    )
    wanted = goal(plan=plan, inputs=[note])
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    assert report.status == "complete"
    assert report.findings[1].content == "what the team says"
    team = runs.client.get_workflow_handle(f"{report.run_id}.t2.1", result_type=type(report))
    below = await team.result()
    assert report.findings[1].sources == (f"run {below.run_id}",)
    # The parent's total holds the team's, and the rest of the slice was free again.
    assert report.findings[1].dollars == below.dollars
    assert report.model_calls == 4 + below.model_calls
    assert report.dollars is not None and report.dollars < Decimal(1)
    prompts = dict(zip(model.heard, model.requests, strict=True))
    assert "the note of the goal" in prompts["a"].prompt and "one" in prompts["a"].prompt
    assert "what the team says" in prompts["t3"].prompt
    assert await replay(await team.fetch_history(), WORKFLOWS, runs.store) == ()


@pytest.mark.long
async def test_what_a_team_admits_stands_in_the_report_above_it(runs: Runs) -> None:
    bad = plans(subtask("a1", role="nobody"))
    model = ScriptedModel(
        {
            "plan": [bad, bad, bad, bad, plans(subtask("c"), subtask("d"))],
            "the whole goal": [works("one")],
            "c": [works("see")],
            "d": [works("dee")],
            "synthesize": [synthesizes("a part of 4711"), synthesizes("whole")],
        }
    )
    plan = ready(subtask("t1", role="department"), subtask("t2", role="department"))
    wanted = goal(plan=plan, limits={"concurrency": 1})
    report = await runs.run(wanted, model, catalogue=catalogue(runs))
    for id in ("t1", "t2"):
        team = runs.client.get_workflow_handle(f"{report.run_id}.{id}.1", result_type=type(report))
        below = await team.result()
        for line in below.notes:
            assert f"{id}, by its team: {line}" in report.notes
    assert "no valid plan" in " ".join(report.notes)
    (flag,) = below.flags
    assert f"t2, by its team: not supported by any finding: {flag}" in report.notes
    assert not [each for each in report.notes if "not run" in each], "the run above says it itself"


@pytest.mark.long
async def test_the_page_of_a_run_says_how_to_see_what_its_team_did_and_divides_what_it_took(
    runs: Runs, connection: Connection
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a1"))],
            "a1": [works("one")],
            "synthesize": [synthesizes("part one"), synthesizes("whole")],
        }
    )
    plan = ready(subtask("t1", role="department"))
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs))
    page = page_of(report.run_id, await Reader(connection, report.run_id).look())
    assert f"report {report.run_id}.t1.1</code>" in page
    inside = {each.kind for each in report.shares if each.team == "t1"}
    assert inside == {"plan", "work"} and "In the team of" in page
    assert sum(each.dollars or 0 for each in report.shares) == report.dollars


async def test_a_team_below_the_depth_limit_is_refused_unpaid(runs: Runs) -> None:
    model = ScriptedModel({"t2": [works("two")], "synthesize": [synthesizes("done")]})
    plan = ready(subtask("t1", role="department"), subtask("t2"))
    report = await runs.run(goal(plan=plan, limits={"depth": 1}), model, catalogue=catalogue(runs))
    assert report.status == "complete_with_gaps"
    assert report.gaps[0].why == "depth 1: the limit is 1 levels"
    assert report.findings[0].dollars == 0


async def test_a_team_stays_within_its_slice_and_its_partial_answer_is_passed_on_as_uncertain(
    runs: Runs,
) -> None:
    many = [subtask(each, role="writer") for each in ("a", "b", "c", "d")]
    model = ScriptedModel(
        {
            "plan": [plans(*many)],
            **{each: [works(each)] for each in ("a", "b")},
            "t2": [works("two")],
            "synthesize": [synthesizes("half of it"), synthesizes("done")],
        }
    )
    plan = ready(subtask("t1", role="department"), subtask("t2", "t1"))
    limits = {"model_calls": 9, "concurrency": 1, "replans": 0}
    report = await runs.run(goal(plan=plan, limits=limits), model, catalogue=catalogue(runs))
    assert report.findings[0].status == "escalated"
    assert "budget_stopped" in report.findings[0].why
    assert report.model_calls <= 9
    assert "half of it" in model.requests[model.heard.index("t2")].prompt


async def test_cancelling_a_run_cancels_its_teams(runs: Runs) -> None:
    never = asyncio.Event()
    model = ScriptedModel({"plan": [plans(subtask("a"))], "a": [never]})
    plan = ready(subtask("t1", role="department"))
    async with runs.worker(model, catalogue=catalogue(runs)):
        handle = await runs.start(goal(plan=plan), skipping=False)
        await model.asked("a")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        report = await handle.query(SupervisorWorkflow.report)
        team = runs.client.get_workflow_handle_for(SupervisorWorkflow.run, f"{handle.id}.t1.1")
        below = await team.query(SupervisorWorkflow.report)
    assert report.findings[0].status == "cancelled"
    assert below.status == "cancelled"
    assert model.busy == 0
