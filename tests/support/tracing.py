"""What a history has of steps, counted in another way than a trace is made."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from orchestrator.tracing.steps import Trace

SCHEDULED = "activity_task_scheduled_event_attributes"
INITIATED = "start_child_workflow_execution_initiated_event_attributes"
ORDER = "workflow_execution_update_accepted_event_attributes"
CANCEL = "workflow_execution_cancel_requested_event_attributes"


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
