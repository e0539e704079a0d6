"""Price ranges of work that has not been done yet. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_UP, Decimal

Money = Decimal | None
Range = tuple[Money, Money, Money]
"""Low, expected and high."""
PLACES = Decimal("0.0001")
FREE: Range = (Decimal(0), Decimal(0), Decimal(0))


def total_of(amounts: Sequence[Money]) -> Money:
    """Return the sum; None if any amount is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


def range_of(low: Money, expected: Money, high: Money) -> dict[str, Money]:
    """Return the three prices of a row, rounded up to what is shown; none exceeds the worst."""
    if expected is None or high is None or low is None:
        return {"low": None, "expected": None, "high": None}
    prices = (min(low, high), min(expected, high), high)
    names = ("low", "expected", "high")
    return {
        name: each.quantize(PLACES, rounding=ROUND_UP)
        for name, each in zip(names, prices, strict=True)
    }


def format_price(amount: Money) -> str:
    """Format dollars to a hundredth of a cent, rounded up, so that rows add up to their total."""
    return "unpriced" if amount is None else f"${amount.quantize(PLACES, rounding=ROUND_UP)}"
