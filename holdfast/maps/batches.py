"""The open batches of a map: looked at, cancelled where nobody waits for them, read once they have
ended. Pure.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.calls.rows import (
    BatchesLooked,
    BatchesMaterial,
    CollectMaterial,
    MapReport,
    RowsDone,
    Submitted,
)
from holdfast.contracts import policies
from holdfast.contracts.replacing import replace
from holdfast.maps import asking, portions, returning
from holdfast.maps.money import bill_at_worst, settle_rows
from holdfast.maps.state import (
    Batch,
    CancelBatches,
    CollectRows,
    LookAtBatches,
    MapState,
    Move,
    SubmitRows,
    Timer,
    stand,
)
from holdfast.state.edits import without

LOOK, REST_NOW = "a look at the batches", "the rest is asked at once"
MOST_COLLECTS = 3
"""How often the results of a batch are read in vain."""


def timer_of(state: MapState) -> Timer | None:
    """Return what a map waits for beside what is in flight: the next look at its batches, or the
    moment from which it asks at once.
    """
    waiting = [each for each in state.batches.values() if not each.ended]
    if not waiting or state.look_at is None:
        return None
    switch = asking.now_from(state)
    pending = any(not each.cancelled for each in waiting)
    if state.goal.lane == "auto" and pending and state.now < switch < state.look_at:
        return Timer(REST_NOW, switch)
    return Timer(LOOK, state.look_at) if state.now < state.look_at else None


def look_pause(looks: int) -> timedelta:
    """Return the pause before the next look, after so many."""
    first, soon, later = policies.LOOKS
    most = soon if looks < policies.LOOKS_OFTEN else later
    return timedelta(seconds=min(first * 1.5 ** min(looks, 20), most))


def next_move(state: MapState, *, cancel: bool) -> Move | None:
    """Return what is done next with the open batches: one that has ended is read, the others are
    looked at. `cancel`: nobody waits for them any more.
    """
    flying = [each.move for each in state.flights.values()]
    reading = [each.batch for each in flying if isinstance(each, CollectRows)]
    for key, batch in state.batches.items():
        if batch.ended and not reading:
            return _collect(state, key, batch)
    if any(isinstance(each, CancelBatches | LookAtBatches) for each in flying):
        return None
    waiting = [each for each in state.batches.values() if not each.ended]
    # One of several that may be ours is never cancelled: the others belong to somebody else.
    own = [each.submitted.batch for each in waiting if not each.cancelled]
    if cancel and any(own):
        about = _about(state, "cancel", tuple(filter(None, own)))
        return CancelBatches(about.call.number, about)
    if waiting and state.look_at is not None and state.now >= state.look_at:
        about = _about(state, "look", tuple(id for each in waiting for id in each.ids))
        return LookAtBatches(about.call.number, about)
    return None


def _collect(state: MapState, key: str, batch: Batch) -> CollectRows:
    material = CollectMaterial(
        rows=batch.move.material,
        batch=batch.submitted.batch,
        suspects=() if batch.submitted.batch else batch.submitted.suspects,
    )
    return CollectRows(asking.next_number(state, "collect"), material, key)


def _about(state: MapState, purpose: str, ids: tuple[str, ...]) -> BatchesMaterial:
    return BatchesMaterial(call=asking.call_for(state, state.goal.models[0], purpose), batches=ids)


# ---------------------------------------------------------------- what comes back


def take_batch(state: MapState, move: SubmitRows, submitted: Submitted) -> MapState:
    """Take in that a batch was made, or may have been; or that none was, and its rows are left."""
    if submitted.batch or submitted.suspects:
        batches = {**state.batches, move.id: Batch(move, submitted)}
        return replace(state, batches=batches, looks=0, look_at=state.now + look_pause(0))
    state = replace(state, ledger=state.ledger.release(move.id))
    left = move.portion.model_copy(update={"idle": move.portion.idle + 1})
    state = stand(state, portions=(left, *state.stands.portions))
    if submitted.unreached is not None or submitted.stopping:
        return returning.stop(state, submitted)
    if left.idle > portions.MOST_IDLE:
        why = submitted.why or "no batch could be made"
        return replace(state, ending=MapReport(outcome="stopped", why=why))
    return state


def take_looks(state: MapState, looked: BatchesLooked) -> MapState:
    """Take in how the open batches stand."""
    looks = {each.batch: each for each in looked.looks}
    for key, batch in state.batches.items():
        told = [looks[id] for id in batch.ids if id in looks]
        if batch.submitted.batch and any(each.lost for each in told):
            state = _lose_batch(state, key)
        elif told and all(each.ended or each.lost for each in told):
            state = _change(state, key, replace(batch, ended=True))
    return look_later(state)


def look_later(state: MapState) -> MapState:
    """Let the next look at the batches have its time."""
    number = state.looks + 1
    return replace(state, looks=number, look_at=state.now + look_pause(number))


def mark_cancelled(state: MapState, move: CancelBatches) -> MapState:
    """Note that batches are cancelled: they end soon, and are looked at often again."""
    named = move.material.batches
    for key, batch in state.batches.items():
        if batch.submitted.batch in named:
            state = _change(state, key, replace(batch, cancelled=True))
    return replace(state, looks=0)


def _change(state: MapState, key: str, batch: Batch) -> MapState:
    return replace(state, batches={**state.batches, key: batch})


def take_results(state: MapState, move: CollectRows, done: RowsDone) -> MapState:
    """Take in the rows of a batch whose results were read."""
    batch = state.batches[move.batch]
    state = replace(state, batches=without(state.batches, move.batch))
    return returning.take_rows(state, batch.move, move.batch, done, "batch")


def lose_results(state: MapState, move: CollectRows) -> MapState:
    """Take in that the results of a batch could not be read: it is tried again, not for ever."""
    batch = state.batches[move.batch]
    batch = replace(batch, failures=batch.failures + 1)
    state = _change(state, move.batch, batch)
    return _lose_batch(state, move.batch) if batch.failures >= MOST_COLLECTS else state


def _lose_batch(state: MapState, key: str) -> MapState:
    """Count a batch whose results nobody can read at all that was reserved for it."""
    move = state.batches[key].move
    state = replace(state, batches=without(state.batches, key))
    why = "the endpoint does not know its batch any more, or its results cannot be read"
    return returning.lose_rows(settle_rows(state, key, bill_at_worst(state, move)), move, why)
