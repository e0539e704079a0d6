"""What an operator has paused by Temporal's own means: a whole run, or activities of it and below.
The run cannot know it: readers ask the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta

from temporalio.client import WorkflowExecution, WorkflowExecutionDescription
from temporalio.service import RPCError

from holdfast.contracts.view import RunView
from holdfast.intake.connection import Connection
from holdfast.replaying.tracing import AT_ONCE
from holdfast.state.moves import Ask, Examine, StartAgent, StartMap, StartTeam
from holdfast.state.run import State
from holdfast.temporal.connection import PAUSED, is_paused

SECONDS = 3.0
BY = f"{PAUSED} by an operator"
FREE = "; `temporal activity unpause` lets it go on"


def unpause_command(run_id: str) -> str:
    """Return what to type so that a whole run goes on."""
    return f"temporal workflow unpause --workflow-id {run_id}"


def run_paused(run: WorkflowExecution) -> str:
    """Say that the whole run is paused, and what lets it go on; empty: it is not."""
    if not is_paused(run):
        return ""
    return f"{BY}: it takes in nothing until `{unpause_command(run.id)}`"


def paused_activities(description: WorkflowExecutionDescription) -> tuple[str, ...]:
    """Return the ids of activities that are paused, or will be when their attempt is over."""
    pending = description.raw_description.pending_activities
    return tuple(each.activity_id for each in pending if each.paused)


async def paused_below(connection: Connection, state: State) -> Mapping[str, str]:
    """Return, by subtask, what of its agent or team is paused; a request for each in flight."""
    turn = asyncio.Semaphore(AT_ONCE)
    moves = [flight.move for flight in state.flights.values()]
    below = [each for each in moves if isinstance(each, StartAgent | StartMap | StartTeam)]
    runs = (each.run_of(state.run_id) for each in below)
    said = await asyncio.gather(*(_tell(connection, each, turn) for each in runs))
    return {move.subtask_id: why for move, why in zip(below, said, strict=True) if why}


async def _tell(connection: Connection, workflow_id: str, turn: asyncio.Semaphore) -> str:
    limit, handle = timedelta(seconds=SECONDS), connection.client.get_workflow_handle(workflow_id)
    async with turn:
        try:
            found = await handle.describe(rpc_timeout=limit)
        except RPCError:
            # It has not begun, or the server is away.
            return ""
    held = paused_activities(found)
    return run_paused(found) or "; ".join(f"{each} of {workflow_id} is {BY}{FREE}" for each in held)


def pause_notes(activities: tuple[str, ...], below: Mapping[str, str]) -> Iterator[str]:
    """Say what is paused, and how it goes on."""
    for each in activities:
        yield f"{each} is {BY}{FREE}"
    for subtask, why in below.items():
        yield f"{subtask}: {why}"


def with_pauses(
    view: RunView, state: State, activities: tuple[str, ...], below: Mapping[str, str]
) -> RunView:
    """Return the view with what is paused told as that: the run itself takes it for running."""
    moves = [flight.move for key, flight in state.flights.items() if key in activities]
    asked = {each.subtask_id for each in moves if isinstance(each, Ask | Examine)}
    paused = {"status": "paused", "note": BY}
    rows = (
        row.model_copy(update=paused)
        if row.status == "running" and (row.id in below or row.id in asked)
        else row
        for row in view.rows
    )
    return view.model_copy(update={"rows": tuple(rows)})
