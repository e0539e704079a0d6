"""The one reading of a history: the state of its run, and what was done for it step by step.

A reader needs neither a worker nor a query: `Fold` takes Temporal's events one after the other and
makes of them the events that the workflow took, in the same order, by the same pure rules. Its
state is the workflow's own after the last workflow task that was completed.

Of an agent's or a map's history, and behind an event that cannot be read, no state is made: there
`executions` has what the events alone tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Request
from temporalio.converter import DataConverter
from temporalio.exceptions import CancelledError

from holdfast.contracts import Goal, Order, Report
from holdfast.contracts.notices import Delivery, Notice
from holdfast.contracts.signals import SIGNALS
from holdfast.history import landings
from holdfast.history.actions import describe_actions, is_action
from holdfast.history.executions import (
    AGENT,
    CLOSING,
    ENDS,
    MAP,
    NOTICE,
    Execution,
    Executions,
    time_of,
)
from holdfast.history.losses import Loss
from holdfast.history.payloads import (
    activity_error,
    child_error,
    decode,
    decode_cause,
    describe_unreadable,
    failure_message,
)
from holdfast.history.signals import parse_signal
from holdfast.history.steps import WORDS, Step, Steps
from holdfast.history.troubles import find_report
from holdfast.rules import next_moves, reducer
from holdfast.rules.timers import EPOCH, Timer, timers
from holdfast.state.events import NOTIFIER_ENDED, Event, Notified, Started, Steered, cancel_event
from holdfast.state.moves import StartAgent, StartMap, StartTeam
from holdfast.state.parts import Flight
from holdfast.state.run import State, first_state

TASK_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
TASK_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
"""A task's Signals are handed over before its results."""
RESET_CAUSE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
Value = TypeVar("Value")


class _Unreadable(Exception):
    """A payload that a run's state needs cannot be read; the message says which, and why."""


async def last_failure(
    events: Iterable[HistoryEvent], converter: DataConverter, before: str = ""
) -> str:
    """Return why the last workflow task failed, on one line; empty if one was completed after it.
    `before`: why one had failed before these events.
    """
    why = before
    for event in events:
        attributes = event.workflow_task_failed_event_attributes
        if event.event_type == TASK_COMPLETED:
            why = ""
        # A reset leaves the task that it takes back as a failed one.
        elif event.event_type == TASK_FAILED and attributes.cause != RESET_CAUSE:
            why = (await failure_message(converter, attributes.failure))[:500]
    return why


@dataclass
class Fold:
    """The state of one run, as far as its history was taken in."""

    run_id: str
    converter: DataConverter
    state: State | None = None
    """None before the first workflow task was completed."""
    last_event: int = 0
    report: Report | None = None
    """The report that the run closed with: its result, or the detail of its failure; None when it
    was refused, cancelled or closed from outside.
    """
    unreadable: str = ""
    """Why the state is not known any further; empty: it is."""
    task_failure: str = ""
    """Why the last workflow task failed; empty: it did not."""
    steps: Steps = field(default_factory=Steps)
    """Everything done so far or under way, by the rules."""
    executions: Executions = field(default_factory=Executions)
    """The same by its events alone."""
    _actions: int = 0
    _state: State | None = None
    _inputs: list[HistoryEvent] = field(default_factory=list)
    """Events that came in since the last completed workflow task began."""
    _task_began: datetime = EPOCH
    _asked: dict[str, Request] = field(default_factory=dict)
    """Updates that the server keeps until a worker takes them, by their id."""
    _accepted: int = 0
    _orders: dict[str, Steered] = field(default_factory=dict)
    """The name of the timer that gives it its turn -> an order."""
    _flights: dict[int, str] = field(default_factory=dict)
    """Flights of activities and children, by the event that scheduled each."""
    _timers: dict[str, Timer | Steered] = field(default_factory=dict)
    """Temporal's id -> a timer."""

    async def take(self, event: HistoryEvent) -> None:
        """Take in the next event; one that was taken in before changes nothing."""
        if event.event_id <= self.last_event:
            return
        self.last_event = event.event_id
        self.executions.take(event)
        self._actions += is_action(event)
        self.task_failure = await last_failure([event], self.converter, self.task_failure)
        try:
            # How a run closed may be whole where what came before cannot be read.
            if not self.unreadable or event.event_type in CLOSING:
                await self._follow(event)
        except _Unreadable as error:
            self.unreadable = self.unreadable or str(error)

    @property
    def is_agent(self) -> bool:
        """True if the history is that of a segment of an agent or a map, which have rules of their
        own.
        """
        return self.executions.own is not None and self.executions.own.type in (AGENT, MAP)

    @property
    def actions(self) -> str:
        """Return how many actions a server bills for this history, in a sentence."""
        return describe_actions(self._actions, self.executions)

    @property
    def lost(self) -> tuple[tuple[str, Loss], ...]:
        """Return what was lost with its worker: by its subtask, or in a word where it has none."""
        named = ((self.step_of(each), each.lost) for each in self.executions if each.lost)
        return tuple(
            (step.subtask_id or WORDS.get(step.kind, step.kind).lower(), loss)
            for step, loss in named
            if step
        )

    def step_of(self, execution: Execution) -> Step | None:
        """Return what an activity or a child is by the rules; None: they do not know it."""
        return self.steps.by_id.get(self._flights.get(execution.scheduled.event_id, ""))

    async def _follow(self, event: HistoryEvent) -> None:
        if self.is_agent:
            return
        kind = event.event_type
        if (kind in CLOSING or kind == TASK_SCHEDULED) and not self.unreadable:
            self._settle_unsent()
        handle = _KNOWN.get(kind)
        if handle is not None:
            await handle(self, event)
        elif kind in _INPUTS:
            self._inputs.append(event)

    async def _read(self, event: HistoryEvent, reading: Awaitable[Value]) -> Value:
        try:
            return await reading
        except Exception as error:
            why = describe_unreadable(error)
            raise _Unreadable(f"event {event.event_id} of {self.run_id}: {why}") from error

    async def _decode(self, event: HistoryEvent, payloads: Sequence[Payload], kind: Any) -> Any:
        return await self._read(event, decode(self.converter, payloads, kind))

    # ------------------------------------------------------------ the run and its tasks

    async def _started(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_started_event_attributes
        goal = await self._decode(event, attributes.input.payloads, Goal)
        first_run = attributes.first_execution_run_id
        self._state = first_state(self.run_id, goal, time_of(event), first_run)
        self._go_on()

    async def _task_started(self, event: HistoryEvent) -> None:
        self._task_began = time_of(event)

    async def _task_completed(self, event: HistoryEvent) -> None:
        """Take in what had come in before the task began."""
        began = event.workflow_task_completed_event_attributes.started_event_id
        taken = [each for each in self._inputs if each.event_id < began]
        self._inputs = self._inputs[len(taken) :]
        for event in sorted(taken, key=lambda each: each.event_type != SIGNALED):
            await self._take_in(event)
        self.state = self._state

    async def _closed(self, event: HistoryEvent) -> None:
        own = self.executions.own
        assert own is not None
        if own.end == "completed":
            self.report = await self._decode(event, own.result, Report)
        else:
            self.report = find_report(await self._read(event, decode_cause(self.converter, own)))

    async def _take_in(self, event: HistoryEvent) -> None:
        meant = await _INPUTS[event.event_type](self, event)
        if meant is not None and self._state is not None:
            self._apply(meant)
            self._go_on()

    def _settle_unsent(self) -> None:
        """Settle what was scheduled and cut in one workflow task: no event has its end."""
        sent = self._flights.values()
        while self._state is not None:
            cut = [each for each in self._state.flights.values() if each.cut]
            unsent = next((each for each in cut if each.move.id not in sent), None)
            if unsent is None:
                break
            error = activity_error(unsent.move.id, 0, 0, CancelledError("cancelled"))
            self._apply(landings.land_failure(unsent, error))
            self._go_on()
        self.state = self._state if self.state is not None else None

    def _apply(self, event: Event) -> None:
        assert self._state is not None
        before, self._state = self._state, reducer.apply(self._state, event)
        self.steps.take(before, event, self._state)

    def _go_on(self) -> None:
        assert self._state is not None
        for move in next_moves.next_moves(self._state):
            self._apply(Started(move))

    # ------------------------------------------------------------ what was scheduled

    async def _activity_scheduled(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_scheduled_event_attributes
        self._flights[event.event_id] = attributes.activity_id

    async def _child_initiated(self, event: HistoryEvent) -> None:
        attributes = event.start_child_workflow_execution_initiated_event_attributes
        assert self._state is not None
        for flight_id, flight in self._state.flights.items():
            move = flight.move
            if not isinstance(move, StartTeam | StartAgent | StartMap):
                continue
            if move.run_of(self.run_id) == attributes.workflow_id:
                self._flights[event.event_id] = flight_id

    async def _timer_started(self, event: HistoryEvent) -> None:
        attributes = event.timer_started_event_attributes
        name = await self._decode(event, [event.user_metadata.summary], str)
        assert self._state is not None
        known = self._orders.get(name) or timers(self._state).get(name)
        if known is not None:
            self._timers[attributes.timer_id] = known

    async def _update_admitted(self, event: HistoryEvent) -> None:
        request = event.workflow_execution_update_admitted_event_attributes.request
        self._asked[request.meta.update_id] = request

    async def _update_accepted(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_update_accepted_event_attributes
        request = self._asked.get(attributes.protocol_instance_id, attributes.accepted_request)
        order = await self._decode(event, request.input.args.payloads, Order)
        self._accepted += 1
        given = Steered(self._accepted, request.input.name, order, self._task_began)
        self._orders[given.name] = given

    # ------------------------------------------------------------ what came in

    async def _landed(self, event: HistoryEvent) -> Event | None:
        execution = self.executions.of(event)
        if execution is not None and execution.type == NOTICE:
            return await self._notified(event, execution)
        flight = self._flight(execution) if execution else None
        if execution is None or flight is None:
            return None
        if execution.end == "completed":
            kind = landings.result_type(flight)
            return landings.land_result(flight, await self._decode(event, execution.result, kind))
        if execution.end == "not_started":
            return landings.land_taken_name(flight, execution.id)
        cause = await self._read(event, decode_cause(self.converter, execution))
        scheduled = execution.scheduled.event_id
        if execution.is_workflow:
            return landings.land_failure(flight, child_error(scheduled, cause))
        error = activity_error(execution.id, scheduled, execution.last_started, cause)
        return landings.land_failure(flight, error)

    async def _notified(self, event: HistoryEvent, execution: Execution) -> Event | None:
        if execution.end == "not_started":
            return None
        notice = await self._decode(execution.scheduled, execution.input, Notice)
        if execution.end == "completed":
            told = await self._decode(event, execution.result, Delivery)
            return Notified(notice.number, told.failures)
        return Notified(notice.number, (NOTIFIER_ENDED,))

    async def _timer_fired(self, event: HistoryEvent) -> Event | None:
        known = self._timers.pop(event.timer_fired_event_attributes.timer_id, None)
        if isinstance(known, Steered):
            return known
        assert self._state is not None
        # One that is not waited for any more was cancelled, even if it had fired by then.
        wanted = timers(self._state).get(known.name) if known else None
        return wanted.then if known and wanted == known else None

    async def _cancel_requested(self, event: HistoryEvent) -> Event | None:
        attributes = event.workflow_execution_cancel_requested_event_attributes
        return cancel_event(attributes.cause, self._task_began)

    async def _signaled(self, event: HistoryEvent) -> Event | None:
        attributes = event.workflow_execution_signaled_event_attributes
        payloads = attributes.input.payloads
        if attributes.signal_name not in SIGNALS:
            return None
        try:
            told = await self._decode(event, payloads[:1], Any) if payloads else None
        except _Unreadable:
            # The SDK drops what it cannot decode.
            return None
        return parse_signal(attributes.signal_name, told, self._task_began)

    def _flight(self, execution: Execution) -> Flight | None:
        assert self._state is not None
        return self._state.flights.get(self._flights.get(execution.scheduled.event_id, ""))


_Handler = Callable[[Fold, HistoryEvent], Any]
_KNOWN: Mapping[int, _Handler] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: Fold._started,
    EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED: Fold._task_started,
    TASK_COMPLETED: Fold._task_completed,
    **dict.fromkeys(CLOSING, Fold._closed),
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: Fold._activity_scheduled,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: Fold._child_initiated,
    EventType.EVENT_TYPE_TIMER_STARTED: Fold._timer_started,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED: Fold._update_admitted,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: Fold._update_accepted,
}
"""Taken in at once: these stand in a history where the workflow task that made them ended."""
_INPUTS: Mapping[int, _Handler] = {
    **dict.fromkeys(ENDS, Fold._landed),
    EventType.EVENT_TYPE_TIMER_FIRED: Fold._timer_fired,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED: Fold._cancel_requested,
    SIGNALED: Fold._signaled,
}
"""Taken in by the next workflow task, in this order."""
