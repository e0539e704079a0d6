"""What a move that was carried out changes. Pure."""

from __future__ import annotations

from datetime import datetime

from holdfast.calling import finishing
from holdfast.calling.schedule import options_of
from holdfast.contracts.replacing import replace
from holdfast.rules import keeping, passing, planning
from holdfast.state.edits import update
from holdfast.state.moves import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Examine,
    Flying,
    Hold,
    Move,
    PassOver,
    Prepare,
    StartAgent,
    StartTeam,
    Stop,
    TellAbove,
)
from holdfast.state.parts import Flight, Progress
from holdfast.state.run import State


def start_move(state: State, move: Move, now: datetime) -> State:
    match move:
        case Prepare() | Examine():
            return _took_off(state, move, now)
        case Ask():
            state = _took_off(_reserved(state, move, now), move, now)
            state = keeping.note_cheaper_call(finishing.note_cut(state, move), move)
            return planning.count_replan(state) if move.call.kind == "replan" else state
        case StartTeam() | StartAgent():
            ledger = state.ledger.reserve(move.id, move.amount)
            state = replace(state, ledger=ledger, first_paid=state.first_paid or now)
            if isinstance(move, StartAgent):
                state = keeping.note_cheaper(state, move.subtask_id, move.goal.model.tier)
            return _took_off(state, move, now)
        case AskPerson():
            return update(state, move.subtask_id, lambda each: replace(each, asked=now))
        case AskRaise():
            return replace(state, short=move.why, short_of=move.short_of, short_since=now)
        case PassOver():
            return passing.hand_to_second(state, move)
        case Stop():
            return replace(state, stop=state.stop or move)
        case Cut():
            return _cut(state, move, now)
        case Hold():
            held = {key: replace(state.flights[key], held=True) for key in move.ids}
            return replace(state, flights={**state.flights, **held})
        case TellAbove():
            return replace(state, told_above=move.word)


def _cut(state: State, move: Cut, now: datetime) -> State:
    number = state.cuts + 1
    flights = {
        key: replace(flight, cut=number, cut_at=now) if key in move.ids else flight
        for key, flight in state.flights.items()
    }
    return replace(state, flights=flights, cuts=number)


def _reserved(state: State, move: Ask, now: datetime) -> State:
    if move.call.model is None:
        return state
    ledger = state.ledger.reserve(move.call.id, move.amount, keep=move.keep)
    return replace(state, ledger=ledger, first_paid=state.first_paid or now)


def _took_off(state: State, move: Flying, now: datetime) -> State:
    state = replace(
        state,
        flights={**state.flights, move.id: Flight(move, now, options_of(state, move))},
        numbers={**state.numbers, move.purpose: state.next_number(move.purpose)},
    )
    if not move.subtask_id:
        return state
    called = move.call.tier if isinstance(move, Ask) and move.call.kind == "work" else None
    called = move.goal.model.tier if isinstance(move, StartAgent) else called
    waited = state.waited_until(now)

    def begun(each: Progress) -> Progress:
        if each.started is None:
            each = replace(each, started=now, waited_at_start=waited)
        return replace(each, flight=move.id, called=called or each.called)

    return update(state, move.subtask_id, begun)
