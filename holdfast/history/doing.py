"""Tells what an agent is doing, by what its history has scheduled and not ended."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from holdfast.calls.turn import Turn
from holdfast.contracts import Reply
from holdfast.history.executions import Execution, executions_in
from holdfast.history.payloads import try_decode
from holdfast.ledger.ranges import format_price
from holdfast.text import one_line

LETTERS = 80
"""The most of a tool's line in the timeline that is shown."""


async def describe_doing(
    events: Sequence[HistoryEvent],
    converter: DataConverter,
    most: int,
    paid: Decimal | None = Decimal(0),
) -> str:
    """Return `turn 3 of 10, search_files "rate limit", $0.0123 so far`; empty: nothing is under
    way. The words that a model chose are harmless and few. `events`: the end of its history;
    `most`: turns that it may take; `paid`: what it cost before this history, None if nobody knows.
    """
    executions = [*executions_in(events)]
    pending = [each for each in executions if each.end is None]
    if not pending:
        return ""
    turns = [each for each in executions if each.end and each.id.startswith("turn")]
    price = await _price(turns, converter, paid, whole=events[0].event_id == 1)
    kind, *place = pending[0].id.split("-")
    if kind != "tool":
        return f"turn {place[-1]} of {most}, asks the model{price}"
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    return f"turn {place[0]} of {most}, {await _words(pending[0], converter)}{more}{price}"


async def _price(
    turns: Sequence[Execution], converter: DataConverter, paid: Decimal | None, *, whole: bool
) -> str:
    """Return what the agent cost so far; `at least`, where a turn cannot be priced from here."""
    total, known = paid, whole
    for turn in turns:
        reply: Reply[Turn] | None = await try_decode(converter, turn.result, Reply[Turn])
        if reply is None:
            known = False
            continue
        total = None if total is None or reply.bill.dollars is None else total + reply.bill.dollars
        known = known and reply.bill.final
    if not total:
        return ""
    return f", {'' if known else 'at least '}{format_price(total)} so far"


async def _words(tool: Execution, converter: DataConverter) -> str:
    """Return the activity's line in the timeline; unreadable, it says no more than what it is."""
    summary = tool.scheduled.user_metadata.summary
    words = one_line(await try_decode(converter, [summary], str) or "a tool")
    return words if len(words) <= LETTERS else f"{words[:LETTERS]}…"
