"""How a run's state changes: `state = apply(state, event, now)`, pure. What to do next is for
`moves`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, TypeGuard

from orchestrator import policies
from orchestrator.contracts import (
    Bill,
    Call,
    Draft,
    FindingStatus,
    Plan,
    Problem,
    Reply,
    RoleTier,
    Subtask,
    Synthesis,
    Try,
)
from orchestrator.ledger import Amount
from orchestrator.pricing import worst
from orchestrator.settling import add_bill, advance, landed, settle, update, without
from orchestrator.state import (
    Abandoned,
    Answered,
    Ask,
    CancelAsked,
    Cut,
    Event,
    Flight,
    Move,
    Prepared,
    Progress,
    Started,
    State,
    Stop,
    ToolEnded,
    Trouble,
    Unanswered,
    UseTool,
)

CLIMB: dict[RoleTier, RoleTier] = {"haiku": "sonnet", "sonnet": "opus"}


def apply(state: State, event: Event, now: datetime) -> State:
    """The state after an event. What answers after it was abandoned changes nothing any more."""
    match event:
        case (
            Answered(call=Call(id=key))
            | Unanswered(call=Call(id=key))
            | ToolEnded(move=UseTool(id=key))
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
            cut = state.flights[event.move.id].cut
            state = landed(state, event.move.id)
            state = _judge_tool(state, event.move.subtask_id, event.draft, now, cut=cut)
        case CancelAsked():
            state = replace(state, stop=Stop("cancelled", event.why))
        case Abandoned():
            state = _abandoned(state, event.ids, now)
    return advance(state, now)


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


def _started(state: State, move: Move, now: datetime) -> State:
    match move:
        case Ask():
            return _took_off(_reserved(state, move, now), move, move.call.subtask_id, now)
        case UseTool():
            return _took_off(state, move, move.subtask_id, now)
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
    ledger = state.ledger.reserve(move.call.id, move.amount, keep=move.call.kind != "synthesize")
    return replace(state, ledger=ledger, first_paid=state.first_paid or now)


def _took_off(state: State, move: Ask | UseTool, subtask_id: str, now: datetime) -> State:
    flight_id = move.call.id if isinstance(move, Ask) else move.id
    purpose = purpose_of(flight_id)
    state = replace(
        state,
        flights={**state.flights, flight_id: Flight(move, now)},
        numbers={**state.numbers, purpose: state.numbers.get(purpose, 0) + 1},
    )
    if subtask_id:
        return update(
            state,
            subtask_id,
            lambda each: replace(each, flight=flight_id, started=each.started or now),
        )
    return state


def purpose_of(flight_id: str) -> str:
    """`work-t3` of `work-t3-2`: what an activity is for, without its number."""
    return flight_id.rpartition("-")[0]


# ---------------------------------------------------------------- answers


def _answered(state: State, event: Answered, now: datetime) -> State:
    call, bill = event.call, event.reply.bill
    state = landed(state, call.id)
    if call.model is not None:
        state = replace(state, ledger=state.ledger.settle(call.id, bill))
    state = replace(state, transport=without(state.transport, purpose_of(call.id)))
    if call.kind == "plan":
        return _judge_plan(state, event.reply)
    if call.kind == "synthesize":
        return _judge_synthesis(state, event.reply)
    state = update(state, call.subtask_id, lambda each: add_bill(each, bill))
    return _judge_work(state, call, event.reply, now)


def _judge_plan(state: State, reply: Reply[Any]) -> State:
    state = replace(state, plan_tries=state.plan_tries + 1)
    if isinstance(reply.value, Plan):
        return _adopt(state, reply.value)
    errors = tuple(reply.problem.message.splitlines()) if reply.problem else ("no plan came back",)
    state = replace(state, plan_errors=errors)
    return _fall_back(state) if state.plan_tries > policies.REPAIRS else state


def _fall_back(state: State) -> State:
    """A single subtask that carries the whole goal."""
    role = next((card for card in state.brief.roles if card.name == policies.FALLBACK_ROLE), None)
    if role is None:
        return replace(state, stop=Stop("endpoint", "no valid plan, and no role can take the goal"))
    subtask = Subtask(
        id="t1",
        title="The whole goal",
        instruction=state.goal.text,
        inputs=tuple(pinned.name for pinned in state.brief.inputs),
        role=role.name,
    )
    note = (
        f"The planner gave no valid plan ({'; '.join(state.plan_errors)}): one agent took it all."
    )
    state = replace(state, notes=(*state.notes, note))
    return _adopt(state, Plan(goal=state.goal.text, subtasks=(subtask,)))


def _adopt(state: State, plan: Plan) -> State:
    work = {}
    for subtask in plan.subtasks:
        role = state.brief.role(subtask.role)
        tier: RoleTier = "none" if role.tier == "none" else subtask.tier or role.tier
        work[subtask.id] = Progress(subtask, tier=role.tier if role.fixed_tier else tier)
    return replace(state, plan=plan, plan_errors=(), work=work, phase="working")


def _judge_work(state: State, call: Call, reply: Reply[Any], now: datetime) -> State:
    progress = state.work[call.subtask_id]
    draft = reply.value if isinstance(reply.value, Draft) else None
    if reply.problem and reply.problem.kind == "truncated" and not progress.doubled:
        return update(state, call.subtask_id, lambda each: replace(each, doubled=True))
    if _mendable(reply.problem, progress.broken):
        broken = (*progress.broken, reply.problem)
        return update(state, call.subtask_id, lambda each: replace(each, broken=broken))
    verdict, why = _verdict(state, draft, reply)
    tried = Try(number=len(progress.tries) + 1, tier=call.tier, verdict=verdict, why=why)
    progress = replace(progress, tries=(*progress.tries, tried), last=draft or progress.last)
    state = update(state, call.subtask_id, lambda _: progress)
    if verdict == "accepted":
        return settle(state, call.subtask_id, "complete", "", now)
    if verdict == "escalated":
        return settle(state, call.subtask_id, "escalated", why, now)
    if len(progress.tries) >= state.goal.limits.tries_per_subtask:
        return settle(state, call.subtask_id, "failed", why, now)
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    tier = progress.tier if fixed else CLIMB.get(progress.tier, progress.tier)
    progress = replace(progress, tier=tier, reason=why, broken=(), doubled=False, needed=Amount())
    return update(state, call.subtask_id, lambda _: progress)


def _mendable(problem: Problem | None, before: tuple[Problem, ...]) -> TypeGuard[Problem]:
    """Whether an answer of the wrong shape goes back to the same model to be mended."""
    return problem is not None and problem.kind == "malformed" and len(before) < policies.REPAIRS


def _verdict(state: State, draft: Draft | None, reply: Reply[Any]) -> tuple[str, str]:
    """`accepted`, `escalated`, or the kind of problem; and why."""
    if draft is None:
        problem = reply.problem
        return (problem.kind, problem.message) if problem else ("malformed", "nothing came back")
    if draft.status == "failed":
        return "failed", draft.reason
    if draft.status == "escalated" and draft.escalation:
        reason = draft.escalation.reason
        # A stronger model can cure only doubt.
        kind = "confidence_too_low" if reason == "confidence_too_low" else "escalated"
        return kind, f"{reason}: {draft.escalation.message}"
    if draft.verdicts:
        return "failed_checks", "; ".join(draft.verdicts)
    least = state.goal.limits.min_confidence
    if draft.confidence < least:
        return "confidence_too_low", f"confidence {draft.confidence} is below {least}"
    return "accepted", ""


def _judge_tool(state: State, subtask_id: str, draft: Draft, now: datetime, *, cut: bool) -> State:
    state = update(state, subtask_id, lambda each: replace(each, last=draft))
    if draft.status == "complete":
        return settle(state, subtask_id, "complete", "", now)
    status: FindingStatus = "cancelled" if cut and not draft.content else "failed"
    return settle(state, subtask_id, status, draft.reason, now)


def _judge_synthesis(state: State, reply: Reply[Any]) -> State:
    if isinstance(reply.value, Synthesis):
        return replace(state, synthesis=reply.value)
    if _mendable(reply.problem, state.synthesis_broken):
        return replace(state, synthesis_broken=(*state.synthesis_broken, reply.problem))
    why = reply.problem.message if reply.problem else "nothing came back"
    return _template_instead(state, why)


def _template_instead(state: State, why: str) -> State:
    if state.synthesis_by_template:
        empty = Synthesis(answer="", notes=(f"No synthesis could be made: {why}",))
        return replace(state, synthesis=empty)
    note = f"The model's synthesis failed ({why}); a template merged the findings."
    return replace(state, synthesis_by_template=True, notes=(*state.notes, note))


# ---------------------------------------------------------------- no answer


def _unanswered(state: State, call: Call, trouble: Trouble, now: datetime) -> State:
    state = landed(state, call.id)
    state = _settle_trouble(state, call, trouble)
    purpose = purpose_of(call.id)
    failures = state.transport.get(purpose, 0) + 1
    state = replace(state, transport={**state.transport, purpose: failures})
    if trouble.kind == "stopping":
        state = replace(state, stop=state.stop or Stop("endpoint", trouble.message))
    hopeless = trouble.kind in ("refused", "stopping", "cancelled", "not_billed")
    if not hopeless and failures < policies.TRANSPORT_TRIES:
        return state
    if call.kind == "plan":
        state = replace(state, plan_errors=(trouble.message,))
        return state if state.stop else _fall_back(state)
    if call.kind == "synthesize":
        return _template_instead(state, trouble.message)
    status: FindingStatus = "cancelled" if trouble.kind == "cancelled" else "failed"
    return settle(state, call.subtask_id, status, trouble.message, now)


def _settle_trouble(state: State, call: Call, trouble: Trouble) -> State:
    """Settle a call that brought no answer; what nobody knows counts at the full reservation."""
    if call.model is None:
        return state
    ledger, bill = state.ledger, trouble.bill
    reserved = ledger.reserved[call.id]
    if trouble.kind == "over_reservation":
        needed = Amount(bill.dollars or reserved.dollars, 1, bill.usage.total)
        state = replace(state, ledger=ledger.release(call.id))
        if call.subtask_id:
            state = update(state, call.subtask_id, lambda each: replace(each, needed=needed))
        return state
    if trouble.kind in ("possibly_billed", "cancelled") and bill.calls:
        # A model without a price reserves no dollars: that it may have cost some stays known.
        bill = bill.model_copy(update={"dollars": reserved.dollars if call.model.prices else None})
        state = replace(state, ledger=ledger.settle_unknown(call.id, bill))
        if call.subtask_id:
            return update(state, call.subtask_id, lambda each: add_bill(each, bill))
        return state
    return replace(state, ledger=ledger.release(call.id))


def _abandoned(state: State, ids: tuple[str, ...], now: datetime) -> State:
    for flight in [state.flights[each] for each in ids if each in state.flights]:
        if isinstance(flight.move, Ask):
            trouble = Trouble("cancelled", "cut; it did not answer in time", Bill(calls=1))
            state = _unanswered(state, flight.move.call, trouble, now)
        else:
            draft = Draft(status="failed", reason="cut; it did not answer in time")
            state = landed(state, flight.move.id)
            state = _judge_tool(state, flight.move.subtask_id, draft, now, cut=True)
    return state
