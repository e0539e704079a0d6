"""What comes of a map's rows: which are asked again, which have failed for good, when no more are
asked. Pure.
"""

from __future__ import annotations

from holdfast.calls.rows import MapReport, MapTable, RowsDone, Submitted, Unanswered
from holdfast.contracts import policies
from holdfast.contracts.replacing import replace
from holdfast.maps import portions
from holdfast.maps.money import settle_lost, settle_rows
from holdfast.maps.state import MapState, OfRows, stand
from holdfast.plans.mapping import exceeds
from holdfast.state.events import Trouble


def take_rows(state: MapState, move: OfRows, id: str, done: RowsDone, lane: str) -> MapState:
    """Take in what came of some rows; `id` is that of their reservation."""
    state = settle_rows(state, id, done.bill)
    stands, goal = state.stands, state.goal
    again, failed, unanswered = portions.sort_out(
        state.stands.current, move.portion, done, len(goal.models), goal.tries
    )
    if unanswered:
        state = _note_unanswered(state, unanswered, done.why)
        stands = state.stands
    answers = done.complete + len(done.failed) + len(done.declined) + done.hopeless
    blobs = (done.outcomes,) if done.outcomes else ()
    tier = move.material.call.tier
    counts: dict[str, object] = {
        "portions": (*stands.portions, *again),
        "answers": stands.answers + answers,
        "cached": stands.cached + done.cached,
        "lanes": {**stands.lanes, lane: stands.lanes.get(lane, 0) + answers},
        "tiers": {**stands.tiers, tier: stands.tiers.get(tier, 0) + answers},
    }
    if stands.level:
        state = stand(state, merges=(*stands.merges, *blobs), **counts)
        state = _note_unmerged(state, failed - len(unanswered))
    else:
        counts |= {"complete": stands.complete + done.complete, "failed": stands.failed + failed}
        state = stand(state, outcomes=(*stands.outcomes, *blobs), **counts)
    if done.unreached is not None or done.stopping:
        return stop(state, done)
    idle = [each for each in again if each.idle > portions.MOST_IDLE]
    if idle and state.ending is None:
        why = done.why or "its rows came back without having been asked"
        state = replace(state, ending=MapReport(outcome="stopped", why=why))
    return tolerate(state)


def stop(state: MapState, done: RowsDone | Submitted) -> MapState:
    """End the segment, because whatever is asked next would fail, too."""
    if state.ending is not None and state.ending.outcome == "stopped":
        return state
    away = done.unreached is not None
    report = MapReport(
        outcome="unreachable" if away else "stopped",
        why=done.why,
        unreached=done.unreached,
        stopping=done.stopping,
    )
    return replace(state, ending=report)


def tolerate(state: MapState, broken: int = 0) -> MapState:
    """Stop asking where more rows have failed than the plan tolerates. `broken`: those of them that
    cannot be asked, where these alone may be too many: then nothing is paid first.
    """
    stands, spec = state.stands, state.goal.work.subtask.map
    assert spec is not None
    if state.goal.tolerated or state.ending is not None or stands.level:
        return state
    if exceeds(spec, broken, stands.items):
        why = f"{broken:,} of {stands.items:,} rows cannot be asked, {_more_than(state)}"
        return replace(state, ending=MapReport(outcome="intolerable", why=why))
    ended = stands.failed + stands.complete
    early = ended < policies.TOLERATED_FROM and (stands.portions or state.flights or state.batches)
    if early or not exceeds(spec, stands.failed, stands.items):
        return state
    why = f"{stands.failed:,} of {stands.items:,} rows failed, {_more_than(state)}"
    return replace(state, ending=MapReport(outcome="intolerable", why=why))


def count_equal(state: MapState, table: MapTable) -> MapState:
    """Count in the reason for too many failed rows also those that are equal to a failed one."""
    ending, counts = state.ending, table.counts
    equal = counts.failed - state.stands.failed
    if ending is None or ending.outcome != "intolerable" or equal <= 0:
        return state
    why = f"{counts.failed:,} of {counts.items:,} rows failed, {equal:,} of them equal to others,"
    why = f"{why} {_more_than(state)}"
    return replace(state, ending=ending.model_copy(update={"why": why}))


def _more_than(state: MapState) -> str:
    spec = state.goal.work.subtask.map
    assert spec is not None
    return f"more than {spec.tolerate:g} %"


def lose_activity(state: MapState, move: OfRows, trouble: Trouble) -> MapState:
    """Take in that nobody knows what became of rows, or that they surely were not asked."""
    state, sent = settle_lost(state, move, trouble)
    if trouble.unreached is not None and not trouble.unreached.lost:
        away = MapReport(outcome="unreachable", why=trouble.why, unreached=trouble.unreached)
        state = replace(state, ending=away)
    elif trouble.kind in ("stopping", "allowance"):
        stopping = "endpoint" if trouble.kind == "stopping" else "allowance"
        why = MapReport(outcome="stopped", why=trouble.why, stopping=stopping)
        state = replace(state, ending=why)
    return lose_rows(state, move, trouble.why) if sent else put_back(state, move, trouble.why)


def lose_rows(state: MapState, move: OfRows, why: str) -> MapState:
    """Ask rows again of which nobody knows what became of them; not too often."""
    chunks, losses = state.stands.current, move.portion.losses + 1
    if losses < policies.ROW_LOSSES:
        again = move.portion.model_copy(update={"losses": losses, "idle": 0})
        return stand(state, portions=(*state.stands.portions, again))
    gone = portions.count(chunks, move.portion)
    named = move.portion if move.portion.rows else portions.name_rows(chunks, move.portion)
    state = _note_unanswered(state, named.rows, why)
    if state.stands.level:
        return state
    return tolerate(stand(state, failed=state.stands.failed + gone))


def put_back(state: MapState, move: OfRows, why: str) -> MapState:
    """Leave rows to be asked that surely were not; not for ever."""
    left = move.portion.model_copy(update={"idle": move.portion.idle + 1})
    state = stand(state, portions=(left, *state.stands.portions))
    if left.idle > portions.MOST_IDLE and state.ending is None:
        state = replace(state, ending=MapReport(outcome="stopped", why=why))
    return state


def _note_unanswered(state: MapState, rows: tuple[int, ...], why: str) -> MapState:
    """Note rows that have failed without an answer: the table is told them, with why."""
    why = f"sent {policies.ROW_LOSSES} times, and no answer came" + (f": {why}" if why else "")
    if state.stands.level:
        return _note_unmerged(state, len(rows), why)
    told = Unanswered(rows=rows, why=why)
    return stand(state, unanswered=(*state.stands.unanswered, told))


def _note_unmerged(state: MapState, groups: int, why: str = "") -> MapState:
    """Note groups of texts that nobody merged: their texts are told as they came."""
    if not groups:
        return state
    note = f"{groups:,} group{'s' * (groups != 1)} of texts could not be merged"
    note += f": {why}" if why else ""
    return replace(state, notes=(*state.notes, note))
