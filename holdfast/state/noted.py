"""What is to be known of single calls' bills: said once, with all the calls it is true of."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from holdfast.contracts import Bill, ModelCard
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.state.run import State

MOST_NAMED = 5
"""Calls that a line names; the others are counted."""
DEARER = "by our prices it cost more than was reserved for it"
LONGER = "the endpoint counted more tokens than were reserved for it"


def note_bill(state: State, id: str, model: ModelCard, bill: Bill, reserved: Amount) -> State:
    """The state that knows what its worker says of a bill, and that it is above the reservation: in
    dollars if they tell, else in tokens.
    """
    cost, tokens = bill.dollars or Decimal(0), bill.usage.total
    if bill.note:
        state = _with(state, bill.note, id)
    if model.prices and cost > reserved.dollars:
        return _with(state, DEARER, f"{id}: ${cost}, reserved ${reserved.dollars}")
    if tokens > reserved.tokens:
        return _with(state, LONGER, f"{id}: {tokens}, reserved {reserved.tokens}")
    return state


def _with(state: State, what: str, call: str) -> State:
    known = state.of_bills.get(what, ())
    return replace(state, of_bills={**state.of_bills, what: (*known, call)})


def bill_notes(state: State) -> Iterator[str]:
    """One a thing to know, whatever the number of calls."""
    for what, calls in state.of_bills.items():
        named = "; ".join(calls[:MOST_NAMED])
        more = len(calls) - MOST_NAMED
        named += f"; and {more} more" if more > 0 else ""
        which = "One call" if len(calls) == 1 else f"{len(calls)} calls, each"
        yield f"{which}: {what} ({named})."
