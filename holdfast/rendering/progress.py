"""How far a map has come, in a line: the same everywhere. Pure."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

from holdfast.contracts import Money
from holdfast.rendering.amounts import money

CENT = Decimal("0.01")


def progress_line(
    done: int, items: int, failed: int, dollars: Money | None, seconds_left: float | None = None
) -> str:
    """Return `412 of 10,000, 3 failed, $0.41, about 6 min`. `done`: items that have ended, failed
    ones included; `seconds_left`: None where nobody can know.
    """
    parts = [f"{done:,} of {items:,}", *([f"{failed:,} failed"] if failed else []), _money(dollars)]
    if seconds_left is not None and done < items:
        parts.append(f"about {_time(seconds_left)}")
    return ", ".join(parts)


def _money(dollars: Money | None) -> str:
    """Return whole cents: it changes by the second."""
    if dollars is None or dollars < CENT:
        return money(dollars)
    return f"${dollars.quantize(CENT, rounding=ROUND_UP)}"


def _time(seconds: float) -> str:
    """Return a guess as rough as it is."""
    if seconds < 55:
        return f"{max(round(seconds / 5) * 5, 5)} s"
    minutes = max(round(seconds / 60), 1)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3_600:.1f} h"
