"""What each model activity beyond plan, work and synthesize works from, and what it returns."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.contracts import (
    Contract,
    Draft,
    Finding,
    FindingStatus,
    PinnedInput,
    Plan,
    Problem,
    RoleCard,
    Subtask,
    Synthesis,
)


class Standing(Contract):
    """How far a subtask of the plan is, for whoever changes the plan."""

    subtask_id: str
    status: FindingStatus | Literal["waiting", "running"]
    why: str = ""


class ReviewMaterial(Contract):
    """What `review` reads: what was asked and what came, nothing of who did it."""

    subtask: Subtask
    draft: Draft
    broken: Problem | None = None


class Review(Contract):
    """Whether a draft meets the criteria that no check covers."""

    passed: bool
    why: str = ""


class RefineMaterial(Contract):
    """What `refine` works from: the instruction and why each try at it was not accepted."""

    subtask: Subtask
    reasons: tuple[str, ...]
    broken: Problem | None = None


class Refined(Contract):
    instruction: str


class ReplanMaterial(Contract):
    """What `replan` works from: the plan as it stands, and what went wrong."""

    goal: str
    plan: Plan
    standings: tuple[Standing, ...]
    trouble: str
    """The subtask that made it necessary, and why, in a sentence."""
    roles: tuple[RoleCard, ...]
    inputs: tuple[PinnedInput, ...] = ()
    used_ids: tuple[str, ...] = ()
    """Every id that this run has ever used: none may come again."""
    addable: int = 0
    """How many subtasks may be added."""
    errors: tuple[str, ...] = ()
    broken: Problem | None = None


class Change(Contract):
    """One change of a plan that runs. For `drop` only the subtask's id counts."""

    op: Literal["add", "replace", "drop"]
    subtask: Subtask
    why: str = ""


class Patch(Contract):
    changes: tuple[Change, ...]


class JudgeMaterial(Contract):
    """What `judge` decides: the best of several findings, or which side of a conflict is right."""

    question: str
    findings: tuple[Finding, ...]
    broken: Problem | None = None


class Judgement(Contract):
    winner: str
    """A subtask id; empty: the judge cannot decide."""
    why: str = ""


class DigestMaterial(Contract):
    """What `digest` shortens: one finding, or several that are brought under one roof."""

    goal: str
    findings: tuple[Finding, ...]
    words: int = Field(300, ge=1)
    broken: Problem | None = None


class Digest(Contract):
    text: str


class CritiqueMaterial(Contract):
    """What `critique` reads before delivery."""

    goal: str
    instruction: str
    synthesis: Synthesis
    findings: tuple[Finding, ...]
    broken: Problem | None = None


class Issue(Contract):
    severity: Literal["critical", "warning", "info"]
    problem: str
    fix: str = ""


class Critique(Contract):
    issues: tuple[Issue, ...] = ()
