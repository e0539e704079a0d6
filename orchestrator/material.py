"""What each activity works from, made from the state: nothing more than it needs. Pure."""

from __future__ import annotations

from typing import Literal

from orchestrator.contracts import HARD_SUBTASK_LIMIT, Contract, Finding, Problem
from orchestrator.materials import (
    CritiqueMaterial,
    DigestMaterial,
    JudgeMaterial,
    PlanMaterial,
    RefineMaterial,
    ReplanMaterial,
    ReviewMaterial,
    Standing,
    SynthesisMaterial,
    WorkMaterial,
)
from orchestrator.state import Progress, State

DIGEST_WORDS = 400
CHARACTERS_PER_TOKEN = 4
"""Of plain English text; for sizes that decide what is shortened, never for what is paid."""


def for_plan(state: State) -> PlanMaterial:
    """The goal, the menu of roles, a preview of each input; never a repository's files."""
    brief = state.brief
    return PlanMaterial(
        goal=state.goal.text,
        ready=state.goal.plan or (brief.playbook.plan if brief.playbook else None),
        roles=brief.roles,
        inputs=brief.inputs,
        guidance=brief.playbook.guidance if brief.playbook else "",
        subtask_limit=state.goal.limits.subtasks,
        errors=state.plan_errors,
    )


def for_subtask(state: State, progress: Progress) -> Contract:
    """What the next activity of a subtask works from, by its stage."""
    if progress.stage == "review":
        return for_review(state, progress)
    if progress.stage == "refine":
        return for_refine(state, progress)
    return for_work(state, progress)


def for_work(state: State, progress: Progress) -> WorkMaterial:
    """The subtask, its inputs and what its own dependencies found."""
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    findings = (state.work[edge].finding for edge in subtask.depends_on)
    return WorkMaterial(
        subtask=subtask,
        inputs=tuple(pinned for pinned in state.brief.inputs if pinned.name in subtask.inputs),
        dependencies=tuple(finding for finding in findings if finding is not None),
        tool=role.tools[0] if role.tier == "none" else "",
        timeout_seconds=state.goal.limits.subtask_timeout_seconds,
        number=len(progress.tries) + 1,
        reason=progress.reason,
        broken=_broken(state, f"work-{subtask.id}"),
    )


def for_review(state: State, progress: Progress) -> ReviewMaterial:
    assert progress.last is not None, "only a draft is reviewed"
    broken = _broken(state, f"review-{progress.subtask.id}")
    return ReviewMaterial(subtask=progress.subtask, draft=progress.last, broken=broken)


def for_refine(state: State, progress: Progress) -> RefineMaterial:
    return RefineMaterial(
        subtask=progress.subtask,
        reasons=tuple(each.why for each in progress.tries),
        broken=_broken(state, f"refine-{progress.subtask.id}"),
    )


def for_replan(state: State) -> ReplanMaterial:
    assert state.plan is not None, "only a plan can be changed"
    standings = tuple(
        Standing(
            subtask_id=key,
            status=each.finding.status if each.finding else _standing(each),
            why=each.finding.reason if each.finding else each.reason,
        )
        for key, each in state.work.items()
    )
    setbacks = state.replanning.setbacks
    return ReplanMaterial(
        goal=state.goal.text,
        plan=state.plan,
        standings=standings,
        trouble="; ".join(f"{each.subtask_id}: {each.why}" for each in setbacks),
        roles=state.brief.roles,
        inputs=state.brief.inputs,
        used_ids=state.replanning.used_ids,
        addable=min(state.goal.limits.subtasks, HARD_SUBTASK_LIMIT - len(state.work)),
        errors=state.replanning.errors,
    )


def _standing(progress: Progress) -> Literal["waiting", "running"]:
    return "running" if progress.started else "waiting"


def for_digest(state: State, findings: tuple[Finding, ...], purpose: str) -> DigestMaterial:
    return DigestMaterial(
        goal=state.goal.text,
        findings=findings,
        words=DIGEST_WORDS,
        broken=_broken(state, purpose),
    )


def for_judge(state: State, question: str, purpose: str) -> JudgeMaterial:
    return JudgeMaterial(question=question, findings=state.usable, broken=_broken(state, purpose))


def for_synthesis(state: State) -> SynthesisMaterial:
    """Every finding, failures included; in a revision also what is to change."""
    assert state.plan is not None, "only a plan's findings are synthesized"
    playbook = state.brief.playbook
    finishing = state.finishing
    serious = [each for each in finishing.issues or () if each.severity != "info"]
    return SynthesisMaterial(
        goal=state.goal.text,
        strategy=state.plan.strategy,
        instruction=state.plan.synthesis_instruction,
        template=playbook.template if playbook else "merge",
        min_confidence=playbook.min_confidence if playbook else 0,
        subtasks=state.plan.subtasks,
        findings=for_answer(state),
        inputs=state.brief.inputs,
        not_run=state.brief.not_run,
        context_tokens=state.goal.limits.supervisor_context_tokens,
        previous=finishing.synthesis.answer if finishing.synthesis else "",
        issues=tuple(f"{each.severity}: {each.problem} {each.fix}".strip() for each in serious),
        judged=finishing.conflicts,
        broken=_broken(state, "synthesize"),
    )


def for_answer(state: State) -> tuple[Finding, ...]:
    """The findings that the synthesis reads: the winner of a selection, digests of batches, or
    all.
    """
    finishing = state.finishing
    gone = tuple(finding for finding in state.findings if finding not in state.usable)
    if finishing.judgement is not None and finishing.judgement.winner:
        winner = state.work[finishing.judgement.winner].finding
        return (winner, *gone) if winner else state.findings
    return (*finishing.rolled, *gone) if finishing.rolled else state.findings


def for_critique(state: State) -> CritiqueMaterial:
    assert state.plan is not None and state.finishing.synthesis is not None
    return CritiqueMaterial(
        goal=state.goal.text,
        instruction=state.plan.synthesis_instruction,
        synthesis=state.finishing.synthesis,
        findings=for_answer(state),
        broken=_broken(state, "critique"),
    )


def _broken(state: State, purpose: str) -> Problem | None:
    problems = state.broken.get(purpose, ())
    return problems[-1] if problems else None
