"""The rules of the treasurer, which keeps a deployment within its caps of dollars. Pure.

Workers hold slices and spend them as they like. A slice counts in full until its holder says what
of it was paid; one that falls silent counts as paid. So what is paid and what is held never pass a
cap, whoever dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from holdfast.contracts.base import MICRODOLLAR
from holdfast.contracts.treasury import Asked, Books, Caps, Given, Slice, Statement, Sums

AHEAD = Decimal("0.1")
"""Share of what is left that a slice may hold for calls to come."""
KEPT_DAYS, KEPT_MONTHS = timedelta(days=2), timedelta(days=62)
"""Longer than a day and a month: a clock that is set to the future and back hides nothing."""
MOST_NAMED = 1_000
"""Those who ask are counted by name up to so many."""
_ZERO = Decimal(0)
_Room = tuple[str, Decimal, Decimal, Decimal]
"""A cap: its name, the most, what is paid of it, and what slices hold."""


def ask(books: Books, asked: Asked, now: datetime) -> tuple[Books, Given]:
    """Return the books and what a slice is after its holder has asked."""
    return settle(expire(books, now), asked, now)


def settle(books: Books, asked: Asked, now: datetime) -> tuple[Books, Given]:
    """Return the same where the clock says nothing of a slice's silence: what its holder says may
    have lain until somebody read it.
    """
    before = books.slices.get(asked.slice)
    if before is None and asked.began:
        return books, Given(known=False)
    before = before or Slice(requester=asked.requester, holds=_ZERO, until=now)
    told = before.paid + before.holds if asked.paid is None else asked.paid
    books = _pay(books, max(told - before.paid, _ZERO), before.requester, now)
    others = {name: each for name, each in books.slices.items() if name != asked.slice}
    books = books.model_copy(update={"slices": others})
    given = _grant(books, asked, before.requester, now)
    if given.holds or asked.under_way:
        until = now + timedelta(seconds=asked.seconds)
        kept = before.model_copy(update={"holds": given.holds, "paid": told, "until": until})
        books = books.model_copy(update={"slices": {**others, asked.slice: kept}})
    return books, given


def tell(books: Books, settings: Caps) -> Books:
    """Return the books after a worker told what its settings are. They count where they are
    others than before: what a person has set since is not undone by a worker that starts.
    """
    changed = {
        name: getattr(settings, name)
        for name in ("day", "month")
        if getattr(settings, name) != getattr(books.told, name)
    }
    return books.model_copy(
        update={"told": settings, "caps": books.caps.model_copy(update=changed)}
    )


def expire(books: Books, now: datetime) -> Books:
    """Return the books with silent slices paid in full, and without what is long over."""
    silent = {name: each for name, each in books.slices.items() if each.until <= now}
    for each in silent.values():
        books = _pay(books, each.holds, each.requester, now)
    slices = {name: each for name, each in books.slices.items() if name not in silent}
    days = {day: each for day, each in books.days.items() if day >= now.date() - KEPT_DAYS}
    months = {day: each for day, each in books.months.items() if day >= now.date() - KEPT_MONTHS}
    return books.model_copy(update={"slices": slices, "days": days, "months": months})


def look(books: Books, now: datetime) -> Statement:
    """Return how the books stand."""
    books = expire(books, now)
    return Statement(
        caps=books.caps,
        day=now.date(),
        today=books.days.get(now.date(), Sums()),
        month=books.months.get(_month(now), Sums()),
        held=sum((each.holds for each in books.slices.values()), _ZERO),
    )


def _grant(books: Books, asked: Asked, requester: str, now: datetime) -> Given:
    """Return the slice that fits beside all others."""
    more = asked.needs - asked.under_way
    rooms = [*_rooms(books, requester, now)]
    for _, most, paid, _ in rooms:
        if more and paid + more > most:
            why = _explain(rooms, more, now)
            return Given(holds=asked.under_way, refused=why, over=True)
    left = min((most - paid - held for _, most, paid, held in rooms), default=asked.likes)
    if asked.needs > left and more:
        what, most, paid, held = min(rooms, key=lambda each: each[1] - each[2] - each[3])
        why = (
            f"this deployment allows ${most:f} {what}; ${paid:f} are spent and"
            f" ${held + asked.under_way:f} set aside for calls under way"
        )
        return Given(holds=asked.under_way, refused=why)
    ahead = (max(left, _ZERO) * AHEAD).quantize(MICRODOLLAR, ROUND_DOWN)
    # What calls to come may have is a part of what is left, so that the last dollars go to
    # whoever has a call.
    return Given(holds=max(asked.needs, min(asked.likes, left, asked.needs + ahead)))


def _rooms(books: Books, requester: str, now: datetime) -> Iterator[_Room]:
    """Yield each cap that binds."""
    today, month = books.days.get(now.date(), Sums()), books.months.get(_month(now), Sums())
    held = sum((each.holds for each in books.slices.values()), _ZERO)
    if books.caps.day is not None:
        yield "a day", books.caps.day, today.paid, held
    if books.caps.month is not None:
        yield "a month", books.caps.month, month.paid, held
    if (own := books.caps.each.get(requester)) is not None:
        mine = (each.holds for each in books.slices.values() if each.requester == requester)
        yield f"a day to {requester}", own, today.by.get(requester, _ZERO), sum(mine, _ZERO)


def _explain(
    rooms: list[tuple[str, Decimal, Decimal, Decimal]], more: Decimal, now: datetime
) -> str:
    """Return which cap a call is above, and when there is room again."""
    above = [each for each in rooms if each[2] + more > each[1]]
    what, most, paid, _ = max(above, key=lambda each: each[0] == "a month")
    option = {"a day": "--day", "a month": "--month"}.get(what, "--for … --day")
    raised = f"its operator can raise it: holdfast budget {option}"
    monthly = what == "a month"
    since = f"{_month(now)}" if monthly else "0:00 UTC"
    opens = _next_month(now) if monthly else now.date() + timedelta(days=1)
    again = (
        f"more than a whole {'month' if monthly else 'day'} has: {raised}"
        if more > most
        else f"there is room again from {opens} 0:00 UTC, or {raised}"
    )
    return (
        f"this deployment allows ${most:f} {what}, for all runs together; ${paid:f} of it are spent"
        f" since {since}, and this call may cost ${more:f}; {again}"
    )


def _pay(books: Books, dollars: Decimal, requester: str, now: datetime) -> Books:
    if not dollars:
        return books
    day, month = now.date(), _month(now)
    named = books.caps.each
    days = {**books.days, day: _add(books.days.get(day, Sums()), dollars, requester, named)}
    months = {
        **books.months,
        month: _add(books.months.get(month, Sums()), dollars, requester, named),
    }
    return books.model_copy(update={"days": days, "months": months})


def _add(sums: Sums, dollars: Decimal, requester: str, named: dict[str, Decimal]) -> Sums:
    by = sums.by
    if requester in by or requester in named or len(by) < MOST_NAMED:
        by = {**by, requester: by.get(requester, _ZERO) + dollars}
    return Sums(paid=sums.paid + dollars, by=by)


def _month(now: datetime) -> date:
    return now.date().replace(day=1)


def _next_month(now: datetime) -> date:
    return (_month(now) + timedelta(days=31)).replace(day=1)
