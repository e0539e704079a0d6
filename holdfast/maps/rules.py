"""Decide what a map does next, and change its state: `next_moves` and `apply`, pure.

Decisions follow from the sequence of events alone; the only moments are those that events carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.calls.rows import (
    BatchesLooked,
    Items,
    MapGoal,
    MapReport,
    MapTable,
    RowsDone,
    Submitted,
)
from holdfast.calls.turn import Slice
from holdfast.calls.work import exchange_seconds
from holdfast.contracts import policies
from holdfast.contracts.policies import Options
from holdfast.contracts.replacing import replace
from holdfast.maps import asking, batches, portions, returning, tables
from holdfast.maps.money import (
    bill_report,
    ledger_of,
    shared_of,
)
from holdfast.maps.state import (
    AskRows,
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
    stand,
)
from holdfast.state.edits import without
from holdfast.state.events import CutAsked, HoldAsked

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
    over = state.over
    if not state.stands.opened:
        return _end(state, over) if over else tables.open_map(state)
    if state.goal.orders and not state.ordered and not state.cut:
        return tables.close_map(state, orders=True)
    if state.ordered and over is None and _goes_on(state):
        # What came of the orders is told at once, and what is left is the next segment's.
        return End(bill_report(state, MapReport(outcome="more")))
    if state.batches:
        # Nobody waits for batches where nothing is to be gone on with, or there is no time for it.
        cancel = over is not None and over.outcome in LAST
        cancel = cancel or asking.lane_of(state) == "now"
        if (move := batches.next_move(state, cancel=cancel)) is not None:
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


def _end(state: MapState, report: MapReport) -> Move | None:
    """Return the end, behind the table where one is due and its rows are known."""
    # Where its money ends, the run above may have no more of it.
    last = report.outcome in LAST or report.needs is not None
    if last and state.stands.opened and state.table is None and state.stands.table is None:
        return tables.close_map(state)
    return End(bill_report(state, report))


def _finish(state: MapState) -> Move:
    """Put together what stands; then merge its texts, level by level, where that is wanted."""
    spec, stands = state.goal.work.subtask.map, state.stands
    assert spec is not None
    if not spec.reduce or state.text:
        end = _end(state, MapReport(outcome="done"))
        assert end is not None
        return end
    if stands.table is None:
        return tables.close_map(state)
    grouping = tables.next_level(state)
    return grouping or End(bill_report(state, MapReport(outcome="done")))


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
        state = stand(state, portions=move.left)
    return replace(state, flights={**state.flights, move.id: flight}, numbers=numbers)


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
            take = tables.take_groups if material.of_texts else tables.take_items
            return take(state, items)
        case CloseMap(material=material), MapTable() as table:
            return tables.take_table(state, table, ordered=bool(material.orders))
        case AskRows() as move, RowsDone() as done:
            state = stand(state, warmed=True)
            return returning.take_rows(state, move, move.id, done, "now")
        case SubmitRows() as move, Submitted() as submitted:
            return batches.take_batch(state, move, submitted)
        case CollectRows() as move, RowsDone() as done:
            return batches.take_results(state, move, done)
        case LookAtBatches(), BatchesLooked() as looked:
            return batches.take_looks(state, looked)
        case CancelBatches() as move, BatchesLooked() as looked:
            return batches.take_looks(batches.mark_cancelled(state, move), looked)
    raise AssertionError(f"{event.move.id} cannot have brought this")


def _lose(state: MapState, event: Lost) -> MapState:
    """Take in that a move brought no result."""
    match event.move:
        case OpenMap() | CloseMap() as move:
            return tables.lose_file(state, move, event.trouble.why)
        case LookAtBatches():
            return batches.look_later(state)
        case CancelBatches() as move:
            return batches.look_later(batches.mark_cancelled(state, move))
        case CollectRows() as move:
            return batches.lose_results(state, move)
        case AskRows() | SubmitRows() as move:
            return returning.lose_activity(state, move, event.trouble)
    raise AssertionError(f"{event.move.id} cannot be lost")
