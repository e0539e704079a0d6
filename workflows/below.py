"""The workflows below a run: teams, and segments of agents and maps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.workflow import ChildWorkflowHandle

from holdfast.contracts.signals import HOLD
from holdfast.state.moves import StartAgent, StartMap, StartTeam
from holdfast.state.parts import Flight
from holdfast.workflows import scheduling

Ended = TypeVar("Ended")


class Below:
    """Starts them, and tells them of cuts and holds. `flight` looks up what is in flight."""

    def __init__(self, flight: Callable[[str], Flight | None]) -> None:
        self._flight = flight
        self._started: dict[str, ChildWorkflowHandle[Any, Any]] = {}
        self._telling: list[asyncio.Task[None]] = []

    async def run(
        self,
        run: Callable[[Any, Any], Awaitable[Ended]],
        move: StartTeam | StartAgent | StartMap,
        said: str,
    ) -> Ended:
        run_id = move.run_of(workflow.info().workflow_id)
        child = await scheduling.start_below(run, move.goal, run_id, said)
        self._started[move.id] = child
        self.tell(move.id)
        return await child

    def tell(self, flight_id: str) -> None:
        """Tell one that it was cut or is held, as soon as its start is confirmed: cancelled before
        that, in a run that is cancelled itself, the SDK would never say how it ended.
        """
        child, flight = self._started.get(flight_id), self._flight(flight_id)
        if child is None:
            return
        if flight is None or flight.cut:
            child.cancel()
        elif flight.held:
            self._telling.append(asyncio.create_task(scheduling.tell(child.signal(HOLD))))
