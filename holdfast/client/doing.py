"""What the agents of a run are doing now, and what they did turn by turn: read from their own
histories.

It costs a request to the server for each agent, and nothing else: no worker is asked, and nothing
is written into the history of the run or of an agent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.service import RPCError

from holdfast.contracts.policies import MOST_TOOL_CALLS
from holdfast.history.doing import describe_doing
from holdfast.history.steps import Step
from holdfast.intake.connection import Connection
from holdfast.replaying.tracing import AT_ONCE, read_turns
from holdfast.state.moves import StartAgent
from holdfast.state.run import State
from holdfast.tracing.steps import TraceStep

SECONDS = 3.0
EVENTS = 6 * MOST_TOOL_CALLS
"""Events of one turn at the end of a history, with its workflow tasks."""
AGAIN_SECONDS = 2.0
"""How long what an agent under way has done is still shown: a page asks each second."""
MOST_AGENTS = 300
"""So many histories are read for a page: the first ones. It says of each other that it was not."""


async def agents_at(connection: Connection, state: State) -> Mapping[str, str]:
    """Return, by subtask, what its agent does; what is not known is left out."""
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
    owner = state.work.get(move.subtask_id)
    paid = owner.paid.dollars if owner is not None else None
    events = found.history.events[::-1]
    return await describe_doing(events, client.data_converter, move.goal.turns, paid)


@dataclass
class Turns:
    """What the agents of a run did; what cannot change any more is read once."""

    connection: Connection
    run_id: str
    _known: dict[str, tuple[TraceStep, ...]] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    _looked: float = 0.0

    async def of(self, steps: Iterable[Step]) -> Mapping[str, tuple[TraceStep, ...]]:
        """Return the turns by the id of an agent's workflow, for these steps of the run; what the
        server does not tell is left out.
        """
        agents = {
            each.move.run_of(self.run_id): each.ended is not None
            for each in steps
            if isinstance(each.move, StartAgent)
        }
        again = time.monotonic() - self._looked > AGAIN_SECONDS
        wanted = [
            name
            for name, over in [*agents.items()][:MOST_AGENTS]
            if name not in self._over and (over or again)
        ]
        if again:
            self._looked = time.monotonic()
        turn = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._read(each, turn) for each in wanted))
        self._over |= {each for each in wanted if agents[each] and each in self._known}
        return {name: self._known[name] for name in agents if name in self._known}

    async def _read(self, agent: str, turn: asyncio.Semaphore) -> None:
        async with turn:
            try:
                found = await read_turns(self.connection.client, self.run_id, agent)
            except RPCError:
                # It has not begun, its history was deleted, or the server is away.
                return
        self._known[agent] = found
