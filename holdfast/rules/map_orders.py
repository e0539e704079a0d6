"""What people decide about rows of a map: kept for its next segment, which begins at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from holdfast.calls.rows import MapReport, RowOrder
from holdfast.contracts import Given, Order
from holdfast.contracts.orders import RowsWhich
from holdfast.contracts.replacing import replace
from holdfast.rules.map_findings import count_rows
from holdfast.state.edits import update
from holdfast.state.moves import StartMap
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import without_setback

MOST_IDS = 1_000
"""Rows that one order may name."""


def with_new_orders(state: State) -> tuple[str, ...]:
    """Return the flights of maps that are to end their segment for an order, and are not told."""
    flights = state.flights.items() if state.work.maps else ()
    return tuple(
        key
        for key, flight in flights
        if isinstance(flight.move, StartMap)
        and not (flight.cut or flight.held)
        and len(state.work[flight.move.subtask_id].mapped.orders) > len(flight.move.goal.orders)
    )


def with_open_skipped(state: State) -> tuple[str, ...]:
    """Return the flights of maps whose open rows are to be skipped: nobody waits for their batches
    any more.
    """
    found = []
    for key, flight in state.flights.items() if state.work.maps else ():
        if isinstance(flight.move, StartMap) and not flight.cut:
            new = state.work[flight.move.subtask_id].mapped.orders[len(flight.move.goal.orders) :]
            found += [key] if any(_skips_open(each) for each in new) else []
    return tuple(found)


def _skips_open(order: RowOrder) -> bool:
    return order.kind == "skip" and order.which == "open" and not order.ids


WHICH: Mapping[str, tuple[RowsWhich, ...]] = {
    "retry": ("failed", "skipped"),
    "skip": ("failed", "open"),
}
"""Rows that an order may be about as a group."""


def refusal_of_rows(state: State, order: Order, kind: str) -> str:
    """Return why an order about rows makes no sense now; empty if it does. The subtask is known."""
    key = order.subtask_id
    progress = state.work[key]
    if progress.subtask.map is None:
        return f"{key} is no map: it has no rows"
    if progress.ending:
        return f"{key} is being ended"
    if not progress.started:
        return f"{key} has not begun; its rows are not known"
    if progress.finding is not None and progress.finding.status in ("skipped", "cancelled"):
        return f"{key} was {progress.finding.status}; retry it as a whole first"
    if progress.finding is not None:
        begun = [each for each in state.work.below(key) if state.work[each].started]
        if begun:
            return f"{begun[0]} has begun with what {key} found; fork the run to do it differently"
    groups = WHICH.get(kind, ())
    if groups and not order.ids and order.which not in groups:
        return f"{kind} takes rows that are {' or '.join(groups)}, or ids of items"
    if len(order.ids) > MOST_IDS:
        return f"{len(order.ids):,} rows are named; one order takes {MOST_IDS:,}"
    if kind == "retry" and order.text.strip():
        return "rows are tried again with the instruction as it stands; fork the run to change it"
    if kind == "supply" and len(order.ids) != 1:
        return "name the one row that the result is for"
    if kind == "supply" and order.value is None:
        return "the result is empty"
    return ""


def take_order(state: State, order: Order, kind: Literal["retry", "supply", "skip"]) -> State:
    """Keep an order about rows for the next segment, which the map begins at once."""
    told = RowOrder(
        kind=kind,
        ids=order.ids,
        which=order.which,
        value=order.value,
        tier=order.tier,
        by=order.by,
        why="" if kind == "retry" else order.text,
    )

    def ordered(each: Progress) -> Progress:
        mapped = replace(each.mapped, orders=(*each.mapped.orders, told))
        stage = "work" if each.stage in ("person", "decision") else each.stage
        return replace(each, mapped=mapped, stage=stage, finding=None, why="")

    return without_setback(update(state, order.subtask_id, ordered), order.subtask_id)


def number_order(state: State, subtask_id: str, number: int) -> State:
    """Give the last order about rows of a map its number in the run."""

    def numbered(each: Progress) -> Progress:
        *before, last = each.mapped.orders
        orders = (*before, last.model_copy(update={"number": number}))
        return replace(each, mapped=replace(each.mapped, orders=orders))

    return update(state, subtask_id, numbered)


def numbers_over(move: StartMap, report: MapReport) -> set[int]:
    """Return the numbers of the orders that are over with a segment: done, or never to be."""
    told = {each.number for each in report.table.told}
    goes_on = report.outcome in ("more", "unreachable")
    return {each.number for each in move.goal.orders if each.number in told or not goes_on}


def take_told(state: State, move: StartMap, report: MapReport) -> State:
    """Note what came of the orders of a segment; one that changed nothing counts as refused."""
    told = {each.number: each for each in report.table.told}
    over = numbers_over(move, report)

    def note(given: Given) -> Given:
        if given.number not in over:
            return given
        found = told.get(given.number)
        if found is None:
            return given.model_copy(update={"refused": f"not carried out: {report.why}"})
        if not found.rows:
            return given.model_copy(update={"refused": found.why})
        return given.model_copy(update={"about": count_rows(found.rows), "unmet": found.why})

    return replace(state, orders=tuple(note(each) for each in state.orders))


def is_pending(state: State, subtask_id: str, number: int) -> bool:
    """True if an order about rows is still to be carried out."""
    return any(each.number == number for each in state.work[subtask_id].mapped.orders)


def say_hindrance(state: State, subtask_id: str, number: int) -> str:
    """Return what an order about rows waits for, where that may take long; empty: it is carried out
    soon.
    """
    if state.paused:
        return "the run goes on"
    flight = state.flights.get(state.work[subtask_id].flight)
    if flight is None or not isinstance(flight.move, StartMap) or flight.move.goal.lane == "now":
        return ""
    if any(each.number == number for each in flight.move.goal.orders):
        return ""
    return "its open batches are cancelled and read" if flight.cut else "its open batches are back"
