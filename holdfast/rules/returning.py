"""What comes back from a flight, with an answer or without one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from holdfast.calling import finishing, outages, warming
from holdfast.calls.choose import ChosenGroups
from holdfast.calls.match import Matched
from holdfast.calls.reach import Reached
from holdfast.calls.refine import Refined
from holdfast.calls.replan import Patch
from holdfast.calls.review import Review
from holdfast.contracts import (
    Bill,
    Call,
    Contract,
    Draft,
    FindingStatus,
    Plan,
    Problem,
    Reply,
    Synthesis,
    policies,
)
from holdfast.contracts.errors import TroubleKind
from holdfast.contracts.replacing import replace
from holdfast.rules import agents, early, keeping, maps, planning, repair, speechless, teams
from holdfast.state import paying
from holdfast.state.edits import land, stop_for, update, without
from holdfast.state.events import AgentEnded, Answered, MapEnded, TeamEnded, Trouble
from holdfast.state.moves import (
    Ask,
    Examine,
    Prepare,
    StartAgent,
    StartMap,
    StartTeam,
    StopReason,
)
from holdfast.state.run import State
from holdfast.state.settling import end_for_person, settle

PREPARE = Prepare().id
OWN_REPAIR = ("plan", "replan", "choose", "match")
"""These calls are told all errors at once, malformed or invalid alike; a choice is done without."""
STOPS: Mapping[TroubleKind, StopReason] = {"stopping": "endpoint", "allowance": "allowance"}
"""Every further call would end the same way."""
HOPELESS = ("refused", *STOPS, "cancelled", "not_billed", "unreachable")
"""Problems that are not worth another call."""
Expected = TypeVar("Expected", bound=Contract)


def take_reply(state: State, event: Answered) -> State:
    state = _judge(land(state, event.move.id), event.move, event.reply)
    # What a person ended meanwhile is cancelled only if this reply has not completed it.
    return end_for_person(state, event.move.subtask_id)


def _judge(state: State, move: Ask, reply: Reply[Any]) -> State:
    call, problem = move.call, reply.problem
    if call.kind == "reach":
        return outages.take_reached(state, _as(Reached, reply.value))
    # Paid before it is judged: a try and a finding are frozen with what they cost.
    if call.model is not None:
        draft = isinstance(reply.value, Draft)
        state = replace(paying.pay(state, call, reply.bill, draft=draft), heard=True)
        state = keeping.note_climb(state, call, reply.bill)
        if call.kind == "ping":
            return outages.note_found(state)
        state = speechless.judge_answer(outages.end_outage(state), problem)
    state = replace(state, transport=without(state.transport, call.purpose))
    state = warming.note_warm(state, call)
    # Before the room is forgotten: cut short in it once more, the answer is judged as it is.
    cut_off = problem is not None and problem.kind == "truncated" and not _has_own_room(state, call)
    if cut_off and call.mended not in state.roomier:
        return replace(state, roomier=(*state.roomier, call.mended))
    roomier = tuple(each for each in state.roomier if each != call.mended)
    state = replace(state, roomier=roomier)
    broken = state.broken.get(call.mended, ())
    malformed = problem is not None and problem.kind == "malformed"
    if problem and malformed and call.kind not in OWN_REPAIR and len(broken) < policies.REPAIRS:
        state = replace(state, broken={**state.broken, call.mended: (*broken, problem)})
        return finishing.keep_unformed(state, reply.value)
    state = replace(state, broken=without(state.broken, call.mended))
    return _take(state, move, reply.value, problem)


def _has_own_room(state: State, call: Call) -> bool:
    """True if the plan bounds the answer: then it never gets twice the room."""
    progress = state.work.get(call.subtask_id)
    return call.kind == "work" and progress is not None and progress.subtask.max_output > 0


def _take(state: State, move: Ask, value: Contract | None, problem: Problem | None) -> State:
    """Hand a reply's value, or its absence, to the rule for its kind of call."""
    call = move.call
    why = problem.why if problem else "nothing came back"
    said = problem.answer if problem else ""
    match call.kind:
        case "plan":
            return planning.judge_plan(state, _as(Plan, value), why, said)
        case "choose":
            return planning.take_groups(state, _as(ChosenGroups, value), why)
        case "match":
            return planning.take_match(state, _as(Matched, value), why)
        case "replan":
            return planning.judge_patch(state, _as(Patch, value), why, said)
        case "review":
            return repair.judge_review(state, call.subtask_id, _as(Review, value), why)
        case "refine":
            return repair.take_refined(state, call.subtask_id, _as(Refined, value))
        case "synthesize":
            return finishing.take_synthesis(state, _as(Synthesis, value), why)
        case "work":
            # What an agent of an earlier try made, or left unread, is not of this one.
            state = update(state, call.subtask_id, lambda each: replace(each, files=(), unread=()))
            return repair.judge_work(state, call.subtask_id, _as(Draft, value), problem)
        case _:
            return finishing.take(state, move, value, why)


def _as(kind: type[Expected], value: Contract | None) -> Expected | None:
    return value if isinstance(value, kind) else None


def take_draft(state: State, move: Examine, draft: Draft) -> State:
    cut = state.flights[move.id].cut
    state = land(state, move.id)
    state = update(state, move.subtask_id, lambda each: replace(each, last=draft))
    if draft.status == "complete":
        return settle(state, move.subtask_id, "complete", "")
    if state.work[move.subtask_id].ending:
        return end_for_person(state, move.subtask_id)
    status: FindingStatus = "cancelled" if cut and not draft.content else "failed"
    return settle(state, move.subtask_id, status, draft.why)


def take_trouble(state: State, move: Ask, trouble: Trouble) -> State:
    call, sent = move.call, state.flights[move.call.id].started
    if state.flights[call.id].cut:
        # The call itself knows only that it was cut, not by which limit.
        why = state.stop.why if state.stop and state.stopped_by("deadline") else ""
        why = f"{trouble.why}: {why}" if why else trouble.why
        trouble = replace(trouble, kind="cancelled", why=why)
    state = land(state, call.id)
    if call.kind == "reach":
        return outages.give_up(state, trouble)
    if call.kind == "ping":
        return outages.take_lost_ping(_settle_trouble(state, call, trouble), trouble)
    # What the call counts at is what its settling has changed in the ledger.
    settled = _settle_trouble(state, call, trouble)
    if call.model is not None and trouble.kind != "over_reservation":
        settled = paying.note_no_answer(state, settled, call, trouble.why)
    state = settled
    progress = state.work.get(call.subtask_id)
    # Before any outage: nobody waits for an endpoint for the sake of what a person ended.
    if progress is not None and progress.ending:
        return end_for_person(state, call.subtask_id)
    unreached = trouble.unreached if trouble.kind != "cancelled" else None
    waiting = None
    if unreached is not None:
        waiting = outages.begin(state, unreached, call.tier, call.purpose, sent)
        state = waiting or state
        if waiting is not None and (not unreached.lost or outages.is_excused(waiting)):
            return waiting
    # Only now is it a failed try: that nobody is there uses none up.
    failures = state.transport.get(call.purpose, 0) + 1
    state = replace(state, transport={**state.transport, call.purpose: failures})
    if trouble.kind in STOPS:
        state = stop_for(state, STOPS[trouble.kind], trouble.why)
    most = policies.TOO_LONG_TRIES if trouble.too_long else policies.TRANSPORT_TRIES
    if failures < most and (waiting is not None or trouble.kind not in HOPELESS):
        return state
    return _give_up(state, move, trouble)


def _give_up(state: State, move: Ask, trouble: Trouble) -> State:
    call = move.call
    match call.kind:
        case "work" if trouble.too_long and trouble.kind not in HOPELESS:
            return repair.too_long(state, call.subtask_id, trouble.why)
        case "work":
            status: FindingStatus = "cancelled" if trouble.kind == "cancelled" else "failed"
            return settle(state, call.subtask_id, status, trouble.why)
        case "plan":
            return planning.no_plan(state, trouble.why, too_long=trouble.too_long)
        case "replan":
            return planning.no_patch(state, trouble.why, too_long=trouble.too_long)
        case "synthesize":
            return finishing.no_synthesis(state, trouble.why)
        case _:
            return _take(state, move, None, Problem(kind="invalid", why=trouble.why))


def _settle_trouble(state: State, call: Call, trouble: Trouble) -> State:
    """Settle a call without an answer: at its known usage, else at its reservation."""
    if call.model is None:
        return state
    if (bill := paying.bill_of_loss(trouble)) is not None:
        return paying.pay(state, call, bill)
    if trouble.kind == "over_reservation":
        counted = trouble.bill.usage.total - call.max_output
        state = replace(state, needed={**state.needed, f"{call.purpose}/{call.tier}": counted})
    return replace(state, ledger=state.ledger.release(call.id))


def abandon(state: State, ids: tuple[str, ...]) -> State:
    why = "cut; it did not answer in time"
    for flight in [state.flights[each] for each in ids if each in state.flights]:
        match flight.move:
            case Ask() | StartAgent() if flight.move.id in state.early.back:
                state = early.abandon(state, flight.move, why)
            case Ask():
                bill = Bill(calls=1 if flight.move.call.model else 0)
                trouble = Trouble("cancelled", why, bill)
                state = take_trouble(state, flight.move, trouble)
            case StartTeam():
                lost = TeamEnded(flight.move, None, why)
                state = teams.end_team(land(state, flight.move.id), lost)
            case StartAgent():
                gone = AgentEnded(flight.move, None, why)
                state = agents.end_segment(land(state, flight.move.id), gone)
            case StartMap():
                ended = MapEnded(flight.move, None, why)
                state = maps.end_segment(land(state, flight.move.id), ended)
            case Examine():
                state = take_draft(state, flight.move, Draft(status="failed", why=why))
            case Prepare():
                state = land(state, PREPARE)
    return state
