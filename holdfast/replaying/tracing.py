"""The trace of a run, with those of all runs and agents below it: read from Temporal's histories,
or from the file that `export` wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.history.fold import Fold
from holdfast.temporal.connection import data_converter
from holdfast.tracing.steps import Trace, TraceStep
from holdfast.tracing.trace import RunBelow, make_steps, make_trace, runs_below

AT_ONCE = 10
"""Histories that are read at the same time."""
AGENT_SECONDS = 3.0
"""How long one request for the history of an agent may take: a page waits for it."""


async def read_trace(
    client: Client, run_id: str, *, execution: str | None = None, content: bool = False
) -> Trace:
    """Return the trace of a run as it stands in its histories now. RPCError if there is none.
    `execution`: which of several of this name; None: the latest.
    """
    turn = asyncio.Semaphore(AT_ONCE)
    fold = await _fold(client, run_id, execution, turn)
    below = await _steps_below(client, fold, run_id, turn, content=content)
    return await make_trace(fold, below, with_content=content)


async def read_turns(client: Client, run_id: str, agent: str) -> tuple[TraceStep, ...]:
    """Return the turns of one agent and its calls of tools, in the order in which they were
    scheduled. `agent`: its workflow's id. RPCError if there is none.
    """
    fold = Fold(agent, client.data_converter)
    limit = timedelta(seconds=AGENT_SECONDS)
    async for event in client.get_workflow_handle(agent).fetch_history_events(rpc_timeout=limit):
        await fold.take(event)
    return await make_steps(fold, run_id, above=agent)


async def read_trace_file(events: Sequence[HistoryEvent], *, content: bool = False) -> Trace:
    """Return the trace of a run whose history was exported. What teams and agents did is not in
    it: each is one step, with what its report says.
    """
    run_id = events[0].workflow_execution_started_event_attributes.workflow_id
    fold = Fold(run_id, data_converter(None))
    for event in events:
        await fold.take(event)
    return await make_trace(fold, with_content=content)


async def _fold(
    client: Client, workflow_id: str, execution: str | None, turn: asyncio.Semaphore
) -> Fold:
    fold = Fold(workflow_id, client.data_converter)
    handle = client.get_workflow_handle(workflow_id, run_id=execution)
    async with turn:
        async for event in handle.fetch_history_events():
            await fold.take(event)
    return fold


async def _steps_below(
    client: Client, above: Fold, session: str, turn: asyncio.Semaphore, *, content: bool
) -> list[TraceStep]:
    """Return the steps of all runs below this one, as deep as they go."""

    async def read(below: RunBelow) -> list[TraceStep]:
        own = below.workflow_id
        try:
            fold = await _fold(client, own, below.run_id, turn)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                # Its history was deleted: the run above tells how it ended.
                return []
            raise
        steps = await make_steps(fold, session, above=own, with_content=content)
        return [*steps, *await _steps_below(client, fold, session, turn, content=content)]

    found = await asyncio.gather(*(read(each) for each in runs_below(above)))
    return [step for steps in found for step in steps]
