"""What becomes of a try: accept, try again on a higher tier, hand over, ask a person, give up.
Pure.

Transport is not dealt with here: the reducer asks again what may have been billed.
"""

from __future__ import annotations

from holdfast.calls.refine import Refined
from holdfast.calls.review import Review
from holdfast.calls.turn import Resume
from holdfast.calls.verify import has_verdicts
from holdfast.contracts import Draft, Escalation, Problem, RoleCard, RoleTier, policies
from holdfast.contracts.remarks import has_remarks
from holdfast.contracts.replacing import replace
from holdfast.state import graph
from holdfast.state.edits import forget_losses, record_try, update
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import accept, settle
from holdfast.text import sentence

CLIMB: dict[RoleTier, RoleTier] = {"haiku": "sonnet", "sonnet": "opus"}
STRENGTH: tuple[RoleTier, ...] = ("none", "haiku", "sonnet", "opus")
OUT_OF_TURNS, OUT_OF_TIME = "out_of_turns", "timeout"
"""Verdicts on a try that ended without an answer."""
REFINE_FROM_TRY = 3
BEST_GUESS = (
    "Nobody can be asked. Give your best guess, and state the assumption that you make as such."
)


def judge_work(
    state: State, subtask_id: str, draft: Draft | None, problem: Problem | None
) -> State:
    """Give the verdict on what `work` returned, and draw the consequence."""
    progress = state.work[subtask_id]
    progress = replace(progress, last=draft or progress.last)
    state = update(state, subtask_id, lambda _: progress)
    verdict, why = _verdict(state, draft, problem)
    if verdict == "accepted":
        if progress.subtask.acceptance_criteria.strip():
            return update(state, subtask_id, lambda each: replace(each, stage="review"))
        return accept(state, subtask_id, "")
    if verdict == "escalated" and draft and draft.escalation:
        return _escalate(state, subtask_id, draft.escalation.reason, why)
    return try_again(state, subtask_id, verdict, why)


def _verdict(state: State, draft: Draft | None, problem: Problem | None) -> tuple[str, str]:
    """Return `accepted`, `escalated`, or the kind of problem; and why."""
    if draft is None:
        return (problem.kind, problem.why) if problem else ("malformed", "nothing came back")
    if draft.status == "failed":
        return "failed", draft.why
    if draft.status == "escalated" and draft.escalation:
        reason = draft.escalation.reason
        # A stronger model can cure only doubt.
        kind = "confidence_too_low" if reason == "confidence_too_low" else "escalated"
        return kind, f"{reason.replace('_', ' ')}: {draft.escalation.why}"
    if draft.verdicts:
        return "failed_checks", "; ".join(draft.verdicts)
    said = state.goal.limits.min_confidence
    least = policies.MIN_CONFIDENCE if said is None else said
    # Each remark has a confidence of its own, and that there is no defect is an answer, too; so is
    # a verdict that leaves a remark open.
    listed = has_remarks(draft) or has_verdicts(draft)
    sure = draft.confidence is None or draft.confidence >= least or listed
    if not sure:
        return "confidence_too_low", f"confidence {draft.confidence} is below {least}"
    return "accepted", ""


def try_again(state: State, subtask_id: str, verdict: str, why: str) -> State:
    """Try one tier up, with the reason; from the third try on with a refined instruction."""
    state = update(state, subtask_id, lambda each: record_try(each, verdict, why))
    progress = state.work[subtask_id]
    if len(progress.tries) >= state.goal.limits.tries_per_subtask:
        return give_up(state, subtask_id, why)
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    tier = progress.tier if fixed else CLIMB.get(progress.tier, progress.tier)
    refine = len(progress.tries) + 1 >= REFINE_FROM_TRY
    return update(
        state,
        subtask_id,
        lambda each: replace(
            _start_over(each, why), tier=tier, stage="refine" if refine else "work"
        ),
    )


def give_up(state: State, subtask_id: str, why: str) -> State:
    """Hand a subtask to the role's fallback for one try after its last; then it has failed."""
    progress = state.work[subtask_id]
    fallback = None if progress.relieved or state.stop else second_role(state, progress)
    if fallback is None:
        return settle(state, subtask_id, "failed", why)
    state = hand_over(state, subtask_id, fallback, why)
    # What the tries before have climbed to is kept: a weaker model would not do better.
    tier = state.work[subtask_id].tier
    if not fallback.fixed_tier and STRENGTH.index(tier) < STRENGTH.index(progress.tier):
        tier = progress.tier
    return update(state, subtask_id, lambda each: replace(each, relieved=True, tier=tier))


def second_role(state: State, progress: Progress) -> RoleCard | None:
    """Return the role that a subtask is handed to: the plan's second, else the fallback of its
    present role. None if there is none, it has had it, or a run above has asked it the same.
    """
    subtask = progress.subtask
    had = (*progress.former, subtask.role)
    named = (subtask.secondary, state.brief.role(subtask.role).fallback)
    name = next((each for each in named if each and each not in had), "")
    card = next((each for each in state.brief.roles if each.name == name), None)
    if card is None or card.tier == "none":
        return None
    handed = subtask.model_copy(update={"role": name})
    return None if graph.fingerprint(handed) in state.goal.asked else card


def out_of_turns(state: State, subtask_id: str, why: str, said: str) -> State:
    """Begin anew with a stronger model and what the agent has said so far; after it, or where there
    is none, with the role's fallback.
    """
    last = Draft(status="failed", content=said, why=why)

    def anew(each: Progress) -> Progress:
        return replace(each, last=last if said else each.last or last, resume=Resume())

    return _try_other(update(state, subtask_id, anew), subtask_id, OUT_OF_TURNS, why, said)


def _stronger(state: State, subtask_id: str, verdict: str) -> bool:
    """True if a stronger model may try what ended so; a second such end is enough."""
    progress = state.work[subtask_id]
    fixed = state.brief.role(progress.subtask.role).fixed_tier
    again = any(each.verdict == verdict for each in progress.tries)
    spent = len(progress.tries) + 1 >= state.goal.limits.tries_per_subtask
    return progress.tier in CLIMB and not (fixed or again or spent)


def _try_other(state: State, subtask_id: str, verdict: str, why: str, said: str) -> State:
    """Try a stronger model, else the role's fallback, with what was said so far."""
    if _stronger(state, subtask_id, verdict):
        state = try_again(state, subtask_id, verdict, why)
    else:
        state = update(state, subtask_id, lambda each: record_try(each, verdict, why))
        state = give_up(state, subtask_id, why)
    return update(state, subtask_id, lambda each: replace(each, partial=said or each.partial))


def _start_over(progress: Progress, why: str) -> Progress:
    return replace(progress, stage="work", why=why)


def _escalate(state: State, subtask_id: str, reason: str, why: str) -> State:
    progress = state.work[subtask_id]
    state = update(state, subtask_id, lambda each: record_try(each, "escalated", why))
    spent = len(progress.tries) + 1 >= state.goal.limits.tries_per_subtask
    fallback = second_role(state, progress) if reason == "out_of_scope" else None
    if fallback is not None and not (spent and progress.relieved):
        state = hand_over(state, subtask_id, fallback, why)
        return update(
            state, subtask_id, lambda each: replace(each, relieved=spent or each.relieved)
        )
    if reason == "ambiguous_input" and not progress.asked and not spent:
        if state.goal.ask_people:
            return update(state, subtask_id, lambda each: replace(each, stage="person", why=why))
        guess = f"{sentence(why)} {BEST_GUESS}"
        return update(
            state, subtask_id, lambda each: replace(_start_over(each, guess), asked=state.now)
        )
    return settle(state, subtask_id, "escalated", why)


def too_long(state: State, subtask_id: str, why: str, said: str = "") -> State:
    """Have a stronger model try what is too long for one call. After it the subtask is given back,
    to be split; where no plan will be changed for it, the role's fallback tries. `said`: an agent's
    partial result.
    """
    message = f"one call is too short for it: {why}"
    given_back = Escalation(reason="timeout", why=message, partial=said)
    last = Draft(status="escalated", content=said, why=message, escalation=given_back)
    state = update(state, subtask_id, lambda each: replace(each, last=last, resume=Resume()))
    why = f"timeout: {message}"
    progress = state.work[subtask_id]
    back = _escalate(state, subtask_id, "timeout", why)
    will_split = back.replanning.setbacks != state.replanning.setbacks
    others = not progress.relieved and second_role(state, progress) is not None
    if _stronger(state, subtask_id, OUT_OF_TIME) or (others and not will_split):
        return _try_other(state, subtask_id, OUT_OF_TIME, why, said)
    return back


def hand_over(state: State, subtask_id: str, role: RoleCard, why: str) -> State:
    """Hand a subtask to another role, on that role's tier, with the reason."""

    def handed(progress: Progress) -> Progress:
        subtask = progress.subtask.model_copy(update={"role": role.name})
        tier = role.tier if role.fixed_tier else progress.subtask.tier or role.tier
        former = (*progress.former, progress.subtask.role)
        return replace(_start_over(progress, why), subtask=subtask, tier=tier, former=former)

    return update(state, subtask_id, handed)


def take_answer(state: State, subtask_id: str, answer: str, by: str = "") -> State:
    """Go on with what a person said, or with the best guess if nobody said anything in time."""
    said = f"A person was asked and answered: {answer}" if answer else BEST_GUESS
    why = f"{sentence(state.work[subtask_id].why)} {said}"
    source = f"answered by {by or 'a person'}: {answer}"

    def answered(progress: Progress) -> Progress:
        answers = (*progress.answers, source) if answer else progress.answers
        return replace(_start_over(progress, why), asked=state.now, answers=answers)

    return update(begin_anew(state, subtask_id), subtask_id, answered)


def begin_anew(state: State, subtask_id: str) -> State:
    """Take back how a subtask ended. Its agent will begin a new conversation, with what was found;
    lost calls no longer count.
    """

    def anew(each: Progress) -> Progress:
        found = each.resume.text or each.partial
        return replace(each, finding=None, partial=found, resume=Resume())

    return update(forget_losses(state, subtask_id), subtask_id, anew)


def judge_review(state: State, subtask_id: str, review: Review | None, problem: str) -> State:
    """Take in a review of a draft that passed its checks; without one the draft is accepted."""
    if review is None:
        return accept(state, subtask_id, f"not reviewed: {problem}")
    if review.passed:
        return accept(state, subtask_id, review.why)
    return try_again(state, subtask_id, "failed_review", review.why)


def take_refined(state: State, subtask_id: str, refined: Refined | None) -> State:
    """Work on the better instruction; without one, on the old one."""

    def refine(progress: Progress) -> Progress:
        subtask = progress.subtask
        if refined is not None and refined.instruction.strip():
            subtask = subtask.model_copy(update={"instruction": refined.instruction})
        return replace(progress, subtask=subtask, stage="work")

    return update(state, subtask_id, refine)
