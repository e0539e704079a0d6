"""Decide what a map does next, and change its state: `next_moves` and `apply`, pure.

Decisions follow from the sequence of events alone; the only moments are those that events carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.calls.rows import (
    BatchesLooked,
    CloseMaterial,
    Items,
    MapGoal,
    MapReport,
    MapTable,
    OpenMaterial,
    Portion,
    RowsDone,
    Submitted,
    Unanswered,
)
from holdfast.calls.turn import Slice
from holdfast.calls.work import exchange_seconds
from holdfast.contracts import policies
from holdfast.contracts.policies import Options
from holdfast.contracts.replacing import replace
from holdfast.maps import asking, portions
from holdfast.maps.money import (
    bill_at_worst,
    bill_report,
    ledger_of,
    settle_lost,
    settle_rows,
    shared_of,
    work_of,
)
from holdfast.maps.state import (
    AskRows,
    Batch,
    CancelBatches,
    CloseMap,
    CollectRows,
    End,
    Ended,
    Event,
    Flight,
    Flying,
    LookAtBatches,
    Lost,
    MapState,
    Move,
    OfRows,
    OpenMap,
    SubmitRows,
    TimePassed,
)
from holdfast.plans.mapping import exceeds
from holdfast.state.edits import without
from holdfast.state.events import CutAsked, HoldAsked

MOST_COLLECTS = 3
"""How often the results of a batch are read in vain."""
UNMERGED = "Not merged, as they came:"
LAST = ("done", "intolerable", "stopped", "cut")
"""Ends after which nothing is asked, unless a person wants it."""


def first_state(goal: MapGoal, started: datetime) -> MapState:
    level = goal.resume.level
    if level and goal.orders:
        # Its rows change, and so do the texts that were merged of them.
        empty = {"texts": (), "merges": (), "unmerged": "", "portions": ()}
        anew = {"level": 0, "table": None, **empty}
        goal = goal.model_copy(update={"resume": goal.resume.model_copy(update=anew)})
        level = 0
    shared = shared_of(goal, merging=level > 0)
    return MapState(goal, started, started, ledger_of(goal), goal.resume, shared)


def next_moves(state: MapState) -> tuple[Move, ...]:
    """Return everything that can start now; each move allows for the ones before it."""
    return tuple(_moves(state))


def _moves(state: MapState) -> Iterator[Move]:
    while (move := _next(state)) is not None:
        yield move
        if isinstance(move, End):
            return
        state = take_off(state, Flight(move, state.now, options_of(state, move)))


def _next(state: MapState) -> Move | None:
    if any(isinstance(each.move, OpenMap | CloseMap) for each in state.flights.values()):
        return None
    over = _over(state)
    if not state.stands.opened:
        return _end(state, over) if over else _open(state)
    if state.goal.orders and not state.ordered and not state.cut:
        return _close(state, orders=True)
    if state.ordered and over is None and _goes_on(state):
        # What came of the orders is told at once, and what is left is the next segment's.
        return End(bill_report(state, MapReport(outcome="more")))
    if state.batches:
        # Nobody waits for batches where nothing is to be gone on with, or there is no time for it.
        cancel = over is not None and over.outcome in LAST
        cancel = cancel or asking.lane_of(state) == "now"
        if (move := asking.next_of_batches(state, cancel=cancel)) is not None:
            return move
    if over is not None:
        return None if state.flights or state.batches else _end(state, over)
    rows = asking.next_rows(state)
    if isinstance(rows, Slice):
        return _end(state, MapReport(outcome="more", needs=rows))
    if rows is not None or state.flights or state.batches:
        return rows
    return _finish(state)


def _goes_on(state: MapState) -> bool:
    """True if rows are left to be asked, or texts to be merged."""
    spec = state.goal.work.subtask.map
    return bool(state.stands.portions) or (spec is not None and spec.reduce != "")


def _over(state: MapState) -> MapReport | None:
    """Return how the segment ends once nothing is in flight; None: it goes on."""
    if state.cut:
        return MapReport(outcome="cut", why=state.cut)
    if state.ending is None and state.held:
        return MapReport(outcome="more")
    return state.ending


def _end(state: MapState, report: MapReport) -> Move | None:
    """Return the end, behind the table where one is due and its rows are known."""
    # Where its money ends, the run above may have no more of it.
    last = report.outcome in LAST or report.needs is not None
    if last and state.stands.opened and state.table is None and state.stands.table is None:
        return _close(state)
    return End(bill_report(state, report))


def _open(state: MapState) -> OpenMap:
    goal, spec = state.goal, state.goal.work.subtask.map
    assert spec is not None
    found = next((each.items for each in goal.work.inputs if each.name == spec.over), None)
    items = found.count if found is not None else spec.most
    most = max(policies.FEWEST_CHUNK_ITEMS, -(-items // policies.MOST_CHUNKS), 4 * goal.at_once)
    material = OpenMaterial(
        work=goal.work, chunk_items=most, chunk_bytes=policies.CHUNK_BYTES, reuse=goal.reuse
    )
    return OpenMap(asking.next_number(state, "open"), material)


def _close(state: MapState, *, orders: bool = False) -> CloseMap:
    goal, stands = state.goal, state.stands
    material = CloseMaterial(
        work=goal.work,
        items=stands.chunks,
        outcomes=stands.outcomes,
        unanswered=stands.unanswered,
        waiting=_waiting(state),
        orders=goal.orders if orders else (),
    )
    return CloseMap(asking.next_number(state, "close"), material)


def _waiting(state: MapState) -> tuple[int, ...]:
    """Return the rows that have had an answer, and are to be asked again."""
    if state.stands.level:
        return ()
    again = (each.rows for each in state.stands.portions if each.before)
    return tuple(sorted({n for rows in again for n in rows}))


def _finish(state: MapState) -> Move:
    """Put together what stands; then merge its texts, level by level, where that is wanted."""
    spec, stands = state.goal.work.subtask.map, state.stands
    assert spec is not None
    if not spec.reduce or state.text:
        end = _end(state, MapReport(outcome="done"))
        assert end is not None
        return end
    if stands.table is None:
        return _close(state)
    merged = stands.merges if stands.level else stands.table.outcomes or stands.outcomes
    if not (merged or stands.level):
        return End(bill_report(state, MapReport(outcome="done")))
    material = OpenMaterial(
        work=work_of(state.goal, merging=True),
        chunk_items=policies.FEWEST_CHUNK_ITEMS,
        chunk_bytes=policies.CHUNK_BYTES,
        merging=merged,
        named=() if stands.level else stands.chunks,
        groups=stands.texts if stands.level else (),
        unmerged_bytes=max(policies.UNMERGED_BYTES - len(stands.unmerged.encode()), 0),
    )
    return OpenMap(asking.next_number(state, "open"), material)


def newly_cancelled(before: MapState, after: MapState) -> tuple[str, ...]:
    """Return the flights that an event has cut: all of them with the map; where it is only held,
    those that ask rows, which let what they have sent end.
    """
    if after.cut and not before.cut:
        return tuple(after.flights)
    if not after.held or before.held:
        return ()
    return tuple(key for key, each in after.flights.items() if isinstance(each.move, AskRows))


def options_of(state: MapState, move: Flying) -> Options:
    match move:
        case OpenMap() | CloseMap():
            return policies.OPEN_MAP.options(policies.OPEN_MAP_SECONDS)
        case AskRows(material=material, portion=portion):
            call, work = material.call, state.goal.work
            one = exchange_seconds(work.subtask, work.timeout_seconds, call.max_output)
            asked = portions.count(state.stands.current, portion)
            turns = -(-asked // material.at_once)
            # Those that do not get their turn come back: the last ones get as long as all.
            most = max((turns + 1) * one, policies.ENDPOINT_SECONDS)
            return policies.ROWS.options(most + policies.CALL_MARGIN_SECONDS)
        case CollectRows() | CancelBatches():
            # Whatever keeps the endpoint away, what was done there is paid and must be read.
            total = policies.BATCH_PATIENCE
            return policies.ROWS.options(policies.ENDPOINT_SECONDS, total=total)
        case _:
            return policies.ROWS.options(policies.ENDPOINT_SECONDS)


# ---------------------------------------------------------------- how the state changes


def take_off(state: MapState, flight: Flight) -> MapState:
    """Return the state once a move is carried out; rows are reserved before they are asked."""
    move = flight.move
    purpose = move.id.rpartition("-")[0]
    numbers = {**state.numbers, purpose: asking.next_number(state, purpose)}
    if isinstance(move, OfRows):
        state = replace(state, ledger=state.ledger.reserve(move.id, move.amount))
        state = _stand(state, portions=move.left)
    return replace(state, flights={**state.flights, move.id: flight}, numbers=numbers)


def _stand(state: MapState, **changes: object) -> MapState:
    return replace(state, stands=state.stands.model_copy(update=changes))


def apply(state: MapState, event: Event) -> MapState:
    if event.at is not None and event.at > state.now:
        state = replace(state, now=event.at)
    match event:
        case CutAsked():
            state = replace(state, cut=event.why, cut_at=event.at)
            return replace(state, look_at=state.now, looks=0) if state.batches else state
        case HoldAsked():
            return replace(state, held=True)
        case TimePassed():
            return state
        case Ended():
            return _take(_land(state, event.move), event)
        case Lost():
            return _lose(_land(state, event.move), event)


def _land(state: MapState, move: Flying) -> MapState:
    return replace(state, flights=without(state.flights, move.id))


def _take(state: MapState, event: Ended) -> MapState:
    match event.move, event.result:
        case OpenMap(material=material), Items() as items:
            return _regroup(state, items) if material.of_texts else _take_items(state, items)
        case CloseMap(material=material), MapTable() as table:
            return _take_table(state, table, ordered=bool(material.orders))
        case AskRows() as move, RowsDone() as done:
            state = _stand(state, warmed=True)
            return _take_rows(state, move, move.id, done, "now")
        case SubmitRows() as move, Submitted() as submitted:
            return _take_batch(state, move, submitted)
        case CollectRows() as move, RowsDone() as done:
            batch = state.batches[move.batch]
            state = replace(state, batches=_without(state, move.batch))
            return _take_rows(state, batch.move, move.batch, done, "batch")
        case LookAtBatches(), BatchesLooked() as looked:
            return _take_looks(state, looked)
        case CancelBatches(), BatchesLooked() as looked:
            return _take_looks(_cancelled(state, event.move), looked)
    raise AssertionError(f"{event.move.id} cannot have brought this")


# ---------------------------------------------------------------- items, table, texts


def _take_items(state: MapState, items: Items) -> MapState:
    kept = items.kept
    if items.unused:
        note = f"nothing was taken over from the earlier run: {items.unused}"
        state = replace(state, notes=(*state.notes, note))
    queue = tuple(Portion(chunks=(place,)) for place, each in enumerate(items.chunks) if each.asked)
    queue, _ = portions.drop(items.chunks, queue, kept) if kept else (queue, ())
    return _tolerate(
        _stand(
            state,
            opened=True,
            chunks=items.chunks,
            items=items.count,
            broken=items.broken,
            repeated=items.repeated,
            reused=items.reused,
            portions=queue,
            outcomes=items.outcomes,
            failed=items.broken,
            complete=items.reused,
        ),
        broken=items.broken,
    )


def _take_table(state: MapState, table: MapTable, *, ordered: bool) -> MapState:
    spec = state.goal.work.subtask.map
    # The table has given those without an answer an outcome.
    state = _stand(state, outcomes=table.outcomes or state.stands.outcomes, unanswered=())
    stands = state.stands
    if not ordered:
        merges = spec is not None and spec.reduce and not stands.portions
        if merges and _over(state) is None:
            return _stand(state, table=table)
        return replace(state, table=table)
    state = replace(state, ordered=True, table=table)
    # What waits to be asked has neither failed for good nor been completed yet.
    queue, waiting = portions.drop(stands.chunks, stands.portions, table.settled)
    _, queued = portions.drop(stands.chunks, queue, table.retry)
    stood = {*waiting, *queued}
    again = [each for each in table.retry if each not in stood]
    failed = [each for each in table.had_failed if each not in stood]
    if again:
        whole = Portion(chunks=tuple(range(len(stands.chunks))), step=_step_of_order(state))
        queue = (*queue, portions.place_rows(stands.chunks, whole, again))
    return _tolerate(
        _stand(
            state,
            portions=queue,
            failed=stands.failed - len(failed),
            complete=stands.complete + len(table.settled) - len(table.had_result),
            table=None,
        ),
        broken=table.counts.broken,
    )


def _step_of_order(state: MapState) -> int:
    """Return the first step of the tier that a person wants rows asked of again."""
    wanted = [each.tier for each in state.goal.orders if each.kind == "retry" and each.tier]
    tiers = [each.tier for each in state.goal.models]
    return 2 * tiers.index(wanted[-1]) if wanted and wanted[-1] in tiers else 0


def _regroup(state: MapState, items: Items) -> MapState:
    """Take in groups of texts: the next level of merging, or the one text that is left."""
    unmerged = "\n\n".join(filter(None, (state.stands.unmerged, items.unmerged)))
    state = _stand(state, unmerged=unmerged)
    if items.text or not items.chunks:
        # Whoever reads the text learns what it is not of.
        apart = f"{UNMERGED}\n\n{unmerged}" if unmerged else ""
        text = "\n\n".join(filter(None, (items.text, apart)))
        done = MapReport(outcome="done")
        return replace(state, text=text, ending=done, table=state.stands.table)
    queue = tuple(Portion(chunks=(place,)) for place, each in enumerate(items.chunks) if each.asked)
    state = replace(state, shared=shared_of(state.goal, merging=True))
    level = state.stands.level + 1
    return _stand(state, level=level, texts=items.chunks, merges=(), portions=queue)


# ---------------------------------------------------------------- rows


def _take_rows(state: MapState, move: OfRows, id: str, done: RowsDone, lane: str) -> MapState:
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
        state = _stand(state, merges=(*stands.merges, *blobs), **counts)
        state = _note_unmerged(state, failed - len(unanswered))
    else:
        counts |= {"complete": stands.complete + done.complete, "failed": stands.failed + failed}
        state = _stand(state, outcomes=(*stands.outcomes, *blobs), **counts)
    if done.unreached is not None or done.stopping:
        return _stop(state, done)
    idle = [each for each in again if each.idle > portions.MOST_IDLE]
    if idle and state.ending is None:
        why = done.why or "its rows came back without having been asked"
        state = replace(state, ending=MapReport(outcome="stopped", why=why))
    return _tolerate(state)


def _stop(state: MapState, done: RowsDone | Submitted) -> MapState:
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


def _tolerate(state: MapState, broken: int = 0) -> MapState:
    """Stop asking where more rows have failed than the plan tolerates. `broken`: those of them that
    cannot be asked, where these alone may be too many: then nothing is paid first.
    """
    stands, spec = state.stands, state.goal.work.subtask.map
    assert spec is not None
    if state.goal.tolerated or state.ending is not None or stands.level:
        return state
    more = f"more than {spec.tolerate:g} %"
    if exceeds(spec, broken, stands.items):
        why = f"{broken:,} of {stands.items:,} rows cannot be asked, {more}"
        return replace(state, ending=MapReport(outcome="intolerable", why=why))
    ended = stands.failed + stands.complete
    early = ended < policies.TOLERATED_FROM and (stands.portions or state.flights or state.batches)
    if early or not exceeds(spec, stands.failed, stands.items):
        return state
    why = f"{stands.failed:,} of {stands.items:,} rows failed, {more}"
    return replace(state, ending=MapReport(outcome="intolerable", why=why))


# ---------------------------------------------------------------- batches


def _take_batch(state: MapState, move: SubmitRows, submitted: Submitted) -> MapState:
    if submitted.batch or submitted.suspects:
        batches = {**state.batches, move.id: Batch(move, submitted)}
        return replace(state, batches=batches, looks=0, look_at=state.now + asking.look_pause(0))
    state = replace(state, ledger=state.ledger.release(move.id))
    left = move.portion.model_copy(update={"idle": move.portion.idle + 1})
    state = _stand(state, portions=(left, *state.stands.portions))
    if submitted.unreached is not None or submitted.stopping:
        return _stop(state, submitted)
    if left.idle > portions.MOST_IDLE:
        why = submitted.why or "no batch could be made"
        return replace(state, ending=MapReport(outcome="stopped", why=why))
    return state


def _take_looks(state: MapState, looked: BatchesLooked) -> MapState:
    looks = {each.batch: each for each in looked.looks}
    for key, batch in state.batches.items():
        told = [looks[id] for id in batch.ids if id in looks]
        if batch.submitted.batch and any(each.lost for each in told):
            state = _lose_batch(state, key)
        elif told and all(each.ended or each.lost for each in told):
            state = _change(state, key, replace(batch, ended=True))
    number = state.looks + 1
    return replace(state, looks=number, look_at=state.now + asking.look_pause(number))


def _cancelled(state: MapState, move: CancelBatches) -> MapState:
    named = move.material.batches
    for key, batch in state.batches.items():
        if batch.submitted.batch in named:
            state = _change(state, key, replace(batch, cancelled=True))
    return replace(state, looks=0)


def _change(state: MapState, key: str, batch: Batch) -> MapState:
    return replace(state, batches={**state.batches, key: batch})


def _without(state: MapState, key: str) -> dict[str, Batch]:
    return {each: batch for each, batch in state.batches.items() if each != key}


def _lose_batch(state: MapState, key: str) -> MapState:
    """Count a batch whose results nobody can read at all that was reserved for it."""
    move = state.batches[key].move
    state = replace(state, batches=_without(state, key))
    why = "the endpoint does not know its batch any more, or its results cannot be read"
    return _lose_rows(settle_rows(state, key, bill_at_worst(state, move)), move, why)


# ---------------------------------------------------------------- what brought no result


def _lose(state: MapState, event: Lost) -> MapState:
    move, trouble = event.move, event.trouble
    match move:
        case OpenMap() | CloseMap():
            return _lose_file(state, move, trouble.why)
        case LookAtBatches() | CancelBatches():
            if isinstance(move, CancelBatches):
                state = _cancelled(state, move)
            number = state.looks + 1
            return replace(state, looks=number, look_at=state.now + asking.look_pause(number))
        case CollectRows():
            batch = state.batches[move.batch]
            batch = replace(batch, failures=batch.failures + 1)
            state = _change(state, move.batch, batch)
            return _lose_batch(state, move.batch) if batch.failures >= MOST_COLLECTS else state
    state, sent = settle_lost(state, move, trouble)
    if trouble.unreached is not None and not trouble.unreached.lost:
        state = replace(
            state,
            ending=MapReport(outcome="unreachable", why=trouble.why, unreached=trouble.unreached),
        )
    elif trouble.kind in ("stopping", "allowance"):
        stopping = "endpoint" if trouble.kind == "stopping" else "allowance"
        why = MapReport(outcome="stopped", why=trouble.why, stopping=stopping)
        state = replace(state, ending=why)
    return _lose_rows(state, move, trouble.why) if sent else _put_back(state, move, trouble.why)


def _lose_file(state: MapState, move: OpenMap | CloseMap, why: str) -> MapState:
    """End without what could not be read or put together."""
    if isinstance(move, OpenMap) and move.material.of_texts:
        state = replace(state, notes=(*state.notes, f"texts were not merged: {why}"))
        done = MapReport(outcome="done")
        return replace(state, ending=done, table=state.stands.table)
    if isinstance(move, CloseMap):
        state = replace(state, table=MapTable(), ordered=True)
    return replace(state, ending=MapReport(outcome="stopped", why=why))


def _lose_rows(state: MapState, move: OfRows, why: str) -> MapState:
    """Ask rows again of which nobody knows what became of them; not too often."""
    chunks, losses = state.stands.current, move.portion.losses + 1
    if losses < policies.ROW_LOSSES:
        again = move.portion.model_copy(update={"losses": losses, "idle": 0})
        return _stand(state, portions=(*state.stands.portions, again))
    gone = portions.count(chunks, move.portion)
    named = move.portion if move.portion.rows else portions.name_rows(chunks, move.portion)
    state = _note_unanswered(state, named.rows, why)
    if state.stands.level:
        return state
    return _tolerate(_stand(state, failed=state.stands.failed + gone))


def _note_unanswered(state: MapState, rows: tuple[int, ...], why: str) -> MapState:
    """Note rows that have failed without an answer: the table is told them, with why."""
    why = f"sent {policies.ROW_LOSSES} times, and no answer came" + (f": {why}" if why else "")
    if state.stands.level:
        return _note_unmerged(state, len(rows), why)
    told = Unanswered(rows=rows, why=why)
    return _stand(state, unanswered=(*state.stands.unanswered, told))


def _note_unmerged(state: MapState, groups: int, why: str = "") -> MapState:
    """Note groups of texts that nobody merged: their texts are told as they came."""
    if not groups:
        return state
    note = f"{groups:,} group{'s' * (groups != 1)} of texts could not be merged"
    note += f": {why}" if why else ""
    return replace(state, notes=(*state.notes, note))


def _put_back(state: MapState, move: OfRows, why: str) -> MapState:
    left = move.portion.model_copy(update={"idle": move.portion.idle + 1})
    state = _stand(state, portions=(left, *state.stands.portions))
    if left.idle > portions.MOST_IDLE and state.ending is None:
        state = replace(state, ending=MapReport(outcome="stopped", why=why))
    return state
