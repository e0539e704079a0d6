"""Freezing findings, and what that means for dependents and for the run's phase. Pure."""

from __future__ import annotations

from holdfast.contracts import Draft, Finding, FindingStatus
from holdfast.contracts.replacing import replace
from holdfast.state.edits import record_try, update
from holdfast.state.parts import Progress, Setback, passes_on
from holdfast.state.run import State


def settle(state: State, subtask_id: str, status: FindingStatus, why: str) -> State:
    """Freeze the finding of a subtask, unless a person is asked first what becomes of it."""
    if not _is_for_person(state, subtask_id, status):
        return freeze(state, subtask_id, status, why)

    def wait(each: Progress) -> Progress:
        stopped = replace(each, stage="decision", outcome=status, why=why, flight="")
        return replace(stopped, asked=state.now)

    return update(state, subtask_id, wait)


def _is_for_person(state: State, subtask_id: str, status: FindingStatus) -> bool:
    progress = state.work[subtask_id]
    if not state.goal.ask_people or state.stop or progress.ending:
        return False
    hands_over = status == "complete" and state.brief.role(progress.subtask.role).hands_over
    return hands_over or status in ("failed", "escalated")


def leave_as_is(state: State, subtask_id: str) -> State:
    """Freeze what a person was asked about as it would have been without anybody to ask."""
    progress = state.work[subtask_id]
    return freeze(state, subtask_id, progress.outcome, progress.why)


def freeze(state: State, subtask_id: str, status: FindingStatus, why: str) -> State:
    """Freeze the finding of a subtask; if what failed matters, the plan is to be changed."""
    progress = state.work[subtask_id]
    draft = _last_draft(progress, status)
    finding = Finding(
        subtask_id=subtask_id,
        status=status,
        content=draft.content,
        data=draft.data,
        confidence=_confidence(draft, status),
        sources=(*draft.sources, *progress.answers),
        why=why,
        escalation=draft.escalation if status == "escalated" else None,
        tries=progress.tries,
        unanswered=progress.unanswered,
        model=progress.model,
        usage=progress.usage,
        dollars=progress.paid.dollars,
        assumed=progress.paid.assumed,
        turns=progress.turns,
        tool_calls=progress.tool_calls,
        failed_calls=progress.failed_calls,
        files=progress.files,
        unread=progress.unread,
        started=progress.started,
        finished=state.now,
        waited=state.waited_until(state.now) - progress.waited_at_start
        if progress.started
        else 0.0,
    )
    state = update(state, subtask_id, lambda each: replace(each, finding=finding, flight=""))
    return note_setback(state, finding)


def note_setback(state: State, finding: Finding) -> State:
    """Have the plan changed if a finding that nobody can build on matters."""
    # What was too much in one piece is planned anew, though what there is of it could be passed on.
    split = finding.escalation is not None and finding.escalation.reason == "timeout"
    if (passes_on(finding) and not split) or not _matters(state, finding.subtask_id):
        return state
    setback = Setback(finding.subtask_id, f"{status_words(finding.status)}: {finding.why}")
    replanning = replace(
        state.replanning, setbacks=(*state.replanning.setbacks, setback), errors=()
    )
    return replace(state, replanning=replanning)


def _confidence(draft: Draft, status: FindingStatus) -> int | None:
    """Return the confidence of a draft that was handed up, if it holds anything."""
    handed_up = status in ("complete", "escalated") and (draft.content or draft.data)
    return draft.confidence if handed_up else None


def without_setback(state: State, subtask_id: str) -> State:
    """Drop the setback of a subtask: no plan is changed because of it."""
    setbacks = tuple(each for each in state.replanning.setbacks if each.subtask_id != subtask_id)
    return replace(state, replanning=replace(state.replanning, setbacks=setbacks))


def _last_draft(progress: Progress, status: FindingStatus) -> Draft:
    """Return the last draft; for an agent that ended in the middle, what it has said so far."""
    if status in ("failed", "cancelled") and progress.resume.text:
        return Draft(status="failed", content=progress.resume.text)
    return progress.last or Draft()


def _matters(state: State, subtask_id: str) -> bool:
    """True if a replan is worth it: others need the subtask, or nothing is left to answer with."""
    if not state.goal.use_models or state.stop is not None or state.work[subtask_id].ending:
        return False
    if state.phase == "planning":
        # It is judged once the plan is whole.
        return False
    if state.replanning.count >= state.goal.limits.replans or state.only_approved:
        return False
    if state.work.has_other_attempt(subtask_id):
        return False
    if state.goal.plan is not None and state.goal.plan.is_goal:
        # One agent was asked for, and no planner.
        return False
    needed = any(not state.is_settled(each) for each in state.work.below(subtask_id))
    return needed or (state.work.all_settled and not state.usable)


def skip(state: State, subtask_id: str, why: str) -> State:
    finding = Finding(
        subtask_id=subtask_id, status="skipped", confidence=None, why=why, finished=state.now
    )
    return update(state, subtask_id, lambda each: replace(each, finding=finding))


def status_words(status: FindingStatus) -> str:
    """Return a status as the end of a sentence: `failed`, `was skipped`."""
    return {"failed": "failed", "escalated": "gave it back"}.get(status, f"was {status}")


def end_for_person(state: State, subtask_id: str) -> State:
    """Settle a subtask that a person ended, unless it was completed meanwhile."""
    progress = state.work.get(subtask_id)
    if progress is None or not progress.ending or progress.finding is not None:
        return state
    return settle(state, subtask_id, "cancelled", progress.ending)


def accept(state: State, subtask_id: str, why: str) -> State:
    state = update(state, subtask_id, lambda each: record_try(each, "accepted", why))
    return settle(state, subtask_id, "complete", "")
