"""What a history has of steps, counted in another way than a trace is made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from conftest import Handle, Runs
from holdfast.contracts import Goal, Order
from holdfast.tracing.steps import Trace
from scripted import ScriptedModel, ready, subtask, synthesizes, works

SCHEDULED = "activity_task_scheduled_event_attributes"
INITIATED = "start_child_workflow_execution_initiated_event_attributes"
ORDER = "workflow_execution_update_accepted_event_attributes"
CANCEL = "workflow_execution_cancel_requested_event_attributes"


async def paused_and_resumed(runs: Runs) -> Handle:
    """A run that a person paused and resumed while its only subtask was under way."""
    held = asyncio.Event()
    model = ScriptedModel({"t1": [held, works("one")], "synthesize": [synthesizes("done")]})
    goal = Goal(text="Compare engines", use_models=True, plan=ready(subtask("t1")))
    async with runs.worker(model):
        handle = await runs.start(goal, skipping=False)
        await model.asked("t1")
        await handle.execute_update("pause", Order(by="me"))
        await handle.execute_update("resume", Order(by="me"))
        held.set()
        await handle.result()
    return handle


def counted(events: Iterable[HistoryEvent]) -> int:
    """Activities, runs below and orders of people."""
    steps = (SCHEDULED, INITIATED, ORDER, CANCEL)
    return sum(str(event.WhichOneof("attributes")) in steps for event in events)


async def in_histories(client: Client, run_id: str, execution: str | None = None) -> int:
    """Of a run and all runs below it; a cancel of a run below is no person's order."""
    history = await client.get_workflow_handle(run_id, run_id=execution).fetch_history()
    total = counted(history.events)
    for event in history.events:
        if event.HasField("child_workflow_execution_started_event_attributes"):
            below = event.child_workflow_execution_started_event_attributes.workflow_execution
            total += await in_histories(client, below.workflow_id, below.run_id)
    return total


def of_history(trace: Trace) -> int:
    """The steps of a trace that stand in a history as events: not the run, nor its subtasks."""
    return sum(each.kind != "subtask" for each in trace.steps) - 1
