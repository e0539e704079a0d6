"""A role that is itself a team: its subtask is a run of its own, with a slice of the parent's
money. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from orchestrator.contracts import (
    Bill,
    Draft,
    Escalation,
    FindingStatus,
    Goal,
    GoalInput,
    Limits,
    Report,
)
from orchestrator.events import StartTeam, TeamEnded
from orchestrator.ledger import Amount
from orchestrator.repair import judge_work
from orchestrator.settling import add_bill, settle, tried, update
from orchestrator.state import Progress, State, passes_on

FEWEST_CALLS = 4
"""A plan, a subtask, a synthesis and a critique: with less a team cannot answer."""


def start(state: State, progress: Progress) -> StartTeam | None:
    """The team's run with half of what is free; None: what is free is not enough for a team."""
    amount = _slice(state)
    if amount.calls < FEWEST_CALLS:
        return None
    subtask = progress.subtask
    number = state.numbers.get(f"team-{subtask.id}", 0) + 1
    limits: dict[str, object] = {
        "dollars": amount.dollars,
        "model_calls": amount.calls,
        "tokens": amount.tokens,
    }
    findings = [state.work[edge].finding for edge in subtask.depends_on]
    goal = Goal(
        text=subtask.instruction,
        inputs=tuple(
            GoalInput(name=f"finding-of-{each.subtask_id}", kind="text", value=each.content)
            for each in findings
            if each is not None and passes_on(each)
        ),
        limits=Limits.model_validate(state.goal.limits.model_dump() | limits),
        requester=state.goal.requester,
        mode=state.goal.mode,
        depth=state.goal.depth + 1,
        use_models=True,
        unpriced=state.goal.unpriced,
        pinned=tuple(each for each in state.brief.inputs if each.name in subtask.inputs),
        search_attributes=state.goal.search_attributes,
    )
    return StartTeam(f"team-{subtask.id}-{number}", subtask.id, goal, amount)


def _slice(state: State) -> Amount:
    ledger = state.ledger
    taken = ledger.spent + ledger.held + ledger.kept
    return Amount(
        max((ledger.cap.dollars - taken.dollars) / 2, Amount().dollars),
        max((ledger.cap.calls - taken.calls) // 2, 0),
        max((ledger.cap.tokens - taken.tokens) // 2, 0),
    )


def ended(state: State, event: TeamEnded, now: datetime) -> State:
    """Settle the slice by the team's report; what the team did not use is free again."""
    move, report = event.move, event.report
    if report is None:
        return _no_report(state, event, now)
    bill = Bill(calls=report.model_calls, usage=report.usage, dollars=report.dollars)
    state = replace(state, ledger=state.ledger.settle(move.id, bill))
    state = update(state, move.subtask_id, lambda each: add_bill(each, bill))
    return _judge(state, move.subtask_id, report, now)


def _no_report(state: State, event: TeamEnded, now: datetime) -> State:
    """Unless it was refused before it began, nobody knows what it spent: its whole slice counts."""
    move = event.move
    if event.refused:
        state = replace(state, ledger=state.ledger.release(move.id))
    else:
        whole = Bill(calls=move.amount.calls, dollars=move.amount.dollars)
        state = replace(state, ledger=state.ledger.settle_unknown(move.id, whole))
        state = update(state, move.subtask_id, lambda each: add_bill(each, whole))
    ending = state.work[move.subtask_id].ending
    status: FindingStatus = "cancelled" if state.stop or ending else "failed"
    return settle(state, move.subtask_id, status, ending or event.why, now)


def _judge(state: State, subtask_id: str, report: Report, now: datetime) -> State:
    missing = "; ".join(f"{gap.title}: {gap.why}" for gap in report.gaps)
    if report.status == "complete":
        draft = Draft(
            content=report.answer, confidence=report.confidence, sources=(f"run {report.run_id}",)
        )
        return judge_work(state, subtask_id, draft, None, now)
    why = f"its team ended {report.status}" + (f": {missing}" if missing else "")
    partial = Escalation(reason="confidence_too_low", message=why, partial=report.answer)
    draft = Draft(status="escalated", content=report.answer, reason=why, escalation=partial)
    state = update(
        state, subtask_id, lambda each: replace(tried(each, report.status, why), last=draft)
    )
    return settle(state, subtask_id, "escalated" if report.answer else "failed", why, now)
