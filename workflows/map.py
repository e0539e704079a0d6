"""A map: one segment of asking for each item of an input, from a slice of money to its report.

`holdfast.maps.rules` decides what happens next; this class carries out moves and turns what comes
back into events, one at a time, like the supervisor.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from holdfast.calls.rows import MapGoal, MapReport
from holdfast.contracts.signals import HOLD
from holdfast.history.troubles import classify_trouble
from holdfast.maps import batches, rules
from holdfast.maps.state import End, Ended, Event, Flight, Lost
from holdfast.rendering.maps import map_board, move_summary
from holdfast.rules.timers import to_datetime
from holdfast.state.events import HoldAsked, cut_event
from holdfast.tracing import story
from holdfast.workflows import scheduling, telling
from holdfast.workflows.alarms import Alarms


@workflow.defn
class MapWorkflow:
    """One segment of a map. Its name stands in histories."""

    @workflow.init
    def __init__(self, goal: MapGoal) -> None:
        self._state = rules.first_state(goal, workflow.info().workflow_start_time)
        self._inbox: list[Event] = []
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._alarms: Alarms[Event] = Alarms(self._inbox.append)
        self._report: MapReport | None = None

    @workflow.run
    async def run(self, goal: MapGoal) -> MapReport:  # noqa: ARG002
        """Ask rows until all have ended, or there is no money, a pause or a cut."""
        self._go_on()
        while self._report is None:
            await self._next_event()
            self._go_on()
        return self._report

    @workflow.signal(name=HOLD)
    def hold(self, *_: Any) -> None:
        """Take in that the run above is paused, or has an order to carry out. Arguments are
        ignored: any client can send them.
        """
        self._inbox.append(HoldAsked())

    def _go_on(self) -> None:
        for move in rules.next_moves(self._state):
            if isinstance(move, End):
                self._report = move.report
                self._alarms.set({}, self._state.now)
                return
            flight = Flight(move, self._state.now, rules.options_of(self._state, move))
            self._state = rules.take_off(self._state, flight)
            telling.tell(story.tell_rows(move, self._state.goal.work.subtask.id))
            said = move_summary(self._state, move)
            self._flying[move.id] = asyncio.create_task(self._fly(flight, said), name=move.id)
        timer = batches.timer_of(self._state)
        self._alarms.set({timer.name: timer} if timer else {}, self._state.now)
        workflow.set_current_details(map_board(self._state))

    async def _next_event(self) -> None:
        try:
            await workflow.wait_condition(lambda: bool(self._inbox))
        except asyncio.CancelledError:
            by = workflow.cancellation_reason()
            if by is None or self._state.cut:
                raise  # this worker only drops it from its cache
            self._inbox.append(cut_event(by, to_datetime(workflow.time_ns())))
        event = self._inbox.pop(0)
        before, self._state = self._state, rules.apply(self._state, event)
        for flight_id in rules.newly_cancelled(before, self._state):
            self._flying[flight_id].cancel()
        telling.tell(story.tell_map_event(event, self._state.goal.work.subtask.id))

    async def _fly(self, flight: Flight, said: str) -> None:
        try:
            result = await scheduling.do_for_map(flight.move, said, flight.options)
            self._inbox.append(Ended(flight.move, result))
        except ActivityError as error:
            told = classify_trouble(error, flight.started, flight.options, self._state.cut_at)
            self._inbox.append(Lost(flight.move, told))
        finally:
            del self._flying[flight.move.id]
