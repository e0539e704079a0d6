"""How a run's state changes: `state = apply(state, event)`. Pure; `next_moves` says what to do
next.

The run's clock is `state.now`. It moves only with the moments that events carry, so that the same
events lead to the same state wherever and whenever they are taken in.
"""

from __future__ import annotations

from datetime import timedelta

from holdfast.calling import finishing, gathering, verifying, warming
from holdfast.calling.schedule import options_of
from holdfast.calls import KINDS
from holdfast.contracts import Given, Lost, Order, Undone, policies, seal_word
from holdfast.contracts.replacing import replace
from holdfast.rules import (
    agents,
    approvals,
    early,
    keeping,
    maps,
    notices,
    passing,
    phases,
    planning,
    repair,
    steering,
    teams,
)
from holdfast.rules.returning import PREPARE, abandon, take_draft, take_reply, take_trouble
from holdfast.rules.timers import time_unserved
from holdfast.state.edits import land, stop_for, update
from holdfast.state.events import (
    Abandoned,
    AgentEnded,
    AnswerBegun,
    Answered,
    CancelAsked,
    Event,
    Examined,
    MapEnded,
    NobodyCame,
    Notified,
    NotPrepared,
    PlanGrew,
    Prepared,
    Started,
    Steered,
    TeamEnded,
    TeamWaits,
    TimePassed,
    Unanswered,
    WasReset,
)
from holdfast.state.moves import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Examine,
    Flying,
    Hold,
    Move,
    Notify,
    PassOver,
    Prepare,
    StartAgent,
    StartMap,
    StartTeam,
    Stop,
    TellAbove,
)
from holdfast.state.parts import Flight, Progress
from holdfast.state.run import State
from holdfast.state.settling import leave_as_is

NOT_WITHDRAWN = (
    "Somebody told this run by a Signal that a reset of it never took place, and could not show it:"
    " that was ignored, and what the reset lost stays in the price."
)

WITHOUT_PRICE = (
    "A Signal told this run that a reset of it lost a call of unknown price, although each of its"
    " models has one: that call is not in the price."
)


def apply(state: State, event: Event) -> State:
    """Return the state after an event; late results of what was abandoned change nothing."""
    before = state.now
    if event.at is not None and event.at > state.now:
        # A cancel ends the run: nothing that comes after it hangs on how late it was heard. And a
        # reset counts all the time before it by itself.
        told = isinstance(event, CancelAsked | WasReset)
        late = timedelta() if told else time_unserved(state, event.at)
        state = phases.move_clock(state, event.at, late)
    if _is_late(state, event):
        return state
    state = passing.note_call(state, event)
    match event:
        case Answered() | Unanswered() | AgentEnded() if event.move.id in state.early.back:
            state = early.settle(state, event)
        case Prepared():
            state = _prepare(land(state, PREPARE), event)
        case NotPrepared():
            state = stop_for(land(state, PREPARE), event.reason, event.why)
        case Started():
            state = _start(state, event.move)
        case Answered():
            state = take_reply(state, event)
        case Unanswered():
            state = take_trouble(state, event.move, event.trouble)
        case Examined():
            state = take_draft(state, event.move, event.draft)
        case TeamEnded():
            state = teams.end_team(land(state, event.move.id), event)
        case AgentEnded():
            state = agents.end_segment(land(state, event.move.id), event)
        case MapEnded():
            state = maps.end_segment(land(state, event.move.id), event)
        case Steered():
            state = steering.steer(state, event)
        case NobodyCame():
            state = _nobody_came(state, event.about)
        case CancelAsked():
            state = _cancel(state, event)
        case TeamWaits():
            state = teams.note_standstill(state, event.word)
        case AnswerBegun(call_id=call_id):
            state = warming.note_begun(state, call_id)
        case WasReset():
            state = _reset(state, event.undone, (state.now - before).total_seconds())
        case PlanGrew():
            state = early.grow(state, event)
        case TimePassed(ids=ids):
            state = _mark_half_over(state, ids)
        case Abandoned():
            state = abandon(state, event.ids)
        case Notified():
            state = notices.land(state, event)
    return finishing.close(phases.advance(state))


def _is_late(state: State, event: Event) -> bool:
    """True for the result of what was abandoned, whose reservation counts as spent; and for what
    came of a notice once the report is made.
    """
    if isinstance(event, Notified):
        return state.phase == "closed"
    if not isinstance(event, Answered | Unanswered | Examined | TeamEnded | AgentEnded | MapEnded):
        return False
    return event.move.id not in state.flights


def _mark_half_over(state: State, ids: tuple[str, ...]) -> State:
    over = {
        key: replace(flight, half_over=flight.half_over or key in ids)
        for key, flight in state.flights.items()
    }
    return replace(state, flights=over) if ids else state


def _cancel(state: State, event: CancelAsked) -> State:
    given = Given(number=0, command="cancel", order=Order(by=event.by), at=event.at or state.now)
    return replace(state, stop=Stop("cancelled", event.why), orders=(*state.orders, given))


def _nobody_came(state: State, about: str) -> State:
    """End a wait for people: without approval the answer is no, to a plan as to a tool call;
    without an answer the agent makes its best guess, without a decision a subtask stays as it is.
    """
    if about == "approval" and state.phase == "approval":
        return replace(state, stop=Stop("declined", "nobody approved the plan in time"))
    if about == "raise" and state.short:
        stop = state.stop or Stop("budget", state.short, state.short_of, state.short_least)
        return replace(state, short="", short_since=None, stop=stop)
    if about in state.work and state.work[about].stage == "person":
        if state.work[about].subtask.map is not None:
            return maps.take_answer(state, about, "")
        return repair.take_answer(state, about, "")
    if about in state.work and state.work[about].stage == "approval":
        return approvals.expire(state, about)
    if about in state.work and state.work[about].undecided:
        hours = policies.PERSON_PATIENCE.total_seconds() / 3_600
        note = f"Nobody decided within {hours:.0f} hours what becomes of {about}: it stays so."
        return leave_as_is(replace(state, notes=(*state.notes, note)), about)
    return state


def _reset(state: State, undone: Undone, seconds: float) -> State:
    """Keep what was paid for what is undone, and do not count its time as work. The same loss, told
    twice of one execution, counts once.
    """
    if undone.withdrawn:
        return _withdraw_reset(state, undone)
    if not all(_may_have_asked(state, each.id) for each in undone.lost):
        return state
    state, undone = _credible(state, undone)
    counts = state.first_paid is not None and state.waiting_since is None
    return replace(
        state,
        resets=(*state.resets, undone),
        ledger=state.ledger.add_lost(_lost_only_here(undone, state.resets)),
        waited=state.waited + (seconds if counts else 0.0),
    )


def _credible(state: State, undone: Undone) -> tuple[State, Undone]:
    """Return what the run can believe: the reset came after the run's start; and where each model
    has a price, a call without one would make the whole bill unknown for ever.
    """
    lost = tuple(each for each in undone.lost if each.bill.dollars is not None)
    if not state.goal.unpriced and lost != undone.lost:
        undone = undone.model_copy(update={"lost": lost})
        if WITHOUT_PRICE not in state.notes:
            state = replace(state, notes=(*state.notes, WITHOUT_PRICE))
    return state, undone.model_copy(update={"at": max(undone.at, state.started)})


def _withdraw_reset(state: State, undone: Undone) -> State:
    """Undo what was told under a seal, if its word is shown. Without it everything told stays in
    the bill: anybody may have sent the withdrawal.
    """
    seal = seal_word(undone.word)
    told = next((each for each in state.resets if each.seal == seal), None)
    if told is None:
        noted = NOT_WITHDRAWN in state.notes
        return state if noted else replace(state, notes=(*state.notes, NOT_WITHDRAWN))
    others = tuple(each for each in state.resets if each is not told)
    return replace(
        state, resets=others, ledger=state.ledger.take_back(_lost_only_here(told, others))
    )


def _lost_only_here(undone: Undone, others: tuple[Undone, ...]) -> tuple[Lost, ...]:
    """Return the losses that no other message about the same execution names."""
    same = [each.lost for each in others if each.execution == undone.execution]
    return tuple(lost for lost in undone.lost if not any(lost in each for each in same))


def _may_have_asked(state: State, id: str) -> bool:
    """True if a call or team of this id can be one of this run."""
    purpose, _, number = id.rpartition("-")
    kind = purpose.partition("-")[0]
    own = number.isdecimal() and kind in (*KINDS, "repair", "ping", "agent", "map")
    return own or id.startswith(f"{state.run_id}.")


def _prepare(state: State, event: Prepared) -> State:
    brief = event.briefing
    state = replace(state, briefing=brief)
    asked, limits = state.goal.limits, brief.within(state.goal.limits)
    if limits != asked:
        goal = state.goal.model_copy(update={"limits": limits})
        ledger = replace(state.ledger, cap=replace(state.ledger.cap, dollars=limits.dollars))
        note = keeping.say_lowered(asked, limits)
        state = replace(state, goal=goal, ledger=ledger, notes=(*state.notes, note))
    ledger = state.ledger
    if state.goal.use_models and not verifying.is_wanted(state):
        # One worst-case synthesis is never spent on work.
        ledger = replace(ledger, kept=keeping.kept_amount(state.goal.limits, event.briefing))
    state = replace(state, phase="planning", ledger=ledger)
    ready = gathering.ready_plan(state)
    # What prepares a run has found it valid.
    return state if ready is None or state.stop else planning.judge_plan(state, ready, "")


# ---------------------------------------------------------------- carrying out moves


def _start(state: State, move: Move) -> State:
    if isinstance(move, Ask | StartAgent) and move.subtask_id and state.phase == "planning":
        state = early.begin(state, move)
    match move:
        case Prepare() | Examine():
            return _take_off(state, move)
        case Ask():
            state = _take_off(_reserve(state, move), move)
            state = keeping.note_cheaper_call(finishing.note_cut(state, move), move)
            return planning.count_replan(state) if move.call.kind == "replan" else state
        case StartTeam() | StartAgent() | StartMap():
            ledger = state.ledger.reserve(move.id, move.amount)
            state = replace(state, ledger=ledger, first_paid=state.first_paid or state.now)
            if isinstance(move, StartAgent):
                state = keeping.note_cheaper(state, move.subtask_id, move.goal.model.tier)
            return _take_off(state, move)
        case AskPerson():
            return update(state, move.subtask_id, lambda each: replace(each, asked=state.now))
        case AskRaise():
            state = replace(state, short_of=move.short_of, short_least=move.least)
            return replace(state, short=move.why, short_since=state.now)
        case PassOver():
            return passing.hand_to_second(state, move)
        case Stop():
            return replace(state, stop=state.stop or move)
        case Cut():
            return _cut(state, move)
        case Hold():
            held = {key: replace(state.flights[key], held=True) for key in move.ids}
            return replace(state, flights={**state.flights, **held})
        case TellAbove():
            return replace(state, told_above=move.word)
        case Notify():
            return notices.take_off(state, move)


def _cut(state: State, move: Cut) -> State:
    number = state.cuts + 1
    flights = {
        key: replace(flight, cut=number, cut_at=state.now) if key in move.ids else flight
        for key, flight in state.flights.items()
    }
    return replace(state, flights=flights, cuts=number)


def _reserve(state: State, move: Ask) -> State:
    if move.call.model is None:
        return state
    ledger = state.ledger.reserve(move.call.id, move.amount, keep=move.keep)
    return replace(state, ledger=ledger, first_paid=state.first_paid or state.now)


def _take_off(state: State, move: Flying) -> State:
    state = replace(
        state,
        flights={**state.flights, move.id: Flight(move, state.now, options_of(state, move))},
        numbers={**state.numbers, move.purpose: state.next_number(move.purpose)},
    )
    if not move.subtask_id:
        return state
    called = move.call.tier if isinstance(move, Ask) and move.call.kind == "work" else None
    called = move.goal.model.tier if isinstance(move, StartAgent) else called
    called = move.goal.models[0].tier if isinstance(move, StartMap) else called
    waited = state.waited_until(state.now)

    def begun(each: Progress) -> Progress:
        if each.started is None:
            each = replace(each, started=state.now, waited_at_start=waited)
        return replace(each, flight=move.id, called=called or each.called)

    return update(state, move.subtask_id, begun)
