"""Recorded histories replay under today's code; strict replay sees what Temporal's own misses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from conftest import Runs
from orchestrator.contracts import Goal, GoalInput
from orchestrator.replay import export, replay
from record import nameless
from scripted import ScriptedModel, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def test_there_are_recorded_histories() -> None:
    assert HISTORIES


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays_with_the_same_arguments(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    assert await replay(history) == ()


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recorded_history_does_not_say_where_it_was_recorded(path: Path) -> None:
    text = path.read_text()
    assert nameless(text) == text
    assert "site-packages" not in text


async def recorded(runs: Runs) -> str:
    """A small run whose input is too big for history, exported."""
    note = GoalInput(name="note", kind="text", value="n" * 40_000)
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", inputs=["note"]), subtask("t2", "t1"))],
            "t1": [works("one " * 8_000)],
            "t2": [works("two")],
            "digest": [{"digest": "one"}],
            "synthesize": [synthesizes("done")],
        }
    )
    await runs.run(Goal(text="Compare", inputs=(note,), use_models=True), model)
    return await export(runs.client, runs.handles[-1].id, runs.store)


async def test_an_exported_history_carries_every_payload_and_replays_without_a_store(
    runs: Runs,
) -> None:
    text = await recorded(runs)
    assert "external" not in text.lower()
    assert await replay(WorkflowHistory.from_json("run", text)) == ()


async def test_strict_replay_names_an_argument_that_differs(runs: Runs) -> None:
    """Temporal compares ids and types only: it would replay this history without a word."""
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t2-1":
            call = json.loads(attributes.input.payloads[0].data)
            attributes.input.payloads[0].data = json.dumps(call | {"max_output": 1}).encode()
    [difference] = await replay(history)
    assert difference == "work-t2-1: Call.max_output was 1, is now 8000"


async def test_a_field_that_an_old_history_lacks_is_no_difference(runs: Runs) -> None:
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t2-1":
            call = json.loads(attributes.input.payloads[0].data)
            assert call.pop("number") == 1
            attributes.input.payloads[0].data = json.dumps(call).encode()
    assert await replay(history) == ()


async def test_a_changed_order_of_activities_is_named(runs: Runs) -> None:
    history = WorkflowHistory.from_json("run", await recorded(runs))
    for event in history.events:
        attributes = event.activity_task_scheduled_event_attributes
        if attributes.activity_id == "work-t1-1":
            attributes.activity_id = "work-t9-1"
    [problem] = await replay(history)
    assert "work-t9-1" in problem
