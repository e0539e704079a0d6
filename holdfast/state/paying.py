"""Settling calls: in the ledger, with their subtask, and in notes for the report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from holdfast.contracts import Bill, Call, ModelCard, NoAnswer, Report, Share
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.ledger.ranges import total_of
from holdfast.state.edits import add_bill, note_author, update
from holdfast.state.events import AgentEnded, MapEnded, TeamEnded, Trouble
from holdfast.state.moves import Ask, Flying, StartAgent, StartMap, StartTeam
from holdfast.state.parts import Progress
from holdfast.state.run import State

TAKEN_BACK = "taken_back"
"""Kind of what was paid for subtasks that the plan has otherwise than they were started."""
MOST_NAMED = 5
"""Calls that one note names; the others are counted."""
DEARER = "by our prices it cost more than was reserved for it"
LONGER = "the endpoint counted more tokens than were reserved for it"


def pay(state: State, call: Call, bill: Bill, *, draft: bool = False) -> State:
    """Settle a call that was paid, or may have been. `draft`: it brought a draft of its subtask."""
    assert call.model is not None, "what asks no model is not paid"
    amount = state.ledger.reserved[call.id]
    paid = complete_bill(call.model, bill, amount)
    state = book(state, call.id, paid, [share_of(paid, call.kind, call.tier)])
    state = note_bill(state, call.id, call.model, bill, amount)
    if not call.subtask_id:
        return state
    state = update(state, call.subtask_id, lambda each: add_bill(each, paid))
    if call.kind != "work":
        return state
    return update(state, call.subtask_id, lambda each: note_author(each, bill.model, draft=draft))


def complete_bill(model: ModelCard, bill: Bill, reserved: Amount) -> Bill:
    """Return a bill to settle: one that is not final counts at least at its reservation."""
    if bill.final:
        return bill
    known = bill.dollars or Decimal(0)
    # A model without a price reserves no dollars: that it may have cost some stays known.
    price = max(reserved.dollars, known) if model.prices else None
    assumed = max(reserved.dollars - known, Decimal(0))
    return bill.model_copy(update={"dollars": price, "assumed": assumed})


def bill_of_loss(trouble: Trouble) -> Bill | None:
    """Return the bill of a call that brought no answer; None: it surely cost nothing."""
    bill = trouble.bill
    if trouble.kind not in ("possibly_billed", "cancelled") or not bill.calls:
        return None
    known = bill.usage.total > 0 and bill.dollars is not None
    return bill if known else bill.model_copy(update={"final": False})


def no_answer(call: Call, why: str, before: Ledger, after: Ledger) -> NoAnswer:
    """Return the record of a call without an answer, by what settling it changed in the ledger."""
    assert call.model is not None, "what asks no model is not settled"
    dollars: Decimal | None = after.spent.dollars - before.spent.dollars
    if after.spent.calls > before.spent.calls and not call.model.prices:
        dollars = None
    assumed = after.assumed - before.assumed
    return NoAnswer(id=call.id, tier=call.tier, why=why, dollars=dollars, assumed=assumed)


def note_no_answer(before: State, state: State, call: Call, why: str) -> State:
    """Record a call without an answer, once it is settled."""
    if state.ledger.spent.calls == before.ledger.spent.calls:
        state = replace(state, unpaid_calls=state.unpaid_calls + 1)
    if not call.subtask_id:
        return state
    lost = no_answer(call, why, before.ledger, state.ledger)
    return update(
        state, call.subtask_id, lambda each: replace(each, unanswered=(*each.unanswered, lost))
    )


def settle_lost(
    state: State, event: TeamEnded | AgentEnded | MapEnded, *, priced: bool = True
) -> State:
    """Settle a team or segment that ended without a report. Unless it ended before it began, nobody
    knows what it spent: its whole slice counts.
    """
    state = book_lost(state, event, priced=priced)
    if event.unpaid:
        return state
    whole = _whole_slice(event.move, priced=priced)
    return update(state, event.move.subtask_id, lambda each: add_bill(each, whole))


def book_lost(
    state: State, event: TeamEnded | AgentEnded | MapEnded, *, priced: bool = True, kind: str = ""
) -> State:
    """Do as `settle_lost`, for what no subtask pays. `kind`: of its share, if not the flight's."""
    move = event.move
    if event.unpaid:
        return replace(state, ledger=state.ledger.release(move.id))
    whole, rows = _whole_slice(move, priced=priced), isinstance(move, StartMap)
    share = share_of(whole, kind, move.tier) if kind else share_of_flight(move, whole)
    return book(state, move.id, whole, [share], rows=rows)


def _whole_slice(move: StartTeam | StartAgent | StartMap, *, priced: bool) -> Bill:
    dollars = move.amount.dollars
    return Bill(
        calls=move.amount.calls,
        dollars=dollars if priced else None,
        assumed=dollars,
        final=False,
    )


# ---------------------------------------------------------------- what was paid for what


def book(
    state: State,
    id: str,
    bill: Bill,
    shares: Iterable[Share],
    tokens: int = 0,
    *,
    rows: bool = False,
) -> State:
    """Settle a flight in the ledger, and count what it paid among the run's shares. `tokens` and
    `rows`: as for `Ledger.settle`.
    """
    ledger = state.ledger.settle(id, bill, tokens, rows=rows)
    return replace(state, ledger=ledger, shares=add_shares(state.shares, shares))


def take_back(state: State, move: Ask | StartAgent, progress: Progress) -> State:
    """Count what a subtask has paid as taken back, and no longer as work."""
    if not progress.paid.calls:
        return state
    paid = progress.paid.model_copy(update={"usage": progress.usage})
    key = (move.kind, move.tier, "")
    left = {**state.shares, key: _less(state.shares[key], share_of(paid, *key[:2]))}
    if not left[key].calls:
        del left[key]
    return replace(state, shares=add_shares(left, [share_of(paid, TAKEN_BACK, move.tier)]))


def share_of(bill: Bill, kind: str, tier: str, team: str = "") -> Share:
    # Like the ledger's price: unknown only if something was asked.
    dollars = None if bill.calls and bill.dollars is None else bill.dollars or Decimal(0)
    return Share(
        kind=kind,
        tier=tier,
        team=team,
        calls=bill.calls,
        usage=bill.usage,
        dollars=dollars,
        assumed=bill.assumed,
    )


def share_of_flight(move: Flying, bill: Bill) -> Share:
    """Return a flight's bill as one share; for a team, that of one that told no kinds of calls."""
    team = move.subtask_id if isinstance(move, StartTeam) else ""
    return share_of(bill, move.kind, move.tier, team)


def shares_of_team(move: StartTeam, report: Report, bill: Bill) -> Iterable[Share]:
    """Return a team's own shares, with those of teams below it, as its subtask's."""
    if not report.shares:
        return [share_of_flight(move, bill)]
    known = {"team": move.subtask_id, "percent": None}
    return [each.model_copy(update=known) for each in report.shares]


def add_shares(
    shares: Mapping[tuple[str, str, str], Share], more: Iterable[Share]
) -> Mapping[tuple[str, str, str], Share]:
    """Return shares with more, one for each kind of call, tier and team."""
    added = dict(shares)
    for each in more:
        if not (each.calls or each.dollars or each.assumed or each.usage.total):
            continue
        key = (each.kind, each.tier, each.team)
        before = added.get(key)
        added[key] = _add(before, each) if before else each
    return added


def _add(one: Share, other: Share) -> Share:
    return one.model_copy(
        update={
            "calls": one.calls + other.calls,
            "usage": one.usage + other.usage,
            "dollars": total_of((one.dollars, other.dollars)),
            "assumed": one.assumed + other.assumed,
        }
    )


def _less(one: Share, other: Share) -> Share:
    unknown = one.dollars is None or other.dollars is None
    return one.model_copy(
        update={
            "calls": one.calls - other.calls,
            "usage": one.usage - other.usage,
            "dollars": None if unknown else (one.dollars or 0) - (other.dollars or 0),
            "assumed": one.assumed - other.assumed,
        }
    )


def note_bill(state: State, id: str, model: ModelCard, bill: Bill, reserved: Amount) -> State:
    """Keep the note of a bill, and that it exceeds its reservation: in dollars, else in tokens."""
    cost, tokens = bill.dollars or Decimal(0), bill.usage.total
    if bill.note:
        state = _note(state, bill.note, id)
    if model.prices and cost > reserved.dollars:
        return _note(state, DEARER, f"{id}: ${cost}, reserved ${reserved.dollars}")
    if tokens > reserved.tokens:
        return _note(state, LONGER, f"{id}: {tokens}, reserved {reserved.tokens}")
    return state


def _note(state: State, what: str, call: str) -> State:
    known = state.of_bills.get(what, ())
    return replace(state, of_bills={**state.of_bills, what: (*known, call)})


def bill_notes(state: State) -> Iterator[str]:
    """Yield each note once, with the calls that it is true of."""
    for what, calls in state.of_bills.items():
        named = "; ".join(calls[:MOST_NAMED])
        more = len(calls) - MOST_NAMED
        named += f"; and {more} more" if more > 0 else ""
        which = "One call" if len(calls) == 1 else f"{len(calls)} calls, each"
        yield f"{which}: {what} ({named})."
