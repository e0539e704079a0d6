"""A team below a team, at the default cap. The `runs` fixture replays the run above them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from test_teams import catalogue, goal

from conftest import Runs
from holdfast.contracts import Report
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


async def test_two_levels_of_teams_work_at_the_default_cap_and_each_bill_holds_those_below(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("b", role="department")), plans(subtask("c"), subtask("d"))],
            "c": [works("see")],
            "d": [works("dee")],
            "synthesize": [synthesizes("lowest [c] [d]")],
        }
    )
    plan = ready(subtask("a", role="department"))
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs, repeat=2))
    assert (report.status, report.answer) == ("complete", "lowest [c] [d]")
    below = runs.client.get_workflow_handle(f"{report.run_id}.a.1", result_type=Report)
    lowest = runs.client.get_workflow_handle(f"{below.id}.b.1", result_type=Report)
    reports = [report, await below.result(), await lowest.result()]
    assert [each.status for each in reports] == ["complete"] * 3
    for above, team in pairwise(reports):
        assert above.findings[0].dollars == team.dollars
        assert above.model_calls >= team.model_calls
    for handle in (below, lowest):
        assert await replay(await handle.fetch_history(), WORKFLOWS, runs.store) == ()


async def test_a_team_is_not_offered_itself_and_a_plan_that_names_it_is_told_the_path(
    runs: Runs,
) -> None:
    again = plans(subtask("b", role="department"))
    model = ScriptedModel(
        {
            "plan": [again, again, plans(subtask("c"))],
            "c": [works("see")],
            "synthesize": [synthesizes("middle"), synthesizes("top")],
        }
    )
    plan = ready(subtask("a", role="department"))
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs))
    assert report.status == "complete", report.gaps
    asked = _planning(model)
    assert "- department" not in asked[0] and "- analyst" in asked[0]
    assert "role 'department' cannot be used: it is a team above this run (department)" in asked[2]
    below = runs.client.get_workflow_handle(f"{report.run_id}.a.1", result_type=Report)
    assert await replay(await below.fetch_history(), WORKFLOWS, runs.store) == ()


async def test_two_teams_cannot_plan_each_other_in_turns(runs: Runs) -> None:
    roles = catalogue(runs)
    first = roles.roles["department"]
    other = replace(first, card=first.card.model_copy(update={"name": "office"}))
    roles.roles["office"] = other
    model = ScriptedModel(
        {
            "plan": [
                plans(subtask("b", role="office")),
                plans(subtask("c", role="department")),
                plans(subtask("d")),
            ],
            "d": [works("see")],
            "synthesize": [synthesizes("lowest"), synthesizes("middle"), synthesizes("top")],
        }
    )
    plan = ready(subtask("a", role="department"))
    report = await runs.run(goal(plan=plan), model, catalogue=roles)
    assert report.status == "complete", report.gaps
    assert "(department → office)" in _planning(model)[2]


def _planning(model: ScriptedModel) -> list[str]:
    """The prompts of the planners."""
    heard = zip(model.heard, model.requests, strict=True)
    return [each.prompt for what, each in heard if what == "plan"]


@pytest.mark.long
async def test_a_team_two_levels_down_cannot_plan_what_the_first_run_planned(runs: Runs) -> None:
    again = subtask("a", role="department")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("b", role="department")), plans(again), plans(subtask("c"))],
            "c": [works("see")],
            "synthesize": [synthesizes("lowest"), synthesizes("middle"), synthesizes("top")],
        }
    )
    plan = ready(again)
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs, repeat=2))
    assert report.status == "complete"
    assert "repeats a subtask of a run above: same role, same instruction" in _planning(model)[2]
