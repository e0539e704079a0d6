"""Money and durations as people say them."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

from holdfast.contracts import Money
from holdfast.contracts.view import PreviewRow
from holdfast.ledger.ranges import format_price


def money(amount: Money | None) -> str:
    """Return whole cents, or four decimals below a dollar, rounded up; `unpriced` when no price is
    known.
    """
    if amount is None:
        return "unpriced"
    cents = amount.quantize(Decimal("0.01"), rounding=ROUND_UP)
    if amount >= 1 or amount == cents:
        return f"${cents}"
    return format_price(amount)


def at_most(amount: Money | None, assumed: Money) -> str:
    """Return `≤ $0.0873` when a part of it is the worst case of a call whose answer was lost."""
    return f"≤ {money(amount)}" if assumed and amount is not None else money(amount)


def calls(count: int) -> str:
    return f"{count} model call{'s' * (count != 1)}"


def seconds(amount: float) -> str:
    """Return a duration as people say it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 05 min`."""
    if amount < 10:
        return f"{amount:.1f} s"
    whole = round(amount)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def hands(turns: int, tool_calls: int, failed: int) -> str:
    """Return `4 turns, 6 tool calls, 2 of them failed`; empty for what was asked without tools."""
    if not turns:
        return ""
    spoke = f"{turns} turn{'s' * (turns != 1)}"
    used = f"{spoke}, {tool_calls} tool call{'s' * (tool_calls != 1)}"
    if not failed:
        return used
    return f"{used}, {failed} of them failed" if tool_calls > 1 else f"{used}, which failed"


def bounded(row: PreviewRow) -> str:
    """Return the bounds that a plan sets for one answer and one call; empty if it sets none."""
    room = f"at most {row.max_output:,} tokens an answer" if row.max_output else ""
    time = f"at most {row.timeout_seconds} s a call" if row.timeout_seconds else ""
    return ", ".join(filter(None, (room, time)))
