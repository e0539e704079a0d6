"""What the agents of a run are doing now: read from the ends of their own histories.

It costs a request to the server for each agent, and nothing else: no worker is asked, and nothing
is written into the history of the run or of an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.service import RPCError

from intake.connection import Connection
from orchestrator.moves import StartAgent
from orchestrator.policies import MOST_TOOL_CALLS
from orchestrator.recorded.doing import doing
from orchestrator.rules.state import State

SECONDS = 3.0
EVENTS = 6 * MOST_TOOL_CALLS
"""Of the end of a history: so many belong to one turn, with the workflow tasks in between."""
AT_ONCE = 10


async def agents_at(connection: Connection, state: State) -> Mapping[str, str]:
    """By subtask, what its agent does; what nobody can tell is left out."""
    turn = asyncio.Semaphore(AT_ONCE)
    moves = [flight.move for flight in state.flights.values()]
    agents = [move for move in moves if isinstance(move, StartAgent)]
    told = await asyncio.gather(*(_at(connection, state, each, turn) for each in agents))
    return {move.subtask_id: at for move, at in zip(agents, told, strict=True) if at}


async def _at(
    connection: Connection, state: State, move: StartAgent, turn: asyncio.Semaphore
) -> str:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=connection.target.namespace,
        execution=WorkflowExecution(workflow_id=move.run_of(state.run_id)),
        maximum_page_size=EVENTS,
    )
    limit, client = timedelta(seconds=SECONDS), connection.client
    async with turn:
        try:
            service = client.workflow_service
            found = await service.get_workflow_execution_history_reverse(request, timeout=limit)
        except RPCError:
            # It has not begun, or the server is away.
            return ""
    paid = state.work[move.subtask_id].paid.dollars
    return await doing(found.history.events, client.data_converter, move.goal.turns, paid)
