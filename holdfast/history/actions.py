"""What a server that bills by the action counts of one history. Pure.

Each start, attempt at an activity, timer, Signal, Update and change of search attributes is one.
Heartbeats stand in no history: they are estimated from how long each last attempt took.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from holdfast.contracts.policies import BEATS

CLOUD = (".tmprl.cloud", ".api.temporal.io")
"""How the hosts of servers end that bill by the action."""
_CHILD = EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
_BEGUN = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
_COUNTED = (
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    _CHILD,
)
_ENDED = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "activity_task_completed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "activity_task_failed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "activity_task_timed_out_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "activity_task_canceled_event_attributes",
}


def billed_at(address: str) -> bool:
    """True if the server at this address bills by the action."""
    return address.rpartition(":")[0].endswith(CLOUD)


def beats_in(seconds: float) -> int:
    """The heartbeats of an attempt that took this long."""
    count = 0
    for pause in BEATS[:-1]:
        seconds -= pause
        if seconds < 0:
            return count
        count += 1
    return count + int(seconds // BEATS[-1])


@dataclass
class Actions:
    """The actions of one history, as far as it was taken in."""

    counted: int = 0
    beats: int = 0
    children: int = 0
    _begun: dict[int, float] = field(default_factory=dict)

    def take(self, event: HistoryEvent) -> None:
        """Count an event."""
        kind, at = event.event_type, event.event_time.ToNanoseconds() / 1e9
        self.counted += kind in _COUNTED
        self.children += kind == _CHILD
        if kind == _BEGUN:
            self.counted += max(event.activity_task_started_event_attributes.attempt, 1)
            self._begun[event.event_id] = at
        elif kind in _ENDED:
            begun = getattr(event, _ENDED[kind]).started_event_id
            self.beats += beats_in(at - self._begun.pop(begun, at))

    def told(self) -> str:
        """The count in a sentence, with what of it is an estimate."""
        below = f" Its {self.children} agents and teams have histories of their own, billed"
        return (
            f"Temporal Cloud bills about {self.counted + self.beats} actions for this run's own"
            f" history: {self.counted} that stand in it, and about {self.beats} heartbeats."
            + (f"{below} beside it." if self.children else "")
        )
