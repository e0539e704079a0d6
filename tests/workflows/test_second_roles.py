"""Primary and second role of a subtask in whole runs. The `runs` fixture replays every history."""

from __future__ import annotations

import logging

import pytest
from test_supervisor import goal

from conftest import Runs
from holdfast.cli.commands.runs.report import page_of
from holdfast.client.reading import Reader
from holdfast.contracts import Bill
from holdfast.contracts.errors import PossiblyBilled
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


async def test_a_role_whose_calls_failed_lately_is_passed_over_for_the_plans_second(
    runs: Runs,
) -> None:
    lost = [PossiblyBilled("dropped", Bill(model="m", calls=1)) for _ in range(3)]
    model = ScriptedModel(
        {
            "t1": lost,
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(
        subtask("t1", role="researcher"),
        subtask("t2", role="researcher", secondary="writer"),
    )
    wanted = goal(plan=plan, limits={"concurrency": 1, "replans": 0})
    report = await runs.run(wanted, model)
    assert [each.status for each in report.findings] == ["failed", "complete"]
    assert report.findings[1].tries[0].role == "writer"
    assert "t2: writer does it instead of researcher, whose last 3 calls brought no answer" in (
        "; ".join(report.notes)
    )


async def test_the_planner_says_who_stands_in_and_the_choice_is_in_plan_and_log(
    runs: Runs, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    gives_back = works("", status="escalate", reason="out_of_scope", why="no facts to find")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", role="researcher", secondary="writer"))],
            "t1": [gives_back, works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    with caplog.at_level(logging.INFO):
        report = await runs.run(goal(), model)
    assert report.plan is not None
    assert [(each.role, each.secondary) for each in report.plan.subtasks] == [
        ("researcher", "writer")
    ]
    assert [each.role for each in report.findings[0].tries] == ["", "writer"]
    assert "planned t1: researcher, else writer: Part t1 is asked for" in caplog.text
    (line,) = (vars(each) for each in caplog.records if vars(each).get("story") == "planned")
    assert (line["subtask"], line["role"], line["secondary"]) == ("t1", "researcher", "writer")
    assert line["why"].startswith("Part t1 is asked for") and len(line["why"]) <= 300
    look = await Reader(connection, report.run_id).look()
    page = page_of(report.run_id, look)
    assert "second role: writer" in page and "planned because: Part t1 is asked for" in page
