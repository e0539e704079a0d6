"""Work that starts while the planner is writing: told by a Signal in the middle of its call, kept
by the whole plan or taken back. Every run is replayed, and read as its own readers do.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from conftest import Runs
from holdfast.activities.asking import telling
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Bill, Capabilities, Goal, GoalInput, Limits
from holdfast.contracts.errors import PossiblyBilled
from holdfast.history.fold import Fold
from holdfast.tracing.trace import make_steps
from scripted import Arrived, ScriptedModel, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

PARTS = subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2")


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "LOOK_SECONDS", 0.01)


def goal(**fields: Any) -> Goal:
    own = {"text": "Compare the offices", "use_models": True, "limits": Limits(early=3)}
    return Goal.model_validate({**own, **fields})


def begun(*subtasks: dict[str, Any]) -> Arrived:
    """A plan's answer as far as these subtasks, and the beginning of the next one."""
    whole = plans(*subtasks)
    head = {key: whole[key] for key in whole if key not in ("choices", "bounds", "subtasks")}
    told = json.dumps({**head, "subtasks": whole["subtasks"]})
    return Arrived(told.removesuffix("]}") + ', {"id": "')


def answering(*plan: Any) -> ScriptedModel:
    """A model whose planner says these; all three subtasks are answered."""
    parts = {"t1": [works("one")], "t2": [works("two")], "t3": [works("three")]}
    return ScriptedModel({"plan": [*plan], **parts, "synthesize": [synthesizes("done [t3]")]})


async def test_a_subtask_starts_while_the_planner_is_still_writing(runs: Runs) -> None:
    started = asyncio.Event()
    model = answering(begun(PARTS[0]), started, plans(*PARTS))
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal())
        # The plan is not answered before the first subtask is asked: without an early start, never.
        await model.asked("t1")
        started.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert model.heard.count("t1") == 1, "it is not asked again"
    assert await runs.activities() == [
        *("prepare", "plan-1", "work-t1-1", "work-t2-1", "work-t3-1", "synthesize-1"),
        "critique-1",
    ]


async def test_what_the_whole_plan_has_otherwise_is_taken_back_and_told(runs: Runs) -> None:
    started, never = asyncio.Event(), asyncio.Event()
    other = subtask("t1", instruction="Find out what part 9 of the goal costs, as a list")
    model = ScriptedModel(
        {
            "plan": [begun(*PARTS[:2]), started, plans(other, PARTS[1])],
            "t1": [never],
            "t2": [works("two")],
            "9": [works("nine")],
            "synthesize": [synthesizes("done [t2]")],
        }
    )
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal())
        await model.asked("t1", "t2")
        started.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert report.findings[0].content == "nine"
    assert [note for note in report.notes if note.startswith("t1 (Subtask t1) was started before")]
    assert model.heard.count("t2") == 1
    fold = Fold(handle.id, handle._client.data_converter)
    async for event in handle.fetch_history_events():
        await fold.take(event)
    steps = {each.id: each for each in await make_steps(fold, handle.id)}
    back, anew = (steps[f"{handle.id}/work-t1-{number}"] for number in (1, 2))
    assert (back.verdict, back.parent) == ("taken back", handle.id)
    part = steps[anew.parent]
    assert back.started and part.started and part.started > back.started, "it counts from then"


async def test_a_lost_planner_leaves_its_subtasks_to_the_next_one(runs: Runs) -> None:
    """As when a worker is killed: the call counts as paid, and another one is asked."""
    started = asyncio.Event()
    lost = PossiblyBilled("dropped", Bill(model="m", calls=1, final=False))
    model = answering(begun(PARTS[0]), started, lost, plans(*PARTS))
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal())
        await model.asked("t1")
        started.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert model.heard.count("plan") == 2 and model.heard.count("t1") == 1


async def test_a_subtask_that_no_plan_may_have_is_not_told(runs: Runs) -> None:
    waited = asyncio.Event()
    vague = subtask("t1", instruction="Analyse all of the data")
    model = ScriptedModel(
        {
            "plan": [begun(vague), waited, plans(*PARTS[:2])],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal())
        await model.asked("plan")
        await asyncio.sleep(0.1)
        assert "t1" not in model.heard
        waited.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps


async def test_what_begins_alike_waits_for_the_first_also_while_the_plan_is_written(
    runs: Runs,
) -> None:
    parts = [subtask(name, inputs=["handbook"]) for name in ("t1", "t2")]
    written, first = asyncio.Event(), asyncio.Event()
    model = ScriptedModel(
        {
            "plan": [begun(*parts), written, plans(*parts)],
            "t1": [first, works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done [t1]")],
        }
    )
    text = GoalInput(name="handbook", kind="text", value="All of the handbook. " * 2_000)

    async def caching() -> Capabilities:
        return Capabilities(caching=True)

    async with runs.worker(model, capabilities=caching), asyncio.timeout(60):
        handle = await runs.start(goal(inputs=(text,)), skipping=False)
        await model.asked("t1")
        await asyncio.sleep(0.2)
        assert "t2" not in model.heard
        (asked,) = [each for each in model.requests if each.shared]
        asked.begins()
        await model.asked("t2")
        first.set()
        written.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert len([each for each in model.requests if each.shared == "5m"]) == 2
