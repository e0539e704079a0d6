"""A schedule on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from holdfast.contracts.schedules import BUDGET_DAYS, Outcome, Times
from holdfast.contracts.search import UNPRICED
from holdfast.rendering.amounts import at_most, money
from holdfast.text import for_terminal

if TYPE_CHECKING:
    from holdfast.client.schedules import Shown

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def lines(shown: Shown) -> Iterator[str]:
    """Yield a schedule: when it starts runs, its next times, and what came of the latest."""
    scheduled = shown.scheduled
    yield f"{scheduled.name}  {describe_times(scheduled.times)}  {_state(shown)}"
    for note in shown.notes:
        yield f"  note: {note}"
    if scheduled.budget is not None and shown.paid is not None:
        paid, most = money(shown.paid), money(scheduled.budget)
        yield f"  budget: {paid} of {most} in {BUDGET_DAYS} days"
    if shown.next:
        when = "next, once resumed" if shown.paused else "next"
        yield f"  {when}: {', '.join(map(_at, shown.next))}"
    for each in shown.last:
        yield f"  last: {_at(each.at)}  {for_terminal(_outcome(each.outcome))}"
    if shown.missed:
        yield f"  missed for good: {shown.missed}"


def describe_times(times: Times) -> str:
    """Return when runs start, in words."""
    if times.cron:
        said = f"{times.cron} ({times.zone})"
    elif times.every_seconds:
        said = f"every {_length(times.every_seconds)} ({times.zone})"
    else:
        said = f"once ({times.zone})"
    return f"{said}, jitter {_length(times.jitter_seconds)}" if times.jitter_seconds else said


def _state(shown: Shown) -> str:
    if shown.paused:
        return f"paused: {for_terminal(shown.note)}" if shown.note else "paused"
    return "active" if shown.next else "over"


def _outcome(outcome: Outcome) -> str:
    whole = outcome.status in ("complete", "complete_with_gaps")
    words = outcome.remarks if whole and outcome.remarks else outcome.status.replace("_", " ")
    said = f"{words}: {outcome.why}" if outcome.why else words or "open"
    price = outcome.dollars
    if price and price != UNPRICED:
        price = at_most(Decimal(price), Decimal(outcome.assumed))
    return "  ".join(filter(None, (outcome.run, said, price)))


def _at(moment: datetime) -> str:
    return f"{moment:%a %Y-%m-%d %H:%M:%S}" if moment.second else f"{moment:%a %Y-%m-%d %H:%M}"


def _length(amount: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if not amount % size)
    return f"{amount // size}{unit}"
