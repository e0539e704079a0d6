"""What a run's price was paid for, by kind of call, tier and team; and whose prices. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from holdfast.contracts import Bill, Money, Share
from holdfast.ledger.ranges import total_of
from holdfast.state.paying import add_shares, share_of, share_of_flight
from holdfast.state.run import State

LOST = "lost"
"""Kind of what was paid before a reset: an id alone would not prove what it was."""


def shares_of(state: State) -> tuple[Share, ...]:
    """Return what was paid so far for what, dearest first. Like the report's price, which they add
    up to, they count what is in flight at what is reserved for it, and what resets have lost.
    """
    shares = add_shares(state.shares, (*_lost(state), *_reserved(state)))
    whole = total_of([each.dollars for each in shares.values()])
    ordered = sorted(shares.values(), key=lambda each: -(each.dollars or Decimal(0)))
    return tuple(
        each.model_copy(update={"percent": percent_of(each.dollars, whole)}) for each in ordered
    )


def list_sources(state: State) -> tuple[str, ...]:
    """Return where the prices of the run's models come from, a sentence for each list of prices."""
    brief = state.briefing
    cards = (*brief.models, *([brief.planner] if brief.planner else [])) if brief else ()
    lists: dict[str, list[str]] = {}
    for card in cards:
        if card.source:
            lists.setdefault(card.source, []).append(card.id)
    if len(lists) == 1 and all(card.source for card in cards if card.prices):
        return tuple(f"Prices are {source}." for source in lists)
    return tuple(
        f"Prices of {', '.join(dict.fromkeys(ids))} are {source}." for source, ids in lists.items()
    )


def percent_of(part: Money | None, whole: Money | None) -> float | None:
    """Return a part of a price to a tenth of a percent; None: one is not known, or all was free."""
    if part is None or not whole:
        return None
    return round(float(100 * part / whole), 1)


def _lost(state: State) -> Iterator[Share]:
    tiers = {card.id: card.tier for card in state.briefing.models} if state.briefing else {}
    for lost in state.ledger.lost:
        yield share_of(lost.bill, LOST, tiers.get(lost.bill.model, ""))


def _reserved(state: State) -> Iterator[Share]:
    for id, amount in state.ledger.reserved.items():
        dollars = amount.dollars
        bill = Bill(calls=amount.calls, dollars=dollars, assumed=dollars)
        yield share_of_flight(state.flights[id].move, bill)
