"""A run tells its story to the log of its workers: each thing that happened in one line, once,
however often its history is replayed.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from temporalio import workflow

from conftest import Runs
from holdfast.contracts import Bill, Goal
from holdfast.contracts.errors import PossiblyBilled
from holdfast.replaying.replay import play
from holdfast.tracing import story
from holdfast.workflows import WORKFLOWS
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works
from tracing import paused_and_resumed

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, workflow.logger.base_logger.name)


def goal(**fields: object) -> Goal:
    return Goal.model_validate({"text": "Compare engines", "use_models": True, **fields})


def told(caplog: pytest.LogCaptureFixture, run_id: str) -> list[dict[str, Any]]:
    """The lines of a run, as their fields."""
    lines = [vars(each) for each in caplog.records if hasattr(each, "story")]
    return [each for each in lines if each["temporal_workflow"]["workflow_id"] == run_id]


def kinds(lines: list[dict[str, Any]]) -> list[str]:
    return [each["story"] for each in lines]


async def test_it_has_a_line_for_all_that_happened_and_none_twice_where_each_task_is_a_replay(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    runs.kept = 0
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2", "t1"))],
            "t1": [works("?", confidence=5), works("sure")],
            "t2": [PossiblyBilled("dropped", Bill(calls=1)), works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    lines = told(caplog, report.run_id)
    handle = runs.handles[-1]
    await play(await handle.fetch_history(), WORKFLOWS, runs.store)
    assert told(caplog, report.run_id) == lines, "a replay says nothing"
    calls = await runs.activities()
    assert [each["call"] for each in lines if each["story"] == "dispatch"] == calls
    assert sorted(each["call"] for each in lines if each["story"] == "result") == sorted(calls)
    (plan,) = (each for each in lines if each["story"] == "plan")
    assert (plan["verdict"], plan["subtasks"]) == ("accepted", ("t1", "t2"))
    (climb,) = (each for each in lines if each["story"] == "climb")
    assert (climb["subtask"], climb["of"], climb["tier"]) == ("t1", "sonnet", "opus")
    assert "confidence 5" in climb["why"]
    lost = next(each for each in lines if each.get("verdict") == "possibly_billed")
    assert (lost["call"], lost["subtask"]) == ("work-t2-1", "t2")
    settled = {each["subtask"]: each for each in lines if each["story"] == "settled"}
    assert [each["status"] for each in settled.values()] == ["complete", "complete"]
    assert float(settled["t1"]["dollars"]) > 0
    assert kinds(lines).count("synthesis") == 1
    assert (lines[-1]["story"], lines[-1]["status"]) == ("closed", "complete")
    assert lines[-1]["dollars"] == str(report.dollars)


async def test_people_stand_in_it_with_what_they_were_asked_and_what_they_said(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    handle = await paused_and_resumed(runs)
    said = [each for each in told(caplog, handle.id) if each["story"] == "person"]
    assert [(each["command"], each["by"]) for each in said] == [("pause", "me"), ("resume", "me")]


async def test_a_line_that_cannot_be_told_stops_no_run(
    runs: Runs, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise ValueError("nobody can say this")
        yield

    monkeypatch.setattr(story, "tell_event", broken)
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    report = await runs.run(goal(plan=ready(subtask("t1"))), model)
    assert report.status == "complete"
    assert any("could not be told" in each.getMessage() for each in caplog.records)


async def test_what_a_model_wrote_is_one_harmless_line_of_bounded_length(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    why = "no\x1b[31m\ndata " + "x" * 1_000
    limits = {"tries_per_subtask": 1, "replans": 0}
    model = ScriptedModel({"t1": [works("", status="failed", why=why)]})
    report = await runs.run(goal(plan=ready(subtask("t1")), limits=limits), model)
    (line,) = (each for each in told(caplog, report.run_id) if each["story"] == "settled")
    assert line["status"] == "failed" and len(line["why"]) <= story.LETTERS
    assert line["why"].startswith("no\\x1b[31m data xxx")
