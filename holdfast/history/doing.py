"""What an agent is doing, by the end of its history: what was scheduled and has not come back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from holdfast.calls.turn import Turn
from holdfast.contracts import Reply
from holdfast.ledger.ranges import format_price
from holdfast.text import one_line

ENDS = ("completed", "failed", "timed_out", "canceled")
WORDS = 80
"""Letters of a call of a tool."""


async def doing(
    newest_first: Iterable[HistoryEvent],
    converter: DataConverter,
    most: int,
    paid: Decimal | None = Decimal(0),
) -> str:
    """`turn 3 of 10, search_files "rate limit", $0.0123 so far`; empty: nothing is under way. The
    words that a model chose are harmless and few. `most`: turns that it may take; `paid`: what it
    cost before this history, None if nobody knows.
    """
    ended = dict[int, Sequence[Payload] | None]()
    pending, turns, first = list[HistoryEvent](), list[Sequence[Payload] | None](), 0
    for event in newest_first:
        first = event.event_id
        ended |= _ended(event)
        if not event.HasField("activity_task_scheduled_event_attributes"):
            continue
        if event.event_id not in ended:
            pending.insert(0, event)
        elif _id(event).startswith("turn"):
            turns.append(ended[event.event_id])
    if not pending:
        return ""
    price = await _price(turns, converter, paid, whole=first == 1)
    kind, *place = _id(pending[0]).split("-")
    if kind != "tool":
        return f"turn {place[-1]} of {most}, asks the model{price}"
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    return f"turn {place[0]} of {most}, {await _words(pending[0], converter)}{more}{price}"


def _ended(event: HistoryEvent) -> dict[int, Sequence[Payload] | None]:
    """The activity that ended with this event, by the id of the event that scheduled it, and what
    it brought; None: nothing.
    """
    for each in ENDS:
        name = f"activity_task_{each}_event_attributes"
        if event.HasField(name):  # type: ignore[arg-type]
            told = getattr(event, name)
            result = told.result.payloads if each == "completed" else None
            return {told.scheduled_event_id: result}
    return {}


async def _price(
    turns: Sequence[Sequence[Payload] | None],
    converter: DataConverter,
    paid: Decimal | None,
    *,
    whole: bool,
) -> str:
    """What the agent cost so far; `at least`, where a turn cannot be priced from here."""
    total, known = paid, whole
    for result in turns:
        try:
            assert result is not None
            (reply,) = await converter.decode(result, [Reply[Turn]])
        except Exception:
            known = False
            continue
        total = None if total is None or reply.bill.dollars is None else total + reply.bill.dollars
        known = known and reply.bill.final
    if not total:
        return ""
    return f", {'' if known else 'at least '}{format_price(total)} so far"


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
