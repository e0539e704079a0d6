"""What an agent is doing, by the end of its history: what was scheduled and has not come back."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from orchestrator.text import one_line

ENDS = ("completed", "failed", "timed_out", "canceled")
WORDS = 80
"""Letters of a call of a tool."""


async def doing(newest_first: Iterable[HistoryEvent], converter: DataConverter, most: int) -> str:
    """`turn 3 of 10, search_files "rate limit"`; empty: nothing is under way. The words that a
    model chose are harmless and few. `most`: turns that it may take.
    """
    ended: list[int] = []
    pending: list[HistoryEvent] = []
    for event in newest_first:
        for each in ENDS:
            name = f"activity_task_{each}_event_attributes"
            if event.HasField(name):  # type: ignore[arg-type]
                ended.append(getattr(event, name).scheduled_event_id)
        scheduled = event.HasField("activity_task_scheduled_event_attributes")
        if scheduled and event.event_id not in ended:
            pending.insert(0, event)
    if not pending:
        return ""
    kind, *place = _id(pending[0]).split("-")
    if kind != "tool":
        return f"turn {place[-1]} of {most}, asks the model"
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    return f"turn {place[0]} of {most}, {await _words(pending[0], converter)}{more}"


def _id(event: HistoryEvent) -> str:
    return event.activity_task_scheduled_event_attributes.activity_id


async def _words(event: HistoryEvent, converter: DataConverter) -> str:
    """The activity's line in the timeline; unreadable, it says no more than what it is."""
    try:
        (said,) = await converter.decode([event.user_metadata.summary], [str])
    except Exception:
        return "a tool"
    words = one_line(said)
    return words if len(words) <= WORDS else f"{words[:WORDS]}…"
