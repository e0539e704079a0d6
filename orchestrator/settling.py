"""Freezing findings: what a settled subtask means for its dependents and the run's phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from orchestrator import graph
from orchestrator.contracts import Bill, Draft, Finding, FindingStatus
from orchestrator.state import Ask, Progress, State, Stop, passes_on


def settle(state: State, subtask_id: str, status: FindingStatus, why: str, now: datetime) -> State:
    """Freeze a subtask's finding; its dependents are skipped when it cannot be passed on."""
    progress = state.work[subtask_id]
    draft = progress.last or Draft()
    finding = Finding(
        subtask_id=subtask_id,
        status=status,
        content=draft.content,
        data=draft.data,
        confidence=draft.confidence if status in ("complete", "escalated") else 0,
        sources=draft.sources,
        reason=why,
        escalation=draft.escalation if status == "escalated" else None,
        tries=progress.tries,
        model=progress.model,
        usage=progress.usage,
        dollars=progress.paid.dollars,
        started=progress.started,
        finished=now,
    )
    state = update(state, subtask_id, lambda each: replace(each, finding=finding, flight=""))
    if passes_on(finding):
        return state
    assert state.plan is not None
    for dependent in graph.dependents(state.plan.subtasks, subtask_id):
        if not state.settled(dependent):
            why = f"needs {subtask_id}, which {status_words(status)}"
            state = update(state, dependent, skipped(why, now))
    return state


def skipped(why: str, now: datetime) -> Callable[[Progress], Progress]:
    def skip(progress: Progress) -> Progress:
        finding = Finding(
            subtask_id=progress.subtask.id, status="skipped", reason=why, finished=now
        )
        return replace(progress, finding=finding)

    return skip


def status_words(status: FindingStatus) -> str:
    """`failed`, `was skipped`, … as the end of a sentence."""
    return {"failed": "failed", "escalated": "gave it back"}.get(status, f"was {status}")


def advance(state: State, now: datetime) -> State:
    """Move to the next phase when this one has nothing left in flight."""
    if state.flights or state.phase == "closed":
        return state
    if state.stop and state.phase in ("preparing", "planning"):
        return replace(state, phase="closed", finished=now)
    if state.phase == "working":
        if state.stop:
            state = leave_undone(state, state.stop, now)
        if not state.all_settled:
            return state
        cancelled = state.stop is not None and state.stop.reason == "cancelled"
        if cancelled or not state.usable:
            return replace(state, phase="closed", finished=now)
        # A partial without any complete finding is shown, but not paid for.
        complete = any(finding.status == "complete" for finding in state.findings)
        by_template = state.synthesis_by_template or not state.goal.use_models or not complete
        if state.stop and state.stop.reason == "endpoint":
            by_template = True
        return replace(state, phase="synthesizing", synthesis_by_template=by_template)
    cancelled = state.stop is not None and state.stop.reason == "cancelled"
    if state.phase == "synthesizing" and (state.synthesis or cancelled):
        return replace(state, phase="closed", finished=now)
    return state


def leave_undone(state: State, stop: Stop, now: datetime) -> State:
    """Settle what a stop left over; what was begun keeps its bill and what it has so far."""
    for subtask_id, progress in state.work.items():
        if state.settled(subtask_id):
            continue
        if progress.started:
            why = f"{progress.reason}; then {stop.why}" if progress.reason else stop.why
            state = settle(state, subtask_id, "failed", f"not finished: {why}", now)
        else:
            state = update(state, subtask_id, skipped(f"not started: {stop.why}", now))
    return state


def update(state: State, subtask_id: str, change: Callable[[Progress], Progress]) -> State:
    return replace(state, work={**state.work, subtask_id: change(state.work[subtask_id])})


def landed(state: State, flight_id: str) -> State:
    flight = state.flights[flight_id]
    subtask_id = (
        flight.move.call.subtask_id if isinstance(flight.move, Ask) else flight.move.subtask_id
    )
    state = replace(state, flights=without(state.flights, flight_id))
    if subtask_id:
        return update(state, subtask_id, lambda each: replace(each, flight=""))
    return state


def add_bill(progress: Progress, bill: Bill) -> Progress:
    before = progress.paid
    unknown = bill.dollars is None or before.dollars is None
    total = None if unknown else (before.dollars or 0) + (bill.dollars or 0)
    paid = Bill(model=bill.model, calls=before.calls + bill.calls, dollars=total)
    return replace(
        progress, paid=paid, model=bill.model or progress.model, usage=progress.usage + bill.usage
    )


def without(mapping: Any, key: str) -> dict[str, Any]:
    return {each: value for each, value in mapping.items() if each != key}
