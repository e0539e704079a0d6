"""Finds in a history what keeps its run from going on.

A history is poisoned when today's code does not repeat what it has recorded: no worker can take the
run over any more. And a result whose payload is lost can be read by no worker either. A reset goes
back to the last workflow task before that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from holdfast.contracts.errors import BlobLost
from holdfast.history.executions import SCHEDULED
from holdfast.history.fold import TASK_COMPLETED
from holdfast.replaying.replay import Workflows, find_divergence
from holdfast.storage import Store
from holdfast.storage.keys import Keyring
from holdfast.storage.payloads import fetch, find_stored


@dataclass(frozen=True)
class Fault:
    """Why no worker can go on with a run."""

    point: int
    """The WorkflowTaskCompleted event to go back to; 0: there is none before it."""
    why: str


def reset_points(events: Iterable[HistoryEvent]) -> list[int]:
    """Return the events that a run can be reset to: its completed workflow tasks."""
    return [each.event_id for each in events if each.event_type == TASK_COMPLETED]


async def find_fault(
    history: WorkflowHistory, workflows: Workflows, store: Store, keys: Keyring | None = None
) -> Fault | None:
    """Return the first thing in a history that no worker gets past; None if there is none."""
    events = list(history.events)
    lost = await _first_lost(events, store)
    readable = events if lost is None else events[: lost[0]]
    poisoned = await _poisoned(
        WorkflowHistory(history.workflow_id, readable), workflows, store, keys
    )
    if poisoned is not None or lost is None:
        return poisoned
    event, why = events[lost[0]].event_id, lost[1]
    before = [each for each in reset_points(readable) if each < event]
    return Fault(before[-1] if before else 0, f"what event {event} brought cannot be read: {why}")


async def _first_lost(events: Sequence[HistoryEvent], store: Store) -> tuple[int, str] | None:
    """Return the place of the first payload that a workflow needs and the store lacks, and why."""
    for place, event in enumerate(events):
        # What is scheduled is read by whoever carries it out: a lost input stops no run.
        for each in find_stored([event]) if event.event_type not in SCHEDULED else ():
            try:
                await fetch(each, store)
            except BlobLost as lost:
                return place, lost.message
    return None


async def _poisoned(
    history: WorkflowHistory, workflows: Workflows, store: Store, keys: Keyring | None
) -> Fault | None:
    """Return the first workflow task whose commands today's code does not repeat. What fails once
    fails with all that follows, so that half of what is left is looked at each time.
    """
    tasks = reset_points(history.events)
    low, high, why = 0, len(tasks), ""
    while low < high:
        middle = (low + high) // 2
        failure = await find_divergence(_until(history, tasks, middle), workflows, store, keys)
        if failure:
            high, why = middle, failure
        else:
            low = middle + 1
    return None if low == len(tasks) else Fault(tasks[low], _short(why, tasks[low]))


def _until(history: WorkflowHistory, tasks: Sequence[int], number: int) -> WorkflowHistory:
    """Return the history up to the completion of the workflow task after this one."""
    end = tasks[number + 1] if number + 1 < len(tasks) else None
    events = [each for each in history.events if end is None or each.event_id < end]
    return WorkflowHistory(history.workflow_id, events)


def _short(why: str, event: int) -> str:
    # Temporal's core hands its own message over inside of a printed structure.
    message = re.search(r"\[TMPRL\d+\] ([^\"]*)", why)
    said = message.group(0) if message else why[:400]
    return f"today's code does not take the decisions of event {event}: {said}"
