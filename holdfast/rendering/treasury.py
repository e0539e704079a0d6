"""How the books of a deployment stand, in lines."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from holdfast.contracts.policies import MOST_DAY
from holdfast.contracts.treasury import Statement
from holdfast.rendering.amounts import money
from holdfast.text import visible

MOST_NAMED = 10
UNCOUNTED = f"nothing is counted: set {MOST_DAY} where the workers are, and start them anew"


def lines(found: Statement) -> Iterator[str]:
    """Yield what is spent and left, and who spent most."""
    yield f"today (UTC):  {_spent(found.today.paid, found.caps.day)}"
    yield f"this month:   {_spent(found.month.paid, found.caps.month)}"
    if found.held:
        yield f"set aside:    {money(found.held)}, for calls under way and to come"
    by = {**dict.fromkeys(found.caps.each, Decimal(0)), **found.today.by}
    named = sorted(by.items(), key=lambda each: -each[1])
    for name, paid in named[:MOST_NAMED]:
        yield f"  {visible(name) or 'nobody'}: {_spent(paid, found.caps.each.get(name))}"
    if len(named) > MOST_NAMED:
        yield f"  and {len(named) - MOST_NAMED} more"


def summary(found: Statement) -> str:
    """Return the same in one line."""
    held = f", {money(found.held)} set aside" if found.held else ""
    month = f"; {_spent(found.month.paid, found.caps.month)} this month" * (
        found.caps.month is not None
    )
    return f"{_spent(found.today.paid, found.caps.day)} since 0:00 UTC{held}{month}"


def _spent(paid: Decimal, most: Decimal | None) -> str:
    return money(paid) if most is None else f"{money(paid)} of {money(most)}"
