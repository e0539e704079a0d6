"""Price what a map asks: reserved at worst, settled by the bills of its activities. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdfast.calls.row import row_room, shared_bytes
from holdfast.calls.rows import Caching, MapGoal, MapReport, Portion
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, ModelCard, policies
from holdfast.contracts.plans import Lane
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.ledger.rows import RowSizes, cached_for, worst_rows, worth_warming
from holdfast.maps import portions
from holdfast.maps.state import MapState, OfRows
from holdfast.state.events import Trouble
from holdfast.state.paying import bill_of_loss

UNBOUND = 10**15
"""Calls, and for models with a price tokens, of a map: its dollars and its tries bound it."""


def work_of(goal: MapGoal, *, merging: bool) -> WorkMaterial:
    """Return what all rows are asked by. Texts are merged by the plan's words alone: its role is
    about one item.
    """
    work, spec = goal.work, goal.work.subtask.map
    assert spec is not None, "a map's workflow is given a map"
    if not merging:
        return work
    told = {"instruction": spec.reduce, "checks": (), "acceptance_criteria": ""}
    alone = spec.model_copy(update={"result": {}, "reduce": "", "id": ""})
    subtask = work.subtask.model_copy(update={**told, "map": alone})
    return work.model_copy(
        update={"subtask": subtask, "inputs": (), "dependencies": (), "form": {}, "composed": ""}
    )


def shared_of(goal: MapGoal, *, merging: bool = False) -> int:
    """Return the bytes that all rows begin with, at most."""
    return shared_bytes(work_of(goal, merging=merging), goal.role)


def room_of(goal: MapGoal, *, merging: bool) -> int:
    """Return the tokens of one row's answer."""
    subtask = goal.work.subtask
    return subtask.max_output or policies.MERGE_OUTPUT if merging else row_room(subtask)


def ledger_of(goal: MapGoal) -> Ledger:
    part, priced = goal.slice, all(each.prices for each in goal.models)
    return Ledger(Amount(part.dollars, UNBOUND, UNBOUND if priced else part.tokens))


def model_of(state: MapState, portion: Portion) -> ModelCard:
    models = state.goal.models
    return models[portions.tier_place(portion.step, len(models))]


def caching_of(state: MapState, lane: Lane) -> Caching:
    """Return how long the endpoint is to keep what all rows begin with."""
    if not state.goal.capabilities.caching:
        return ""
    worth = worth_warming(state.goal.models[0], _whole(state), lane)
    return cached_for(lane) if worth else ""


def _whole(state: MapState) -> RowSizes:
    """Return the sizes of all that is asked on this level, so that they are the same to its end."""
    chunks = state.stands.current
    kept = 0 if state.stands.level else state.stands.reused
    return RowSizes(
        rows=max(sum(each.asked for each in chunks) - kept, 0),
        shared=state.shared,
        bytes=sum(each.bytes for each in chunks),
        longest=max((each.longest for each in chunks), default=0),
        max_output=room_of(state.goal, merging=state.stands.level > 0),
    )


def worst(state: MapState, portion: Portion, lane: Lane, caching: Caching) -> Amount:
    """Return what is reserved for some rows."""
    stands, model, chunks = state.stands, model_of(state, portion), state.stands.current
    sizes = RowSizes(
        rows=portions.count(chunks, portion),
        shared=state.shared,
        bytes=portions.size(chunks, portion),
        longest=portions.longest(chunks, portion),
        max_output=room_of(state.goal, merging=stands.level > 0),
        mending=portions.mends(portion.step, len(state.goal.models)),
    )
    return worst_rows(model, sizes, lane, caching)


def settle_rows(state: MapState, id: str, bill: Bill) -> MapState:
    """Settle what some rows cost: each at its own bill, lost ones at their worst."""
    noted = (bill.note,) if bill.note and bill.note not in state.notes else ()
    return replace(
        state,
        ledger=state.ledger.settle(id, bill, rows=True),
        asked=state.asked + bill.calls,
        anew=state.anew or (bill.calls > 0 and not bill.earlier),
        # What the first rows were answered by: the few that climb are told by their own tier.
        served=state.served or bill.model,
        notes=(*state.notes, *noted),
    )


def settle_lost(state: MapState, move: OfRows, trouble: Trouble) -> tuple[MapState, bool]:
    """Settle rows of which nobody knows what became of them: at all that was reserved, unless they
    surely cost nothing. Also return whether they may have been asked.
    """
    if bill_of_loss(trouble) is None:
        unpaid = state.unpaid_calls + 1
        return replace(state, ledger=state.ledger.release(move.id), unpaid_calls=unpaid), False
    return settle_rows(state, move.id, bill_at_worst(state, move)), True


def bill_at_worst(state: MapState, move: OfRows) -> Bill:
    """Return the bill of rows that count at all that was reserved for them."""
    chunks = state.stands.current
    model, dollars = move.material.call.model, state.ledger.reserved[move.id].dollars
    assert model is not None, "rows ask a model"
    return Bill(
        model=model.id,
        calls=portions.count(chunks, move.portion),
        dollars=dollars if model.prices else None,
        assumed=dollars,
        final=False,
    )


def bill_report(state: MapState, report: MapReport) -> MapReport:
    """Complete a report with where the map stands, and what the segment has cost."""
    ledger, stands = state.ledger, state.stands
    bill = Bill(
        model=(state.served or state.goal.models[0].id) if state.asked else "",
        calls=state.asked,
        usage=ledger.usage,
        dollars=None if ledger.unpriced else ledger.spent.dollars,
        assumed=min(ledger.assumed, ledger.spent.dollars) if not ledger.unpriced else Decimal(0),
        earlier=state.asked > 0 and not state.anew,
        note="; ".join(state.notes),
    )
    return report.model_copy(
        update={
            "resume": stands,
            "table": state.table or stands.table or report.table,
            "text": state.text,
            "bill": bill,
            "tokens": ledger.spent.tokens,
            "unpaid_calls": state.unpaid_calls,
            "cached": stands.cached,
            "lanes": stands.lanes,
            "finished": state.now,
        }
    )
