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

from holdfast.temporal.connection import data_converter
from holdfast.tracing.recording import Recorder, RunBelow
from holdfast.tracing.steps import Step, Trace

AT_ONCE = 10
"""Histories that are read at the same time."""
AGENT_SECONDS = 3.0
"""How long one request for the history of an agent may take: a page waits for it."""


async def traced(
    client: Client, run_id: str, *, execution: str | None = None, content: bool = False
) -> Trace:
    """The steps of a run as they stand in its histories now. RPCError if there is none.
    `execution`: which of several of this name; None: the latest.
    """
    whole = Recorder(run_id, run_id, client.data_converter, content)
    turn = asyncio.Semaphore(AT_ONCE)
    await _take(client, whole, execution, turn)
    return whole.trace(await _below(client, whole, turn))


async def traced_agent(client: Client, run_id: str, agent: str) -> tuple[Step, ...]:
    """The turns of one agent and its calls of tools, in the order in which they were scheduled.
    `agent`: its workflow's id. RPCError if there is none.
    """
    recorder = Recorder(agent, run_id, client.data_converter, above=agent)
    limit = timedelta(seconds=AGENT_SECONDS)
    async for event in client.get_workflow_handle(agent).fetch_history_events(rpc_timeout=limit):
        await recorder.take(event)
    return recorder.steps()


async def _take(
    client: Client, recorder: Recorder, execution: str | None, turn: asyncio.Semaphore
) -> None:
    handle = client.get_workflow_handle(recorder.workflow_id, run_id=execution)
    async with turn:
        async for event in handle.fetch_history_events():
            await recorder.take(event)


async def _below(client: Client, above: Recorder, turn: asyncio.Semaphore) -> list[Step]:
    """The steps of all runs below this one, as deep as they go."""
    found = await asyncio.gather(*(_one(client, above, each, turn) for each in above.below))
    return [step for steps in found for step in steps]


async def _one(
    client: Client, above: Recorder, below: RunBelow, turn: asyncio.Semaphore
) -> list[Step]:
    """Nothing for one whose history was deleted: the run above tells how it ended."""
    own, content = below.workflow_id, above.with_content
    recorder = Recorder(own, above.session, above.converter, content, above=own)
    try:
        await _take(client, recorder, below.run_id, turn)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise
    return [*recorder.steps(), *await _below(client, recorder, turn)]


async def traced_file(events: Sequence[HistoryEvent], *, content: bool = False) -> Trace:
    """The steps of a run whose history was exported. What teams and agents did is not in it: each
    is one step, with what its report says.
    """
    run_id = events[0].workflow_execution_started_event_attributes.workflow_id
    recorder = Recorder(run_id, run_id, data_converter(None), content)
    for event in events:
        await recorder.take(event)
    return recorder.trace()
