"""How a run's state changes: `state = apply(state, event, now)`, pure. What to do next is for
`moves`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from orchestrator import finishing, planning, policies, repair, steering, teams
from orchestrator.calls import mended_by, purpose_of
from orchestrator.contracts import (
    Bill,
    Call,
    Contract,
    Draft,
    FindingStatus,
    Plan,
    Problem,
    Synthesis,
)
from orchestrator.events import (
    Abandoned,
    Answered,
    Ask,
    AskPerson,
    AskRaise,
    CancelAsked,
    Cut,
    Event,
    Move,
    NobodyCame,
    Prepared,
    Started,
    StartTeam,
    Steered,
    Stop,
    TeamEnded,
    ToolEnded,
    Trouble,
    Unanswered,
    UseTool,
)
from orchestrator.ledger import Amount
from orchestrator.materials import (
    Critique,
    Digest,
    Judgement,
    Patch,
    Refined,
    Review,
)
from orchestrator.pricing import worst
from orchestrator.settling import add_bill, advance, landed, settle, update, without
from orchestrator.state import Flight, State

OWN_REPAIR = ("plan", "replan")
"""These calls are told all errors at once, malformed or invalid alike."""


Expected = TypeVar("Expected", bound=Contract)


def apply(state: State, event: Event, now: datetime) -> State:
    """The state after an event. What answers after it was abandoned changes nothing any more."""
    match event:
        case (
            Answered(call=Call(id=key))
            | Unanswered(call=Call(id=key))
            | ToolEnded(move=UseTool(id=key))
            | TeamEnded(move=StartTeam(id=key))
        ) if key not in state.flights:
            # It was abandoned: its reservation has been counted as spent.
            return state
        case Prepared():
            state = _prepared(state, event)
        case Started():
            state = _started(state, event.move, now)
        case Answered():
            state = _answered(state, event, now)
        case Unanswered():
            state = _unanswered(state, event.call, event.trouble, now)
        case ToolEnded():
            state = _tool_ended(state, event.move, event.draft, now)
        case TeamEnded():
            state = teams.ended(landed(state, event.move.id), event, now)
        case Steered():
            state = steering.steer(state, event.command, event.order, now)
        case NobodyCame():
            state = _nobody_came(state, event.about)
        case CancelAsked():
            state = replace(state, stop=Stop("cancelled", event.why))
        case Abandoned():
            state = _abandoned(state, event.ids, now)
    return finishing.close(advance(state, now), now)


def _nobody_came(state: State, about: str) -> State:
    """Waiting for people ends closed: no approval is a no, no answer is the best guess."""
    if about == "approval" and state.phase == "approval":
        return replace(state, stop=Stop("declined", "nobody approved the plan in time"))
    if about == "raise" and state.short:
        return replace(state, short="", stop=state.stop or Stop("budget", state.short))
    if about in state.work and state.work[about].stage == "person":
        return repair.answered_by_person(state, about, "")
    return state


def _prepared(state: State, event: Prepared) -> State:
    ledger = state.ledger
    if state.goal.use_models:
        # One worst-case synthesis is never spent on work.
        policy = policies.POLICIES["synthesize"]
        tokens = state.goal.limits.supervisor_context_tokens + policies.PROMPT_OVERHEAD_TOKENS
        price = worst(event.briefing.model(policy.tier), tokens, policy.max_output)
        kept = Amount(price or Amount().dollars, 1, tokens + policy.max_output)
        ledger = replace(ledger, kept=kept)
    return replace(state, briefing=event.briefing, phase="planning", ledger=ledger)


# ---------------------------------------------------------------- what was started


def _started(state: State, move: Move, now: datetime) -> State:
    match move:
        case Ask():
            state = _took_off(_reserved(state, move, now), move, move.call.id, now)
            return planning.replanning_started(state) if move.call.kind == "replan" else state
        case UseTool():
            return _took_off(state, move, move.id, now)
        case StartTeam():
            ledger = state.ledger.reserve(move.id, move.amount)
            state = replace(state, ledger=ledger, first_paid=state.first_paid or now)
            return _took_off(state, move, move.id, now)
        case AskPerson():
            return update(state, move.subtask_id, lambda each: replace(each, asked=True))
        case AskRaise():
            return replace(state, short=move.why)
        case Stop():
            return replace(state, stop=state.stop or move)
        case Cut():
            flights = {
                key: replace(flight, cut=flight.cut or key in move.ids)
                for key, flight in state.flights.items()
            }
            return replace(state, flights=flights)


def _reserved(state: State, move: Ask, now: datetime) -> State:
    if move.call.model is None:
        return state
    ledger = state.ledger.reserve(move.call.id, move.amount, keep=move.keep)
    return replace(state, ledger=ledger, first_paid=state.first_paid or now)


def _took_off(
    state: State, move: Ask | UseTool | StartTeam, flight_id: str, now: datetime
) -> State:
    purpose = purpose_of(flight_id)
    state = replace(
        state,
        flights={**state.flights, flight_id: Flight(move, now)},
        numbers={**state.numbers, purpose: state.numbers.get(purpose, 0) + 1},
    )
    subtask_id = move.call.subtask_id if isinstance(move, Ask) else move.subtask_id
    if not subtask_id:
        return state
    called = move.call.tier if isinstance(move, Ask) and move.call.kind == "work" else None
    return update(
        state,
        subtask_id,
        lambda each: replace(
            each, flight=flight_id, started=each.started or now, called=called or each.called
        ),
    )


# ---------------------------------------------------------------- what came back


def _answered(state: State, event: Answered, now: datetime) -> State:
    call, bill, problem = event.call, event.reply.bill, event.reply.problem
    state = landed(state, call.id)
    if call.model is not None:
        state = replace(state, ledger=state.ledger.settle(call.id, bill))
    if call.subtask_id:
        state = update(state, call.subtask_id, lambda each: add_bill(each, bill))
    state = replace(state, transport=without(state.transport, purpose_of(call.id)))
    broken = state.broken.get(mended_by(call), ())
    malformed = problem is not None and problem.kind == "malformed"
    if problem and malformed and call.kind not in OWN_REPAIR and len(broken) < policies.REPAIRS:
        state = replace(state, broken={**state.broken, mended_by(call): (*broken, problem)})
        return _ended_by_person(state, call.subtask_id, now)
    state = replace(state, broken=without(state.broken, mended_by(call)))
    state = _take(state, call, event.reply.value, problem, now)
    return _ended_by_person(state, call.subtask_id, now)


def _ended_by_person(state: State, subtask_id: str, now: datetime) -> State:
    """A subtask that a person ended, and that nothing completed meanwhile."""
    progress = state.work.get(subtask_id)
    if progress is None or not progress.ending or progress.finding is not None:
        return state
    return settle(state, subtask_id, "cancelled", progress.ending, now)


def _take(
    state: State, call: Call, value: Contract | None, problem: Problem | None, now: datetime
) -> State:
    """Hand a reply's value, or its absence, to whoever decides about its kind of call."""
    why = problem.message if problem else "nothing came back"
    match call.kind:
        case "plan":
            return planning.judge_plan(state, _as(Plan, value), why)
        case "replan":
            return planning.judge_patch(state, _as(Patch, value), why, now)
        case "review":
            return repair.judge_review(state, call.subtask_id, _as(Review, value), why, now)
        case "refine":
            return repair.take_refined(state, call.subtask_id, _as(Refined, value))
        case "digest" | "judge" | "critique":
            extra = value if isinstance(value, Digest | Judgement | Critique) else None
            return finishing.take(state, call, extra, why)
        case "synthesize":
            return finishing.take_synthesis(state, _as(Synthesis, value), why)
        case _:
            return repair.judge_work(state, call.subtask_id, _as(Draft, value), problem, now)


def _as(kind: type[Expected], value: Contract | None) -> Expected | None:
    return value if isinstance(value, kind) else None


def _tool_ended(state: State, move: UseTool, draft: Draft, now: datetime) -> State:
    cut = state.flights[move.id].cut
    state = landed(state, move.id)
    state = update(state, move.subtask_id, lambda each: replace(each, last=draft))
    if draft.status == "complete":
        return settle(state, move.subtask_id, "complete", "", now)
    if state.work[move.subtask_id].ending:
        return _ended_by_person(state, move.subtask_id, now)
    status: FindingStatus = "cancelled" if cut and not draft.content else "failed"
    return settle(state, move.subtask_id, status, draft.reason, now)


# ---------------------------------------------------------------- no answer


def _unanswered(state: State, call: Call, trouble: Trouble, now: datetime) -> State:
    state = _settle_trouble(landed(state, call.id), call, trouble)
    progress = state.work.get(call.subtask_id)
    if progress is not None and progress.ending:
        return _ended_by_person(state, call.subtask_id, now)
    purpose = purpose_of(call.id)
    failures = state.transport.get(purpose, 0) + 1
    state = replace(state, transport={**state.transport, purpose: failures})
    if trouble.kind == "stopping":
        state = replace(state, stop=state.stop or Stop("endpoint", trouble.message))
    hopeless = trouble.kind in ("refused", "stopping", "cancelled", "not_billed")
    if not hopeless and failures < policies.TRANSPORT_TRIES:
        return state
    if call.kind == "work":
        status: FindingStatus = "cancelled" if trouble.kind == "cancelled" else "failed"
        return settle(state, call.subtask_id, status, trouble.message, now)
    if call.kind == "plan":
        return planning.no_plan(state, trouble.message)
    if call.kind == "replan":
        return planning.no_patch(state, trouble.message)
    if call.kind == "synthesize":
        return finishing.no_synthesis(state, trouble.message)
    return _take(state, call, None, Problem(kind="invalid", message=trouble.message), now)


def _settle_trouble(state: State, call: Call, trouble: Trouble) -> State:
    """Settle a call that brought no answer: at the usage that is known, else at the reservation."""
    if call.model is None:
        return state
    ledger, bill = state.ledger, trouble.bill
    reserved = ledger.reserved[call.id]
    if trouble.kind == "over_reservation":
        amount = Amount(bill.dollars or reserved.dollars, 1, bill.usage.total)
        needed = {**state.needed, f"{purpose_of(call.id)}/{call.tier}": amount}
        return replace(state, ledger=ledger.release(call.id), needed=needed)
    if bill.calls and bill.usage.total and bill.dollars is not None:
        state = replace(state, ledger=ledger.settle(call.id, bill))
        if call.subtask_id:
            return update(state, call.subtask_id, lambda each: add_bill(each, bill))
        return state
    if trouble.kind in ("possibly_billed", "cancelled") and bill.calls:
        # A model without a price reserves no dollars: that it may have cost some stays known.
        whole = bill.model_copy(update={"dollars": reserved.dollars if call.model.prices else None})
        state = replace(state, ledger=ledger.settle_unknown(call.id, whole))
        if call.subtask_id:
            return update(state, call.subtask_id, lambda each: add_bill(each, whole))
        return state
    return replace(state, ledger=ledger.release(call.id))


def _abandoned(state: State, ids: tuple[str, ...], now: datetime) -> State:
    for flight in [state.flights[each] for each in ids if each in state.flights]:
        if isinstance(flight.move, Ask):
            trouble = Trouble("cancelled", "cut; it did not answer in time", Bill(calls=1))
            state = _unanswered(state, flight.move.call, trouble, now)
        elif isinstance(flight.move, StartTeam):
            lost = TeamEnded(flight.move, None, "cut; it did not answer in time")
            state = teams.ended(landed(state, flight.move.id), lost, now)
        else:
            draft = Draft(status="failed", reason="cut; it did not answer in time")
            state = _tool_ended(state, flight.move, draft, now)
    return state
