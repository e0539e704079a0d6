"""A run that nobody serves for a while: its deadline stands still, and what never left is free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.worker import Worker
from test_agents import catalogue, goal

from conftest import Handle, Runs
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Goal
from holdfast.workflows import WORKFLOWS
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, plans, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio]

SECONDS = 12
"""Longer than an attempt may be silent, and than the work of a run with this limit may take."""
LIMITS = {"deadline_seconds": 12, "replans": 0}


@asynccontextmanager
async def decides(runs: Runs) -> AsyncIterator[None]:
    """Somebody takes the steps of runs, and nothing else."""
    async with Worker(runs.client, task_queue=runs.queue, workflows=WORKFLOWS):
        yield


async def planned_unseen(runs: Runs, wanted: Goal, model: ScriptedModel) -> Handle:
    """A run whose plan came back after those who could go on with it were gone."""
    plan = asyncio.Event()
    model._left["plan"].appendleft(plan)
    async with decides(runs):
        handle = await runs.start(wanted, skipping=False)
        await model.asked("plan")
    plan.set()
    while True:
        events = (await handle.fetch_history()).events
        if sum(each.HasField("activity_task_completed_event_attributes") for each in events) > 1:
            return handle
        await asyncio.sleep(0.05)


async def test_a_deadline_stands_still_while_nobody_serves_the_run_planning_included(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"))],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("Both [t1] [t2]")],
        }
    )
    wanted = Goal.model_validate({"text": "Compare", "use_models": True, "limits": LIMITS})
    async with runs.worker(model, workflows=[]), asyncio.timeout(90):
        handle = await planned_unseen(runs, wanted, model)
        await asyncio.sleep(SECONDS)
        async with decides(runs):
            report = await outcome(handle)
    assert report.status == "complete", "its time was not over"
    assert report.model_calls == 5 and not report.assumed
    assert SECONDS - 4 < report.timings.waited < SECONDS + 30


async def test_what_a_run_would_have_asked_when_it_was_cancelled_meanwhile_is_not_billed(
    runs: Runs,
) -> None:
    """Calls, and an agent with tools: the plan and the cancel are taken in one workflow task."""
    model = ScriptedModel(
        {"plan": [plans(subtask("t1"), subtask("t2", role="reader", inputs=["repo"]))]}
    )
    wanted = goal(runs, plan=None, limits={"replans": 0})
    async with runs.worker(model, workflows=[], catalogue=catalogue(runs)), asyncio.timeout(90):
        handle = await planned_unseen(runs, wanted, model)
        await asyncio.sleep(SECONDS)
        await handle.cancel()
        async with decides(runs):
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            report = await handle.query(SupervisorWorkflow.report)
    assert await runs.activities() == ["prepare", "plan-1"]
    assert report.model_calls == 1 and not report.assumed
    assert {each.dollars for each in report.findings} == {0}
