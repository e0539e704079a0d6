"""A team below a team, at the default cap. The `runs` fixture replays the run above them."""

from __future__ import annotations

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
            "synthesize": [
                synthesizes("lowest [c] [d]"),
                synthesizes("middle"),
                synthesizes("top"),
            ],
        }
    )
    plan = ready(subtask("a", role="department"))
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs))
    assert (report.status, report.answer) == ("complete", "top")
    below = runs.client.get_workflow_handle(f"{report.run_id}.a.1", result_type=Report)
    lowest = runs.client.get_workflow_handle(f"{below.id}.b.1", result_type=Report)
    reports = [report, await below.result(), await lowest.result()]
    assert [each.status for each in reports] == ["complete"] * 3
    for above, team in pairwise(reports):
        assert above.findings[0].dollars == team.dollars
        assert above.model_calls > team.model_calls
    for handle in (below, lowest):
        assert await replay(await handle.fetch_history(), WORKFLOWS, runs.store) == ()


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
    report = await runs.run(goal(plan=plan), model, catalogue=catalogue(runs))
    assert report.status == "complete"
    prompts = [
        each.prompt
        for what, each in zip(model.heard, model.requests, strict=True)
        if what == "plan"
    ]
    assert "repeats a subtask of a run above: same role, same instruction" in prompts[2]
