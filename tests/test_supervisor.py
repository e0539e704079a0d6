"""The supervisor's behaviour, as sentences. The `runs` fixture replays every history afterwards."""

from __future__ import annotations

import asyncio

import pytest

from conftest import Runs
from orchestrator.contracts import Goal, GoalInput, Limits
from scripted import ScriptedModel, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


def goal(text: str = "Compare three engines", **fields: object) -> Goal:
    return Goal.model_validate({"text": text, "use_models": True, **fields})


async def test_a_goal_becomes_a_plan_is_worked_through_and_synthesized(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("All three [t3].")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert report.answer == "All three [t3]."
    assert [finding.content for finding in report.findings] == ["one", "two", "three"]
    assert await runs.activities() == [
        "prepare", "plan-1", "work-t1-1", "work-t2-1", "work-t3-1", "synthesize-1",
    ]  # fmt: skip
    assert report.model_calls == 5
    assert report.dollars is not None and 0 < report.dollars < 2
