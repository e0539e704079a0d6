"""How many actions a server that bills by the action counts in one history. Pure.

Each start, attempt at an activity, timer, Signal, Update and change of search attributes is one.
Heartbeats stand in no history: they are estimated from how long each last attempt took.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from holdfast.contracts.policies import BILLED_BEATS
from holdfast.history.executions import Execution, Executions

CLOUD = (".tmprl.cloud", ".api.temporal.io")
"""How the hosts of servers end that bill by the action."""
_BILLED = (
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_MARKER_RECORDED,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
)


def bills_actions(address: str) -> bool:
    """True if the server at this address bills by the action."""
    return address.rpartition(":")[0].endswith(CLOUD)


def is_action(event: HistoryEvent) -> bool:
    """True if the event is an action by itself; attempts at activities count besides."""
    return event.event_type in _BILLED


def count_beats(seconds: float, beats: Sequence[float] = BILLED_BEATS) -> int:
    """Return the heartbeats of an attempt that took this long; by default at a server that bills
    them.
    """
    count = 0
    for pause in beats[:-1]:
        seconds -= pause
        if seconds < 0:
            return count
        count += 1
    return count + int(seconds // beats[-1])


def count_actions(
    events: int, executions: Executions, beats: Sequence[float] = BILLED_BEATS
) -> tuple[int, int]:
    """Return how many stand in a history, and how many heartbeats there were beside it, about.
    `events`: the actions among its events.
    """
    activities = [each for each in executions if not each.is_workflow]
    attempts = sum(max(each.attempt, 1) for each in activities if each.started)
    return events + attempts, sum(count_beats(_seconds(each), beats) for each in activities)


def describe_actions(events: int, executions: Executions) -> str:
    """Return the count in a sentence, saying what is estimated. `events` as `count_actions`."""
    counted, beats = count_actions(events, executions)
    children = sum(each.is_workflow for each in executions)
    below = f" Its {children} agents and teams have histories of their own, billed beside it."
    return (
        f"Temporal Cloud bills about {counted + beats} actions for this run's own history:"
        f" {counted} that stand in it, and about {beats} heartbeats.{below * bool(children)}"
    )


def _seconds(activity: Execution) -> float:
    """Return how long its last attempt took; 0 of one that has not ended."""
    if activity.started is None or activity.ended is None:
        return 0.0
    times = (activity.ended.event_time, activity.started.event_time)
    ended, started = (each.ToNanoseconds() for each in times)
    return (ended - started) / 1e9
