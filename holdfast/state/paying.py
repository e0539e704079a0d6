"""Settling what a call costs, in the ledger and with its subtask. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdfast.contracts import Bill, Call, ModelCard, NoAnswer
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.state import noted
from holdfast.state.edits import add_bill, note_author, update
from holdfast.state.run import State


def pay(state: State, call: Call, bill: Bill, *, draft: bool = False) -> State:
    """Settle a call in the ledger and with its subtask. A bill that is not final counts at the
    reservation, or at itself where that is more; what is to be known of it is noted. `draft`: the
    call brought one.
    """
    assert call.model is not None, "what asks no model is not paid"
    amount = state.ledger.reserved[call.id]
    paid = complete_bill(call.model, bill, amount)
    state = replace(state, ledger=state.ledger.settle(call.id, paid))
    state = noted.note_bill(state, call.id, call.model, bill, amount)
    if not call.subtask_id:
        return state
    state = update(state, call.subtask_id, lambda each: add_bill(each, paid))
    if call.kind != "work":
        return state
    return update(state, call.subtask_id, lambda each: note_author(each, bill.model, draft=draft))


def complete_bill(model: ModelCard, bill: Bill, reserved: Amount) -> Bill:
    """A bill as a ledger takes it."""
    if bill.final:
        return bill
    known = bill.dollars or Decimal(0)
    # A model without a price reserves no dollars: that it may have cost some stays known.
    price = max(reserved.dollars, known) if model.prices else None
    assumed = max(reserved.dollars - known, Decimal(0))
    return bill.model_copy(update={"dollars": price, "assumed": assumed})


def note_unanswered(before: State, state: State, call: Call, why: str) -> State:
    """What is to be known of a call that brought no answer, once it is settled: what it counts at,
    and whose it was.
    """
    assert call.model is not None, "what asks no model is settled by nobody"
    old, new = before.ledger, state.ledger
    if new.spent.calls == old.spent.calls:
        state = replace(state, unpaid_calls=state.unpaid_calls + 1)
        dollars: Decimal | None = Decimal(0)
    else:
        dollars = new.spent.dollars - old.spent.dollars if call.model.prices else None
    if not call.subtask_id:
        return state
    assumed = new.assumed - old.assumed
    said = NoAnswer(id=call.id, tier=call.tier, why=why, dollars=dollars, assumed=assumed)
    return update(
        state, call.subtask_id, lambda each: replace(each, unanswered=(*each.unanswered, said))
    )
