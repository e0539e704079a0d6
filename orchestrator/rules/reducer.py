"""How a run's state changes: `state = apply(state, event)`, pure. What to do next is for `moves`.

The run's clock is `state.now`: it moves only with the moments that events carry, so that the same
events lead to the same state wherever and whenever they are taken in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from orchestrator import policies
from orchestrator.calls.critique import Critique
from orchestrator.calls.digest import Digest
from orchestrator.calls.judge import Judgement
from orchestrator.calls.refine import Refined
from orchestrator.calls.replan import Patch
from orchestrator.calls.review import Review
from orchestrator.calls.verify import Verdicts
from orchestrator.contracts import (
    Bill,
    Call,
    Contract,
    Draft,
    FindingStatus,
    Given,
    Order,
    Plan,
    Problem,
    Synthesis,
    Undone,
)
from orchestrator.errors import TroubleKind
from orchestrator.events import (
    Abandoned,
    Answered,
    Ask,
    AskPerson,
    AskRaise,
    CancelAsked,
    Cut,
    Event,
    Examine,
    Examined,
    Flying,
    Move,
    NobodyCame,
    NotPrepared,
    Prepare,
    Prepared,
    Started,
    StartTeam,
    Steered,
    Stop,
    StopReason,
    TeamEnded,
    TeamWaits,
    TellAbove,
    Trouble,
    Unanswered,
    WasReset,
)
from orchestrator.money import keeping
from orchestrator.rules import (
    finishing,
    outages,
    planning,
    repair,
    settling,
    steering,
    teams,
    verifying,
)
from orchestrator.rules.schedule import options_of
from orchestrator.rules.settling import advance, ended_by_person, landed, settle, update, without
from orchestrator.rules.state import Flight, Progress, State

PREPARE = Prepare().id
OWN_REPAIR = ("plan", "replan")
"""These calls are told all errors at once, malformed or invalid alike."""
STOPS: Mapping[TroubleKind, StopReason] = {"stopping": "endpoint", "allowance": "allowance"}
"""What every further call would end as, too."""
HOPELESS = ("refused", *STOPS, "cancelled", "not_billed", "unreachable")
"""What is not worth another call."""


Expected = TypeVar("Expected", bound=Contract)


def apply(state: State, event: Event) -> State:
    """The state after an event. What answers after it was abandoned changes nothing any more."""
    before = state.now
    if event.at is not None and event.at > state.now:
        state = replace(state, now=event.at)
    now = state.now
    match event:
        case (
            Answered(move=Ask(id=key))
            | Unanswered(move=Ask(id=key))
            | Examined(move=Examine(id=key))
            | TeamEnded(move=StartTeam(id=key))
        ) if key not in state.flights:
            # It was abandoned: its reservation has been counted as spent.
            return state
        case Prepared():
            state = _prepared(landed(state, PREPARE), event)
        case NotPrepared():
            stopped = state.stop or Stop(event.reason, event.why)
            state = replace(landed(state, PREPARE), stop=stopped)
        case Started():
            state = _started(state, event.move, now)
        case Answered():
            state = _answered(state, event, now)
        case Unanswered():
            state = _unanswered(state, event.move, event.trouble, now)
        case Examined():
            state = _examined(state, event.move, event.draft, now)
        case TeamEnded():
            state = teams.ended(landed(state, event.move.id), event, now)
        case Steered():
            state = steering.steer(state, event, now)
        case NobodyCame():
            state = _nobody_came(state, event.about)
        case CancelAsked():
            order = Order(by=event.by)
            given = Given(number=0, command="cancel", order=order, at=event.at or now)
            stop = Stop("cancelled", event.why)
            state = replace(state, stop=stop, orders=(*state.orders, given))
        case TeamWaits():
            state = teams.waits(state, event.word)
        case WasReset():
            state = _was_reset(state, event.undone, (now - before).total_seconds())
        case Abandoned():
            state = _abandoned(state, event.ids, now)
    return finishing.close(advance(state, now), now)


def _nobody_came(state: State, about: str) -> State:
    """Waiting for people ends closed: no approval is a no, no answer is the best guess."""
    if about == "approval" and state.phase == "approval":
        return replace(state, stop=Stop("declined", "nobody approved the plan in time"))
    if about == "raise" and state.short:
        return replace(
            state, short="", short_since=None, stop=state.stop or Stop("budget", state.short)
        )
    if about in state.work and state.work[about].stage == "person":
        return repair.answered_by_person(state, about, "")
    return state


def _was_reset(state: State, undone: Undone, seconds: float) -> State:
    """What was paid for what is undone stays paid, and its time does not count as work. Said twice
    of one execution, what was said last counts.
    """
    same = [each for each in state.resets if each.execution == undone.execution]
    others = tuple(each for each in state.resets if each not in same)
    instead = tuple(lost for each in same for lost in each.lost)
    counts = state.first_paid is not None and state.waiting_since is None
    return replace(
        state,
        resets=others if undone.withdrawn else (*others, undone),
        ledger=state.ledger.reset(undone.lost, instead),
        waited=state.waited + (seconds if counts else 0.0),
    )


def _prepared(state: State, event: Prepared) -> State:
    brief = event.briefing
    state = replace(state, briefing=brief)
    asked, limits = state.goal.limits, brief.within(state.goal.limits)
    if limits != asked:
        goal = state.goal.model_copy(update={"limits": limits})
        ledger = replace(state.ledger, cap=replace(state.ledger.cap, dollars=limits.dollars))
        note = keeping.lowered(asked, limits)
        state = replace(state, goal=goal, ledger=ledger, notes=(*state.notes, note))
    ledger = state.ledger
    if state.goal.use_models and not verifying.wanted(state):
        # One worst-case synthesis is never spent on work.
        ledger = replace(ledger, kept=keeping.kept(state.goal.limits, event.briefing))
    return replace(state, phase="planning", ledger=ledger)


# ---------------------------------------------------------------- what was started


def _started(state: State, move: Move, now: datetime) -> State:
    match move:
        case Prepare() | Examine():
            return _took_off(state, move, now)
        case Ask():
            state = _took_off(_reserved(state, move, now), move, now)
            state = keeping.say_cheaper(finishing.asked(state, move), move)
            return planning.replanning_started(state) if move.call.kind == "replan" else state
        case StartTeam():
            ledger = state.ledger.reserve(move.id, move.amount)
            state = replace(state, ledger=ledger, first_paid=state.first_paid or now)
            return _took_off(state, move, now)
        case AskPerson():
            return update(state, move.subtask_id, lambda each: replace(each, asked=now))
        case AskRaise():
            return replace(state, short=move.why, short_since=now)
        case Stop():
            return replace(state, stop=state.stop or move)
        case Cut():
            return _cut(state, move, now)
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
    waited = state.waited_until(now)

    def begun(each: Progress) -> Progress:
        if each.started is None:
            each = replace(each, started=now, waited_at_start=waited)
        return replace(each, flight=move.id, called=called or each.called)

    return update(state, move.subtask_id, begun)


# ---------------------------------------------------------------- what came back


def _answered(state: State, event: Answered, now: datetime) -> State:
    call, bill, problem = event.move.call, event.reply.bill, event.reply.problem
    state = landed(state, call.id)
    if call.kind == "reach":
        return outages.found(state)
    # Paid before it is judged: a try and a finding are frozen with what they cost.
    if call.model is not None:
        state = replace(settling.pay(state, call, bill), heard=True, outage=None)
    state = replace(state, transport=without(state.transport, call.purpose))
    # Before the room is forgotten: cut short in it once more, the answer is judged as it is.
    if problem and problem.kind == "truncated" and call.mended not in state.roomier:
        state = replace(state, roomier=(*state.roomier, call.mended))
        return ended_by_person(state, call.subtask_id, now)
    roomier = tuple(each for each in state.roomier if each != call.mended)
    state = replace(state, roomier=roomier)
    broken = state.broken.get(call.mended, ())
    malformed = problem is not None and problem.kind == "malformed"
    if problem and malformed and call.kind not in OWN_REPAIR and len(broken) < policies.REPAIRS:
        state = replace(state, broken={**state.broken, call.mended: (*broken, problem)})
        return ended_by_person(state, call.subtask_id, now)
    state = replace(state, broken=without(state.broken, call.mended))
    state = _take(state, event.move, event.reply.value, problem, now)
    # What a person ended meanwhile is cancelled only if this reply has not completed it.
    return ended_by_person(state, call.subtask_id, now)


def _take(
    state: State, move: Ask, value: Contract | None, problem: Problem | None, now: datetime
) -> State:
    """Hand a reply's value, or its absence, to whoever decides about its kind of call."""
    call = move.call
    why = problem.why if problem else "nothing came back"
    match call.kind:
        case "plan":
            return planning.judge_plan(state, _as(Plan, value), why)
        case "replan":
            return planning.judge_patch(state, _as(Patch, value), why, now)
        case "review":
            return repair.judge_review(state, call.subtask_id, _as(Review, value), why, now)
        case "refine":
            return repair.take_refined(state, call.subtask_id, _as(Refined, value))
        case "digest" | "judge" | "critique" | "verify":
            extra = value if isinstance(value, Digest | Judgement | Critique | Verdicts) else None
            return finishing.take(state, move, extra, why)
        case "synthesize":
            return finishing.take_synthesis(state, _as(Synthesis, value), why)
        case _:
            return repair.judge_work(state, call.subtask_id, _as(Draft, value), problem, now)


def _as(kind: type[Expected], value: Contract | None) -> Expected | None:
    return value if isinstance(value, kind) else None


def _examined(state: State, move: Examine, draft: Draft, now: datetime) -> State:
    cut = state.flights[move.id].cut
    state = landed(state, move.id)
    state = update(state, move.subtask_id, lambda each: replace(each, last=draft))
    if draft.status == "complete":
        return settle(state, move.subtask_id, "complete", "", now)
    if state.work[move.subtask_id].ending:
        return ended_by_person(state, move.subtask_id, now)
    status: FindingStatus = "cancelled" if cut and not draft.content else "failed"
    return settle(state, move.subtask_id, status, draft.why, now)


# ---------------------------------------------------------------- no answer


def _unanswered(state: State, move: Ask, trouble: Trouble, now: datetime) -> State:
    call = move.call
    if state.flights[call.id].cut:
        trouble = replace(trouble, kind="cancelled")
    state = landed(state, call.id)
    if call.kind == "reach":
        return outages.not_found(state, trouble)
    # What the call counts at is what its settling has changed in the ledger.
    settled = _settle_trouble(state, call, trouble)
    if call.model is not None and trouble.kind != "over_reservation":
        settled = settling.unanswered(state, settled, call, trouble.why)
    state = settled
    progress = state.work.get(call.subtask_id)
    # Before any outage: nobody waits for an endpoint for the sake of what a person ended.
    if progress is not None and progress.ending:
        return ended_by_person(state, call.subtask_id, now)
    if trouble.unreached is not None and trouble.kind == "unreachable":
        waiting = outages.begun(state, trouble.unreached, call.tier, now)
        if waiting is not None:
            return waiting
    # Only now is it a failed try: that nobody is there uses none up.
    failures = state.transport.get(call.purpose, 0) + 1
    state = replace(state, transport={**state.transport, call.purpose: failures})
    if trouble.kind in STOPS:
        state = replace(state, stop=state.stop or Stop(STOPS[trouble.kind], trouble.why))
    hopeless = trouble.kind in HOPELESS
    most = policies.TOO_LONG_TRIES if trouble.too_long else policies.TRANSPORT_TRIES
    if not hopeless and failures < most:
        return state
    if call.kind == "work" and trouble.too_long and not hopeless:
        return repair.too_long(state, call.subtask_id, trouble.why, now)
    if call.kind == "work":
        status: FindingStatus = "cancelled" if trouble.kind == "cancelled" else "failed"
        return settle(state, call.subtask_id, status, trouble.why, now)
    if call.kind == "plan":
        return planning.no_plan(state, trouble.why)
    if call.kind == "replan":
        return planning.no_patch(state, trouble.why)
    if call.kind == "synthesize":
        return finishing.no_synthesis(state, trouble.why)
    return _take(state, move, None, Problem(kind="invalid", why=trouble.why), now)


def _settle_trouble(state: State, call: Call, trouble: Trouble) -> State:
    """Settle a call that brought no answer: at the usage that is known, else at the reservation."""
    if call.model is None:
        return state
    ledger, bill = state.ledger, trouble.bill
    if trouble.kind == "over_reservation":
        counted = bill.usage.total - call.max_output
        needed = {**state.needed, f"{call.purpose}/{call.tier}": counted}
        return replace(state, ledger=ledger.release(call.id), needed=needed)
    if trouble.kind in ("possibly_billed", "cancelled") and bill.calls:
        known = bill.usage.total > 0 and bill.dollars is not None
        return settling.pay(
            state, call, bill if known else bill.model_copy(update={"final": False})
        )
    return replace(state, ledger=ledger.release(call.id))


def _abandoned(state: State, ids: tuple[str, ...], now: datetime) -> State:
    why = "cut; it did not answer in time"
    for flight in [state.flights[each] for each in ids if each in state.flights]:
        match flight.move:
            case Ask():
                bill = Bill(calls=1 if flight.move.call.model else 0)
                trouble = Trouble("cancelled", why, bill)
                state = _unanswered(state, flight.move, trouble, now)
            case StartTeam():
                lost = TeamEnded(flight.move, None, why)
                state = teams.ended(landed(state, flight.move.id), lost, now)
            case Examine():
                state = _examined(state, flight.move, Draft(status="failed", why=why), now)
            case Prepare():
                state = landed(state, PREPARE)
    return state
