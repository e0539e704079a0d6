"""Freezing findings, and what that means for dependents and for the phase of the run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from orchestrator.contracts import Bill, Call, Draft, Finding, FindingStatus, NoAnswer, Try
from orchestrator.events import Stop
from orchestrator.rules import graph, noted, verifying
from orchestrator.rules.state import Progress, Setback, State, passes_on

Held = TypeVar("Held")


def settle(state: State, subtask_id: str, status: FindingStatus, why: str, now: datetime) -> State:
    """Freeze a subtask's finding. When what failed matters, the plan is to be changed."""
    progress = state.work[subtask_id]
    draft = progress.last or Draft()
    finding = Finding(
        subtask_id=subtask_id,
        status=status,
        content=draft.content,
        data=draft.data,
        confidence=draft.confidence if status in ("complete", "escalated") else 0,
        sources=(*draft.sources, *progress.answers),
        why=why,
        escalation=draft.escalation if status == "escalated" else None,
        tries=progress.tries,
        unanswered=progress.unanswered,
        model=progress.model,
        usage=progress.usage,
        dollars=progress.paid.dollars,
        assumed=progress.paid.assumed,
        started=progress.started,
        finished=now,
        waited=state.waited_until(now) - progress.waited_at_start if progress.started else 0.0,
    )
    state = update(state, subtask_id, lambda each: replace(each, finding=finding, flight=""))
    # What was too much in one piece is planned anew, though what there is of it could be passed on.
    split = finding.escalation is not None and finding.escalation.reason == "timeout"
    if (passes_on(finding) and not split) or not _matters(state, subtask_id):
        return state
    setback = Setback(subtask_id, f"{status_words(status)}: {why}")
    replanning = replace(
        state.replanning, setbacks=(*state.replanning.setbacks, setback), errors=()
    )
    return replace(state, replanning=replanning)


def _matters(state: State, subtask_id: str) -> bool:
    """Whether a replan is worth it: others need the subtask, or nothing else is left to answer."""
    assert state.plan is not None
    if not state.goal.use_models or state.stop is not None or state.work[subtask_id].ending:
        return False
    if state.replanning.count >= state.goal.limits.replans:
        return False
    needed = any(
        not state.settled(each) for each in graph.dependents(state.plan.subtasks, subtask_id)
    )
    return needed or (state.all_settled and not state.usable)


def skip(state: State, subtask_id: str, why: str, now: datetime) -> State:
    """A subtask that never ran, and why."""
    finding = Finding(subtask_id=subtask_id, status="skipped", why=why, finished=now)
    return update(state, subtask_id, lambda each: replace(each, finding=finding))


def skip_blocked(state: State, now: datetime) -> State:
    """Skip what needs a finding that will not come; what a replan may still save waits."""
    assert state.plan is not None
    held = held_back(state)
    # Until nothing changes: what is skipped takes along what needs it, wherever that stands.
    blocked = True
    while blocked:
        blocked = False
        for key, progress in state.work.items():
            if progress.finding is not None or progress.flight or key in held:
                continue
            cause = next((each for each in progress.subtask.depends_on if _lost(state, each)), "")
            if cause:
                finding = state.work[cause].finding
                assert finding is not None
                state = skip(
                    state, key, f"needs {cause}, which {status_words(finding.status)}", now
                )
                blocked = True
    return state


def _lost(state: State, subtask_id: str) -> bool:
    finding = state.work[subtask_id].finding
    return finding is not None and not passes_on(finding)


def held_back(state: State) -> tuple[str, ...]:
    """What depends on a setback that a replan is about to deal with."""
    assert state.plan is not None
    held: dict[str, None] = {}
    for setback in state.replanning.setbacks:
        held |= dict.fromkeys(graph.dependents(state.plan.subtasks, setback.subtask_id))
    return tuple(held)


def status_words(status: FindingStatus) -> str:
    """`failed`, `was skipped`, … as the end of a sentence."""
    return {"failed": "failed", "escalated": "gave it back"}.get(status, f"was {status}")


def advance(state: State, now: datetime) -> State:
    """Move to the next phase when this one has nothing left to do."""
    if state.phase == "working":
        if state.stop:
            # Nobody will replan: what was held back for that is blocked like the rest.
            state = replace(state, replanning=replace(state.replanning, setbacks=()))
        state = skip_blocked(state, now)
    state = _clock(state, now)
    if state.flights or state.phase == "closed":
        return state
    if state.stop and state.phase in ("preparing", "planning", "approval"):
        return replace(state, phase="closed", finished=now)
    if state.phase == "working":
        return _end_of_work(state, now)
    return state


def _end_of_work(state: State, now: datetime) -> State:
    if state.stop:
        state = leave_undone(state, state.stop, now)
    if not state.all_settled or state.replanning.setbacks:
        return state
    if state.stopped_by("cancelled") or not state.usable:
        return replace(state, phase="closed", finished=now)
    complete = any(finding.status == "complete" for finding in state.findings)
    # Nothing complete: what there is is shown, and nothing is paid for it.
    free = not complete or not state.goal.use_models or state.stopped_by("endpoint", "allowance")
    # A template's answer that a model verifies is not written anew by one.
    free = free or verifying.wanted(state)
    finishing = replace(state.finishing, by_template=state.finishing.by_template or free)
    return verifying.chosen(replace(state, phase="synthesizing", finishing=finishing))


def _clock(state: State, now: datetime) -> State:
    """The deadline stands still while nothing but a person or a lost endpoint keeps the run, or a
    team that says so of itself.
    """
    asked = any(each.stage == "person" and not each.finding for each in state.work.values())
    kept = state.phase == "approval" or state.paused or state.short or asked or state.out_of_reach
    waits = bool(kept or state.waiting_teams) and not state.at_work and state.phase != "closed"
    if waits and state.waiting_since is None:
        return replace(state, waiting_since=now)
    if not waits and state.waiting_since is not None:
        return replace(_waited(state, state.waiting_since, now), waiting_since=None)
    return state


def _waited(state: State, since: datetime, now: datetime) -> State:
    """The state with a wait that is over; before the first paid call no deadline runs."""
    paid = max(since, min(state.first_paid or now, now))
    before = state.waited_before + (paid - since).total_seconds()
    return replace(state, waited=state.waited + (now - paid).total_seconds(), waited_before=before)


def leave_undone(state: State, stop: Stop, now: datetime) -> State:
    """Settle what a stop left over; what was begun keeps its bill and what it has so far."""
    for key, progress in state.work.items():
        if state.settled(key):
            continue
        if progress.stage == "review":
            # The draft passed every check; that nobody read it is said in its last try.
            state = accept(state, key, f"not reviewed: {stop.why}", now)
        elif progress.started:
            why = f"{progress.why}; then {stop.why}" if progress.why else stop.why
            state = settle(state, key, "failed", f"not finished: {why}", now)
        else:
            state = skip(state, key, f"not started: {stop.why}", now)
    return state


def ended_by_person(state: State, subtask_id: str, now: datetime) -> State:
    """A subtask that a person ended, and that nothing completed meanwhile."""
    progress = state.work.get(subtask_id)
    if progress is None or not progress.ending or progress.finding is not None:
        return state
    return settle(state, subtask_id, "cancelled", progress.ending, now)


def accept(state: State, subtask_id: str, why: str, now: datetime) -> State:
    """The last draft is the finding."""
    state = update(state, subtask_id, lambda each: tried(each, "accepted", why))
    return settle(state, subtask_id, "complete", "", now)


def tried(progress: Progress, verdict: str, why: str) -> Progress:
    """Record one go at a subtask and what was said of it."""
    dollars, assumed = _since(progress)
    last = Try(
        number=len(progress.tries) + 1,
        tier=progress.called,
        verdict=verdict,
        why=why,
        dollars=dollars,
        assumed=assumed,
        role=progress.subtask.role if progress.former else "",
    )
    return replace(progress, tries=(*progress.tries, last))


def _since(progress: Progress) -> tuple[Decimal | None, Decimal]:
    """What was paid since the last try, less calls without an answer; and what of it is assumed."""
    before: tuple[Try | NoAnswer, ...] = (*progress.tries, *progress.unanswered)
    assumed = progress.paid.assumed - sum((each.assumed for each in before), Decimal(0))
    known = [each.dollars for each in before if each.dollars is not None]
    if progress.paid.dollars is None or len(known) < len(before) or not progress.paid.calls:
        return None, assumed
    return progress.paid.dollars - sum(known, Decimal(0)), assumed


def update(state: State, subtask_id: str, change: Callable[[Progress], Progress]) -> State:
    return replace(state, work={**state.work, subtask_id: change(state.work[subtask_id])})


def landed(state: State, flight_id: str) -> State:
    """An activity is no longer in flight."""
    subtask_id = state.flights[flight_id].move.subtask_id
    state = replace(
        state,
        flights=without(state.flights, flight_id),
        standing=without(state.standing, flight_id),
    )
    if subtask_id:
        return update(state, subtask_id, lambda each: replace(each, flight=""))
    return state


def pay(state: State, call: Call, bill: Bill) -> State:
    """Settle a call in the ledger and with its subtask. A bill that is not final counts at the
    reservation, or at itself where that is more; what is to be known of it is noted.
    """
    assert call.model is not None, "what asks no model is not paid"
    amount = state.ledger.reserved[call.id]
    reserved, paid = amount.dollars, bill
    if not bill.final:
        known = bill.dollars or Decimal(0)
        # A model without a price reserves no dollars: that it may have cost some stays known.
        price = max(reserved, known) if call.model.prices else None
        assumed = max(reserved - known, Decimal(0))
        paid = bill.model_copy(update={"dollars": price, "assumed": assumed})
    state = replace(state, ledger=state.ledger.settle(call.id, paid))
    state = noted.with_bill(state, call, bill, amount)
    if not call.subtask_id:
        return state
    return update(state, call.subtask_id, lambda each: add_bill(each, paid))


def unanswered(before: State, state: State, call: Call, why: str) -> State:
    """What is to be known of a call that brought no answer, once it is settled: what it counts at,
    and whose it was.
    """
    assert call.model is not None, "what asks no model is settled by nobody"
    old, new = before.ledger, state.ledger
    if new.spent.calls == old.spent.calls:
        state = replace(state, unpaid_calls=state.unpaid_calls + 1)
        dollars: Decimal | None = Decimal(0)
    else:
        dollars = new.spent.dollars - old.spent.dollars if call.model.prices else None
    if not call.subtask_id:
        return state
    assumed = new.assumed - old.assumed
    said = NoAnswer(id=call.id, tier=call.tier, why=why, dollars=dollars, assumed=assumed)
    return update(
        state, call.subtask_id, lambda each: replace(each, unanswered=(*each.unanswered, said))
    )


def add_bill(progress: Progress, bill: Bill) -> Progress:
    before = progress.paid
    unknown = bill.dollars is None or before.dollars is None
    total = None if unknown else (before.dollars or 0) + (bill.dollars or 0)
    paid = Bill(
        model=bill.model,
        calls=before.calls + bill.calls,
        dollars=total,
        assumed=before.assumed + bill.assumed,
    )
    return replace(
        progress, paid=paid, model=bill.model or progress.model, usage=progress.usage + bill.usage
    )


def without(mapping: Mapping[str, Held], key: str) -> dict[str, Held]:
    return {each: value for each, value in mapping.items() if each != key}
