"""Many subtasks in one run: what the rules, the history and its replay make of them."""

from __future__ import annotations

from collections import Counter

import pytest

from conftest import Runs
from holdfast.contracts import Goal, Limits
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio]

MIB = 1024 * 1024
EVENTS_A_SUBTASK = 7
"""An activity has three events, and its result a workflow task of three, unless others come with
it; some room is left for what a run has once.
"""


async def test_two_hundred_subtasks_run_at_once_and_their_history_replays(runs: Runs) -> None:
    ids = [f"t{number}" for number in range(1, 201)]
    model = ScriptedModel(
        {**{each: [works(f"found {each}")] for each in ids}, "synthesize": [synthesizes("All.")]}
    )
    plan = ready(*(subtask(each, tier="haiku") for each in ids))
    limits = Limits(dollars=1_000, model_calls=300, tokens=10**9, concurrency=200)
    goal = Goal(text="Compare", plan=plan, use_models=True, limits=limits)
    report = await runs.run(goal, model)
    assert report.status == "complete" and len(report.findings) == 200
    history = await runs.handles[-1].fetch_history()
    assert len(history.events) < 200 * EVENTS_A_SUBTASK
    described = await runs.handles[-1].describe()
    assert described.raw_description.workflow_execution_info.history_size_bytes < 200 * 8_000


async def test_five_hundred_large_calls_scheduled_at_once_fit_into_one_workflow_task(
    runs: Runs,
) -> None:
    ids = [f"t{number}" for number in range(1, 501)]
    long = "and say why " * 370
    model = ScriptedModel(
        {**{each: [works("found")] for each in ids}, "synthesize": [synthesizes("All.")]}
    )
    asked = {each: f"Find out everything about part {each} of the goal {long}" for each in ids}
    plan = ready(*(subtask(each, tier="haiku", instruction=asked[each]) for each in ids))
    limits = Limits(dollars=10_000, model_calls=600, tokens=10**9, concurrency=500)
    goal = Goal(text="Compare", plan=plan, use_models=True, limits=limits)
    assert (await runs.run(goal, model)).status == "complete"
    history = await runs.handles[-1].fetch_history()
    tasks: Counter[int] = Counter()
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled = event.activity_task_scheduled_event_attributes
            tasks[scheduled.workflow_task_completed_event_id] += event.ByteSize()
    assert 2.5 * MIB < max(tasks.values()) < 4 * MIB, "not in the store, and not too much"
