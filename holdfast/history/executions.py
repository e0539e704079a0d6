"""Activities and workflows as the events of a history have them, from queue to end. Pure.

Holds for any workflow's history and for any part of one, and decodes no payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

from holdfast.history.losses import Loss, loss_in
from holdfast.rules.timers import to_datetime

AGENT = "AgentWorkflow"
"""The type of the workflow that is a segment of an agent."""
MAP = "MapWorkflow"
"""The type of the workflow that is a segment of a map."""
NOTICE = "NotifyWorkflow"
"""The type of the workflow that tells addresses of the web of a run."""
End = Literal["completed", "failed", "timed_out", "canceled", "terminated", "not_started"]
SCHEDULED = (
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
)
_STARTED = (
    EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED,
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
)
_ENDS: dict[int, End] = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "completed",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "failed",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "timed_out",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "canceled",
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: "completed",
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: "failed",
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT: "timed_out",
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: "canceled",
    EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED: "terminated",
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: "not_started",
}
ENDS = tuple(_ENDS)
"""How what was scheduled ends."""
_OPENING = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
_CLOSING: dict[int, End] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "completed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: "failed",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "timed_out",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "canceled",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "terminated",
}
CLOSING = tuple(_CLOSING)
"""How the workflow itself ends, whose history it is."""
_EITHER = _ENDS | _CLOSING


def attributes_of(event: HistoryEvent) -> Any:
    """Return the attributes of an event, whatever its type."""
    return getattr(event, str(event.WhichOneof("attributes")))


def time_of(event: HistoryEvent) -> datetime:
    """Return when an event was recorded, by the server's clock."""
    return to_datetime(event.event_time.ToNanoseconds())


@dataclass
class Execution:
    """An activity, a child workflow, or the workflow itself whose history it is. An activity is one
    however often it was attempted.
    """

    scheduled: HistoryEvent
    started: HistoryEvent | None = None
    """Last attempt of an activity, which the server records together with the end."""
    ended: HistoryEvent | None = None

    @property
    def is_workflow(self) -> bool:
        return self.scheduled.event_type != EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED

    @property
    def id(self) -> str:
        """Return the activity id, or the workflow id."""
        told = attributes_of(self.scheduled)
        return str(told.workflow_id if self.is_workflow else told.activity_id)

    @property
    def type(self) -> str:
        told = attributes_of(self.scheduled)
        return str((told.workflow_type if self.is_workflow else told.activity_type).name)

    @property
    def input(self) -> Sequence[Payload]:
        payloads: Sequence[Payload] = attributes_of(self.scheduled).input.payloads
        return payloads

    @property
    def attempt(self) -> int:
        """Return how often it was begun; 0: it waits, or its events end before."""
        if self.started is None:
            return 0
        return 1 if self.is_workflow else int(attributes_of(self.started).attempt)

    @property
    def lost(self) -> Loss:
        """Return how the last attempt, or the one before it, was lost with its worker; empty: it
        was not.
        """
        if self.started is None or self.is_workflow:
            return ""
        own = loss_in(self.failure) if self.failure and self.end == "failed" else ""
        return own or loss_in(attributes_of(self.started).last_failure)

    @property
    def end(self) -> End | None:
        """Return how it ended; None: it is under way, or its events end before."""
        return _EITHER[self.ended.event_type] if self.ended else None

    @property
    def result(self) -> Sequence[Payload]:
        if self.ended is None or self.end != "completed":
            return ()
        payloads: Sequence[Payload] = attributes_of(self.ended).result.payloads
        return payloads

    @property
    def failure(self) -> Failure | None:
        """Return its failure; None where the event of its end has none and says why by itself."""
        if self.ended is None:
            return None
        told = attributes_of(self.ended)
        return told.failure if "failure" in told.DESCRIPTOR.fields_by_name else None

    @property
    def last_started(self) -> int:
        """Return the event that began the attempt under way when it ended; 0: none was."""
        return int(attributes_of(self.ended).started_event_id) if self.ended else 0


@dataclass
class Executions:
    """The executions of one history, in the order in which they were scheduled."""

    own: Execution | None = None
    """The workflow itself."""
    by_event: dict[int, Execution] = field(default_factory=dict)
    """The event that scheduled it -> an activity or a child."""

    def __iter__(self) -> Iterator[Execution]:
        """Iterate over the run's work. Notices are left out: they cost and change nothing."""
        return (each for each in self.by_event.values() if each.type != NOTICE)

    def take(self, event: HistoryEvent) -> None:
        """Take in the next event. One whose scheduling was not taken in is left out."""
        kind = event.event_type
        if kind == _OPENING:
            self.own = Execution(event, event)
        elif kind in _CLOSING and self.own:
            self.own.ended = event
        elif kind in SCHEDULED:
            self.by_event[event.event_id] = Execution(event)
        elif (kind in _STARTED or kind in _ENDS) and (known := self.of(event)) is not None:
            if kind in _ENDS:
                known.ended = event
            else:
                known.started = event

    def of(self, event: HistoryEvent) -> Execution | None:
        """Return what an event started or ended."""
        told = attributes_of(event)
        is_activity = "scheduled_event_id" in told.DESCRIPTOR.fields_by_name
        return self.by_event.get(
            told.scheduled_event_id if is_activity else told.initiated_event_id
        )


def executions_in(events: Iterable[HistoryEvent]) -> Executions:
    """Return those of a history, or of a part of one."""
    found = Executions()
    for event in events:
        found.take(event)
    return found
