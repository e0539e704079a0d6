"""Which rows of a map are asked next, in which lane, and with how many calls at once. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdfast.calls.row import ROW
from holdfast.calls.rows import (
    Merging,
    Portion,
    RowsMaterial,
)
from holdfast.calls.turn import Slice
from holdfast.contracts import Call, ModelCard, policies
from holdfast.contracts.plans import Lane
from holdfast.ledger.ledger import Amount
from holdfast.maps import portions
from holdfast.maps.money import caching_of, model_of, room_of, work_of, worst
from holdfast.maps.state import (
    AskRows,
    MapState,
    Move,
    SubmitRows,
)
from holdfast.state.graph import COMPOSED

# ---------------------------------------------------------------- lanes


def lane_of(state: MapState) -> Lane:
    """Return the lane of what is asked next; texts are merged at once, level by level."""
    if state.stands.level:
        return "now"
    if state.goal.lane != "auto":
        return state.goal.lane
    return "batch" if state.now < now_from(state) else "now"


def now_from(state: MapState) -> datetime:
    """Return from when on a map that goes by batches asks what is left at once: half of its time,
    or earlier where the rest needs more of it.
    """
    left = sum(portions.count(state.stands.current, each) for each in state.stands.portions)
    out = (each.move.portion for each in state.batches.values())
    left += sum(portions.count(state.stands.current, each) for each in out)
    needed = left * policies.ROW_SECONDS / max(state.goal.at_once, 1)
    seconds = max(state.goal.seconds_left - needed, 0.0)
    return state.started + timedelta(seconds=min(seconds, state.goal.seconds_left / 2))


# ---------------------------------------------------------------- rows


def next_rows(state: MapState) -> Move | Slice | None:
    """Return what is asked next; None: something in flight must come back first. A Slice: what the
    next rows need, where that cannot be paid and nothing in flight may give something back.
    """
    if not state.stands.portions:
        return None
    if not state.stands.warmed and caching_of(state, lane_of(state)):
        return None if state.flights else _ask(state, 1, 1)
    if lane_of(state) == "batch":
        return _submit(state)
    free = state.goal.at_once - sum(
        each.move.material.at_once
        for each in state.flights.values()
        if isinstance(each.move, AskRows)
    )
    return _ask(state, free, most_rows(state)) if free > 0 else None


def most_rows(state: MapState) -> int:
    """Return the most rows of one chunk."""
    return max((each.items for each in state.stands.current), default=1)


def _ask(state: MapState, free: int, rows: int) -> Move | Slice | None:
    """Return an activity that asks rows: of the calls that may be in flight, half at most, so that
    the last rows of one chunk leave none idle; the last chunk has all that are free.
    """
    portion, left, amount = _affordable(state, rows, policies.CHUNK_BYTES, "now")
    if not state.ledger.fits(amount):
        return _wait_or_need(state, amount)
    asked = max(portions.count(state.stands.current, portion), 1)
    share = _share(state.goal.at_once, rows) if left else asked
    at_once = min(share, asked, free)
    material = _material(state, portion, "rows", amount, at_once)
    return AskRows(material, portion, amount, left)


def _share(at_once: int, rows: int) -> int:
    """Return how many calls one of several chunks has in flight: so few that its last rows leave
    none idle for long.
    """
    most = max(rows // policies.FEWEST_ROWS_A_CALL, 1)
    chunks = max(min(at_once, 2), -(-at_once // most))
    return -(-at_once // chunks)


def _submit(state: MapState) -> Move | Slice | None:
    if any(isinstance(each.move, SubmitRows) for each in state.flights.values()):
        return None
    rows, size = policies.BATCH_ROWS, policies.BATCH_BYTES
    portion, left, amount = _affordable(state, rows, size, "batch")
    few = portions.count(state.stands.current, portion) < policies.MEND_BATCH_ROWS
    if few and portion.step and state.batches:
        # Others of what is out will have to be mended as well.
        return None
    if not state.ledger.fits(amount):
        return _wait_or_need(state, amount)
    material = _material(state, portion, "batch", amount, 1)
    return SubmitRows(material, portion, amount, left)


def _affordable(
    state: MapState, rows: int, size: int, lane: Lane
) -> tuple[Portion, tuple[Portion, ...], Amount]:
    """Return the next rows that can be paid: half as many each time, where nothing in flight may
    give something back, down to one.
    """
    while True:
        portion, left = portions.take(state.stands.current, state.stands.portions, rows, size)
        amount = worst(state, portion, lane, caching_of(state, lane_of(state)))
        asked = portions.count(state.stands.current, portion)
        if state.ledger.fits(amount) or asked <= 1 or state.ledger.reserved:
            return portion, left, amount
        rows = asked // 2


def _wait_or_need(state: MapState, amount: Amount) -> Slice | None:
    if state.ledger.reserved:
        return None
    return Slice(dollars=amount.dollars, calls=0, tokens=amount.tokens)


def _material(
    state: MapState, portion: Portion, purpose: str, amount: Amount, at_once: int
) -> RowsMaterial:
    goal, chunks = state.goal, state.stands.current
    merging = state.stands.level > 0
    mending = portions.mends(portion.step, len(goal.models))
    call = call_for(
        state,
        model_of(state, portion),
        purpose,
        mending=mending,
        max_output=room_of(goal, merging=merging),
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
    )
    return RowsMaterial(
        call=call,
        work=work_of(goal, merging=merging),
        role=goal.role,
        chunks=tuple(chunks[each] for each in portion.chunks),
        rows=portion.rows,
        before=portion.before,
        step=portion.step,
        declined=portion.declined,
        mending=mending,
        merging=_merging(state) if merging else None,
        at_once=at_once,
        caching=caching_of(state, lane_of(state)),
        run=goal.first_run,
    )


def _merging(state: MapState) -> Merging:
    assert state.stands.table is not None, "it is made before texts are merged"
    counts = state.stands.table.counts
    return Merging(items=counts.items, without=counts.items - counts.complete - counts.supplied)


def next_number(state: MapState, purpose: str) -> int:
    return state.numbers.get(purpose, 0) + 1


def call_for(state: MapState, model: ModelCard, purpose: str, **more: Any) -> Call:
    goal = state.goal
    return Call(
        kind=ROW.name,
        purpose=purpose,
        number=next_number(state, purpose),
        subtask_id=goal.work.subtask.id,
        tier=model.tier,
        model=model,
        role=goal.role.name,
        # A composed role's is that of agents with tools: rows have none.
        effort=ROW.policy.effort if goal.role.name.startswith(COMPOSED) else goal.role.effort,
        capabilities=goal.capabilities,
        run=goal.first_run,
        project=goal.project,
        **more,
    )
