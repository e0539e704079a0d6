"""What a small cap does to a plan: what it takes down a tier or leaves out, and the cap under which
the plan is carried out as it stands. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_UP, Decimal

from holdfast.contracts.replacing import replace
from holdfast.contracts.view import PreviewRow
from holdfast.ledger.ledger import Amount
from holdfast.ledger.ranges import total_of
from holdfast.rules import keeping
from holdfast.state.run import State

Rows = Sequence[PreviewRow]
AMPLE = Decimal(10_000)
"""Dollars: the most that a goal may allow."""
STEP = Decimal("1.1")
"""The cap that is named is at most this much more than the least that would do."""


def with_cap(state: State, dollars: Decimal) -> State:
    limits = state.goal.limits.model_copy(update={"dollars": dollars})
    cap = replace(state.ledger.cap, dollars=dollars)
    ledger = replace(state.ledger, cap=cap)
    if ledger.kept != Amount():
        ledger = replace(ledger, kept=keeping.kept_amount(limits, state.brief))
    return replace(state, goal=state.goal.model_copy(update={"limits": limits}), ledger=ledger)


def list_lowered(rows: Rows, ample: Rows) -> tuple[str, ...]:
    """Return what differs from the rows under an ample cap, in a few words each."""
    found = {row.id: row for row in rows}
    told = []
    for due in ample:
        row = found.get(due.id)
        name = due.id if due.of_plan else due.title
        if row is None:
            told.append(f"{name}: left out")
        elif row.tier != due.tier:
            told.append(f"{name} on {row.tier} instead of {due.tier}")
    return tuple(told)


def find_enough(state: State, rows_of: Callable[[State], Rows], ample: Rows) -> Decimal | None:
    """Return the cap under which nothing is lowered and the expected price stays within it;
    dollars, rounded up to a cent. None: no allowed cap, or dollars are not what is short.
    """
    most = state.brief.most_dollars or AMPLE
    cap = max(state.ledger.cap.dollars, Decimal("0.01"))
    while cap < most:
        cap = min((cap * STEP).quantize(Decimal("0.01"), rounding=ROUND_UP), most)
        tried = with_cap(state, cap)
        rows = rows_of(tried)
        if not list_lowered(rows, ample) and _covers(tried, rows):
            return cap
    return None


def _covers(state: State, rows: Rows) -> bool:
    """True if the dearest call of the subtasks can still be reserved when the others have cost what
    is expected, and the whole plan fits as expected.
    """
    expected = total_of([row.expected for row in rows])
    if expected is None:
        return False
    works = [row for row in rows if row.of_plan and row.asks and row.expected is not None]
    spent = total_of([row.expected for row in works]) or Decimal(0)
    more = max(((_reserved(row) - (row.expected or 0)) for row in works), default=Decimal(0))
    ledger = state.ledger
    return max(expected, spent + more + ledger.kept.dollars) <= ledger.cap.dollars


def _reserved(row: PreviewRow) -> Decimal:
    if row.kind == "team":
        return row.expected or Decimal(0)
    return row.slice or row.worst or row.high or Decimal(0)
