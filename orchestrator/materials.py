"""What each activity works from, and what those beyond plan, work and synthesize return."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.contracts import (
    Contract,
    Draft,
    Finding,
    FindingStatus,
    Omission,
    Percent,
    PinnedInput,
    Plan,
    Problem,
    Remark,
    RoleCard,
    Subtask,
    Synthesis,
)


class PlanMaterial(Contract):
    """What `plan` works from."""

    goal: str
    ready: Plan | None = None
    roles: tuple[RoleCard, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    guidance: str = ""
    subtask_limit: int = 6
    errors: tuple[str, ...] = ()
    """What was wrong with the previous plan; empty at the first go."""
    asked: tuple[str, ...] = ()
    """Fingerprints of what the runs above have planned."""


class WorkMaterial(Contract):
    """What `work` and `use_tool` work from: one subtask and what its dependencies found, nothing
    else of the run.
    """

    subtask: Subtask
    inputs: tuple[PinnedInput, ...] = ()
    dependencies: tuple[Finding, ...] = ()
    tool: str = ""
    """Only for `use_tool`: the tool to run."""
    timeout_seconds: int = 300
    number: int = 1
    why: str = ""
    """Why the previous try was not accepted; empty at the first."""
    broken: Problem | None = None
    """The malformed answer that this call is to mend."""


class SynthesisMaterial(Contract):
    """What `synthesize` works from."""

    goal: str
    instruction: str = ""
    template: str = "merge"
    min_confidence: Percent = 0
    subtasks: tuple[Subtask, ...] = ()
    findings: tuple[Finding, ...] = ()
    inputs: tuple[PinnedInput, ...] = ()
    not_run: tuple[Omission, ...] = ()
    citable: tuple[str, ...] = ()
    """Ids of the subtasks that found something for this answer: none else may be cited."""
    cut: tuple[str, ...] = ()
    """Ids of the findings that had to be cut to fit the supervisor's context."""
    previous: str = ""
    """In a revision: the answer that is to be revised."""
    issues: tuple[str, ...] = ()
    """In a revision: what the critic wants changed."""
    judged: tuple[str, ...] = ()
    """In a revision: contradictions and how they were judged."""
    to_verify: int = 0
    """How many remarks a model was to verify."""
    verified: tuple[Remark, ...] = ()
    """Those of them that one did, each with its verdict."""
    broken: Problem | None = None
    """The malformed answer that this call is to mend."""


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
    whys: tuple[str, ...]
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
    asked: tuple[str, ...] = ()
    """Fingerprints of what the runs above have planned."""


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
    cut: tuple[str, ...] = ()
    """Ids of the findings that had to be cut to fit the supervisor's context."""
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
    cut: tuple[str, ...] = ()
    """Ids of the findings that had to be cut to fit the supervisor's context."""
    broken: Problem | None = None


class Digest(Contract):
    text: str


class VerifyMaterial(Contract):
    """What `verify` looks at: remarks, each with the code around its line."""

    repository: PinnedInput
    remarks: tuple[Remark, ...]
    withheld: tuple[Place, ...] = ()
    """Lines of their files in which a credential was seen: they stay here."""
    broken: Problem | None = None


class Place(Contract):
    """A line of a file, 1-based."""

    file: str
    line: int


class Verdict(Contract):
    """What a model says of one remark, once it has seen the code."""

    verdict: Literal["confirmed", "refuted", "undecided"]
    why: str


class Verdicts(Contract):
    """One for each remark of the material, in its order."""

    verdicts: tuple[Verdict, ...]


class CritiqueMaterial(Contract):
    """What `critique` reads before delivery."""

    goal: str
    instruction: str
    synthesis: Synthesis
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    """Ids of the findings that had to be cut to fit the supervisor's context."""
    broken: Problem | None = None


class ReachMaterial(Contract):
    """What `reach` waits for: that the endpoint can be reached again."""

    after_seconds: float = Field(0.0, ge=0)
    """How long it waits before it looks for the first time."""
    address: str = ""
    """As in `Unreached`, for whoever reads the history."""


class Reached(Contract):
    waited_seconds: float
    """In all, as the worker that saw it measured; a worker that took over counts from there."""


class Issue(Contract):
    severity: Literal["critical", "warning", "info"]
    problem: str
    fix: str = ""


class Critique(Contract):
    issues: tuple[Issue, ...] = ()
