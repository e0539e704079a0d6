"""What becomes of a try: accept, try again higher, hand over, ask a person, give up. Pure.

Transport is not dealt with here: what may have been billed is asked again by the reducer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from orchestrator.contracts import Draft, Problem, RoleTier
from orchestrator.materials import Refined, Review
from orchestrator.settling import accept, settle, tried, update
from orchestrator.state import Progress, State

CLIMB: dict[RoleTier, RoleTier] = {"haiku": "sonnet", "sonnet": "opus"}
REFINE_FROM_TRY = 3
BEST_GUESS = (
    "Nobody can be asked. Give your best guess, and state the assumption that you make as such."
)


def judge_work(
    state: State, subtask_id: str, draft: Draft | None, problem: Problem | None, now: datetime
) -> State:
    """The verdict on what `work` returned, and what follows from it."""
    progress = state.work[subtask_id]
    if problem and problem.kind == "truncated" and not progress.doubled:
        return update(state, subtask_id, lambda each: replace(each, doubled=True))
    progress = replace(progress, last=draft or progress.last)
    state = update(state, subtask_id, lambda _: progress)
    verdict, why = _verdict(state, draft, problem)
    if verdict == "accepted":
        if progress.subtask.acceptance_criteria.strip():
            return update(state, subtask_id, lambda each: replace(each, stage="review"))
        return accept(state, subtask_id, "", now)
    if verdict == "escalated" and draft and draft.escalation:
        return _escalated(state, subtask_id, draft.escalation.reason, why, now)
    return try_again(state, subtask_id, verdict, why, now)


def _verdict(state: State, draft: Draft | None, problem: Problem | None) -> tuple[str, str]:
    """`accepted`, `escalated`, or the kind of problem; and why."""
    if draft is None:
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


def try_again(state: State, subtask_id: str, verdict: str, why: str, now: datetime) -> State:
    """One tier up, with the reason; from the third try on with a refined instruction; then
    never.
    """
    state = update(state, subtask_id, lambda each: tried(each, verdict, why))
    progress = state.work[subtask_id]
    if len(progress.tries) >= state.goal.limits.tries_per_subtask:
        return settle(state, subtask_id, "failed", why, now)
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    tier = progress.tier if fixed else CLIMB.get(progress.tier, progress.tier)
    refine = len(progress.tries) + 1 >= REFINE_FROM_TRY
    return update(
        state,
        subtask_id,
        lambda each: replace(_afresh(each, why), tier=tier, stage="refine" if refine else "work"),
    )


def _afresh(progress: Progress, reason: str) -> Progress:
    return replace(progress, stage="work", reason=reason, doubled=False)


def _escalated(state: State, subtask_id: str, reason: str, why: str, now: datetime) -> State:
    progress = state.work[subtask_id]
    state = update(state, subtask_id, lambda each: tried(each, "escalated", why))
    spent = len(progress.tries) + 1 >= state.goal.limits.tries_per_subtask
    if reason == "out_of_scope" and not spent:
        role = state.brief.role(progress.subtask.role)
        known = [card.name for card in state.brief.roles if card.tier != "none"]
        if role.fallback in known:
            return _hand_over(state, subtask_id, role.fallback, why)
    if reason == "ambiguous_input" and not progress.asked and not spent:
        if state.goal.ask_people:
            return update(state, subtask_id, lambda each: replace(each, stage="person", reason=why))
        guess = f"{why}. {BEST_GUESS}"
        return update(state, subtask_id, lambda each: replace(_afresh(each, guess), asked=True))
    return settle(state, subtask_id, "escalated", why, now)


def _hand_over(state: State, subtask_id: str, role_name: str, why: str) -> State:
    role = state.brief.role(role_name)

    def handed(progress: Progress) -> Progress:
        subtask = progress.subtask.model_copy(update={"role": role.name})
        tier = role.tier if role.fixed_tier else progress.subtask.tier or role.tier
        return replace(_afresh(progress, why), subtask=subtask, tier=tier)

    return update(state, subtask_id, handed)


def answered_by_person(state: State, subtask_id: str, answer: str) -> State:
    """Go on with what a person said; nobody said anything in time: with the best guess."""
    said = f"A person was asked and answered: {answer}" if answer else BEST_GUESS
    reason = f"{state.work[subtask_id].reason}. {said}"
    return update(state, subtask_id, lambda each: replace(_afresh(each, reason), asked=True))


def judge_review(
    state: State, subtask_id: str, review: Review | None, problem: str, now: datetime
) -> State:
    """A draft that passed its checks and was read, or could not be read."""
    if review is None:
        return accept(state, subtask_id, f"not reviewed: {problem}", now)
    if review.passed:
        return accept(state, subtask_id, review.why, now)
    return try_again(state, subtask_id, "failed_review", review.why, now)


def take_refined(state: State, subtask_id: str, refined: Refined | None) -> State:
    """Work on the better instruction; without one, on the old one."""

    def refine(progress: Progress) -> Progress:
        subtask = progress.subtask
        if refined is not None and refined.instruction.strip():
            subtask = subtask.model_copy(update={"instruction": refined.instruction})
        return replace(progress, subtask=subtask, stage="work")

    return update(state, subtask_id, refine)
