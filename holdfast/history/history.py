"""The state of a run, read from its history: by the same pure rules that its workflow followed.

A reader needs neither a worker nor a query: `Fold` takes Temporal's events one after the other and
makes of them the events that the workflow took, in the same order. Its state is the workflow's own
after the last workflow task that was completed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Request
from temporalio.converter import DataConverter
from temporalio.exceptions import CancelledError

from holdfast.contracts import Goal, Order, Report
from holdfast.history import landings
from holdfast.history.actions import Actions
from holdfast.history.losses import Loss, Losses
from holdfast.history.payloads import Payloads, Unreadable, activity_error, child_error
from holdfast.history.signals import SIGNALS, heard
from holdfast.history.steps import WORDS, Step, Steps
from holdfast.history.troubles import report_in
from holdfast.rules import next_moves, reducer
from holdfast.rules.timers import EPOCH, Timer, timers, to_datetime
from holdfast.state.events import Event, Started, Steered, cancel_event
from holdfast.state.moves import StartAgent, StartTeam
from holdfast.state.parts import Flight
from holdfast.state.run import State, first_state

TASK_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
"""A task's Signals are handed over before its results."""
RESET_CAUSE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
CLOSING = (
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
)


@dataclass
class Fold:
    """The state of one run, as far as its history was taken in."""

    run_id: str
    converter: DataConverter
    state: State | None = None
    """None before the first workflow task was completed."""
    last_event: int = 0
    report: Report | None = None
    """As the run closed with it: returned, or as the detail of the failure; None when it was
    refused, cancelled or closed from outside.
    """
    actions: Actions = field(default_factory=Actions)
    losses: Losses = field(default_factory=Losses)
    task_failure: str = ""
    """Why the last workflow task failed; empty: it did not."""
    steps: Steps = field(default_factory=Steps)
    """What it did so far, and has under way."""
    _state: State | None = None
    _inputs: list[HistoryEvent] = field(default_factory=list)
    """What came in since the last completed workflow task began."""
    _task_began: datetime = EPOCH
    _asked: dict[str, Request] = field(default_factory=dict)
    """Updates that the server keeps until a worker takes them, by their id."""
    _accepted: int = 0
    _orders: dict[str, Steered] = field(default_factory=dict)
    """By the name of the timer that gives them their turn."""
    _flights: dict[int, str] = field(default_factory=dict)
    """Which flight an activity or a child is, by the event that scheduled it."""
    _timers: dict[str, Timer | Steered] = field(default_factory=dict)
    """By Temporal's id."""

    def __post_init__(self) -> None:
        self._payloads = Payloads(self.run_id, self.converter)

    async def take(self, event: HistoryEvent) -> None:
        """Take in the next event. Unreadable when it cannot be understood."""
        if event.event_id <= self.last_event:
            return
        if event.event_type in CLOSING or event.event_type == TASK_SCHEDULED:
            self._settle_unsent()
        self.actions.take(event)
        self.losses.take(event)
        handle = _KNOWN.get(event.event_type)
        if handle is not None:
            await handle(self, event)
        elif event.event_type in _INPUTS:
            self._inputs.append(event)
        self.last_event = event.event_id

    async def take_end(self, event: HistoryEvent) -> None:
        """Take only how the run closed, which may be whole where what came before cannot be read.
        Unreadable when it is not.
        """
        if event.event_id <= self.last_event:
            return
        self.last_event = event.event_id
        if event.event_type in CLOSING and event.event_type in _KNOWN:
            await _KNOWN[event.event_type](self, event)

    # ------------------------------------------------------------ the run and its tasks

    async def _started(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_started_event_attributes
        goal = await self._payloads.decoded(attributes.input.payloads, Goal, event)
        began = to_datetime(event.event_time.ToNanoseconds())
        self._state = first_state(self.run_id, goal, began, attributes.first_execution_run_id)
        self._go_on()

    async def _task_started(self, event: HistoryEvent) -> None:
        self._task_began = to_datetime(event.event_time.ToNanoseconds())

    async def _task_completed(self, event: HistoryEvent) -> None:
        """What had come in before the task began was taken in by it."""
        began = event.workflow_task_completed_event_attributes.started_event_id
        taken = [each for each in self._inputs if each.event_id < began]
        self._inputs = self._inputs[len(taken) :]
        for event in sorted(taken, key=lambda each: each.event_type != SIGNALED):
            await self._take_in(event)
        self.state, self.task_failure = self._state, ""

    async def _completed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_completed_event_attributes
        self.report = await self._payloads.decoded(attributes.result.payloads, Report, event)

    async def _failed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_failed_event_attributes
        self.report = report_in(await self._payloads.failure(attributes.failure, event))

    async def _task_failed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_task_failed_event_attributes
        # A reset leaves the task that it takes back as a failed one.
        if attributes.cause != RESET_CAUSE:
            self.task_failure = " ".join(attributes.failure.message.split())[:300]

    async def _take_in(self, event: HistoryEvent) -> None:
        meant = await _INPUTS[event.event_type](self, event)
        if meant is not None and self._state is not None:
            self._apply(meant)
            self._go_on()

    def _settle_unsent(self) -> None:
        """What was scheduled and cut in one workflow task never left: no event tells its end."""
        sent = self._flights.values()
        while self._state is not None:
            cut = [each for each in self._state.flights.values() if each.cut]
            unsent = next((each for each in cut if each.move.id not in sent), None)
            if unsent is None:
                break
            error = activity_error(unsent, 0, 0, CancelledError("cancelled"))
            self._apply(landings.failed(unsent, error))
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
            run_id = move.run_of(self.run_id) if isinstance(move, StartTeam | StartAgent) else ""
            if run_id == attributes.workflow_id:
                self._flights[event.event_id] = flight_id

    async def _timer_started(self, event: HistoryEvent) -> None:
        attributes = event.timer_started_event_attributes
        name = await self._payloads.decoded([event.user_metadata.summary], str, event)
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
        order = await self._payloads.decoded(request.input.args.payloads, Order, event)
        self._accepted += 1
        given = Steered(self._accepted, request.input.name, order, self._task_began)
        self._orders[given.name] = given

    # ------------------------------------------------------------ what came in

    async def _activity_completed(self, event: HistoryEvent) -> Event | None:
        attributes = event.activity_task_completed_event_attributes
        flight = self._flight(attributes.scheduled_event_id)
        if flight is None:
            return None
        kind = landings.result_of(flight)
        result = await self._payloads.decoded(attributes.result.payloads, kind, event)
        return landings.returned(flight, result)

    async def _activity_ended(self, event: HistoryEvent) -> Event | None:
        attributes = getattr(event, str(event.WhichOneof("attributes")))
        flight = self._flight(attributes.scheduled_event_id)
        if flight is None:
            return None
        scheduled, began = attributes.scheduled_event_id, attributes.started_event_id
        cause = await self._payloads.cause(attributes)
        return landings.failed(flight, activity_error(flight, scheduled, began, cause))

    async def _child_completed(self, event: HistoryEvent) -> Event | None:
        attributes = event.child_workflow_execution_completed_event_attributes
        flight = self._flight(attributes.initiated_event_id)
        if flight is None:
            return None
        kind = landings.result_of(flight)
        report = await self._payloads.decoded(attributes.result.payloads, kind, event)
        return landings.returned(flight, report)

    async def _child_ended(self, event: HistoryEvent) -> Event | None:
        attributes = getattr(event, str(event.WhichOneof("attributes")))
        flight = self._flight(attributes.initiated_event_id)
        if flight is None:
            return None
        error = child_error(attributes.initiated_event_id, await self._payloads.cause(attributes))
        return landings.failed(flight, error)

    async def _child_not_started(self, event: HistoryEvent) -> Event | None:
        attributes = event.start_child_workflow_execution_failed_event_attributes
        flight = self._flight(attributes.initiated_event_id)
        return landings.name_taken(flight, attributes.workflow_id) if flight else None

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
        if attributes.signal_name not in SIGNALS:
            return None
        payloads = attributes.input.payloads
        try:
            told = await self._payloads.decoded(payloads[:1], Any, event) if payloads else None
        except Unreadable:
            # The SDK drops what it cannot decode.
            return None
        return heard(attributes.signal_name, told, self._task_began)

    def step(self, scheduled: int) -> Step | None:
        """What this event scheduled; None: nothing that the rules know."""
        return self.steps.by_id.get(self._flights.get(scheduled, ""))

    def lost(self) -> tuple[tuple[str, Loss], ...]:
        """What was lost with its worker, each by its subtask, or in a word where it has none."""
        named = ((self.step(event), loss) for event, loss in sorted(self.losses.by_event.items()))
        return tuple(
            (step.subtask_id or WORDS.get(step.kind, step.kind).lower(), loss)
            for step, loss in named
            if step
        )

    def _flight(self, scheduled: int) -> Flight | None:
        assert self._state is not None
        return self._state.flights.get(self._flights.get(scheduled, ""))


_Handler = Callable[[Fold, HistoryEvent], Any]
_KNOWN: Mapping[int, _Handler] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: Fold._started,
    EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED: Fold._task_started,
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED: Fold._task_completed,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED: Fold._task_failed,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: Fold._completed,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: Fold._failed,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: Fold._activity_scheduled,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: Fold._child_initiated,
    EventType.EVENT_TYPE_TIMER_STARTED: Fold._timer_started,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED: Fold._update_admitted,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: Fold._update_accepted,
}
"""What is read at once: it stands in a history where the workflow task that made it ended."""
_INPUTS: Mapping[int, _Handler] = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: Fold._activity_completed,
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: Fold._activity_ended,
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: Fold._activity_ended,
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: Fold._activity_ended,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: Fold._child_completed,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: Fold._child_ended,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: Fold._child_ended,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT: Fold._child_ended,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED: Fold._child_ended,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: Fold._child_not_started,
    EventType.EVENT_TYPE_TIMER_FIRED: Fold._timer_fired,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED: Fold._cancel_requested,
    SIGNALED: Fold._signaled,
}
"""What a workflow task takes in, in this order."""
