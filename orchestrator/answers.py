"""What a model is asked for, call by call, and the pure functions that turn an Answer into a
Contract.

Structured outputs are smallest and surest without choices: all fields required, no defaults, no
Optional, no unions, no dictionaries, no recursion. An empty string stands for nothing; the case of
an enum's letters is not guaranteed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from orchestrator.contracts import (
    Check,
    CheckKind,
    Draft,
    Escalation,
    EscalationReason,
    Plan,
    Severity,
    Strategy,
    Subtask,
    Synthesis,
)
from orchestrator.materials import (
    Change,
    Critique,
    Digest,
    Issue,
    Judgement,
    Patch,
    Refined,
    Review,
    Verdict,
    Verdicts,
)


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


AnyCase = BeforeValidator(_lower)


class Answer(BaseModel):
    """Base of every shape a model fills: closed, `additionalProperties` is false in its schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckAnswer(Answer):
    kind: Annotated[CheckKind, AnyCase]
    argument: str


class SubtaskAnswer(Answer):
    id: str
    title: str
    instruction: str
    inputs: list[str]
    role: str
    tier: Annotated[Literal["haiku", "sonnet", ""], AnyCase]
    depends_on: list[str]
    acceptance_criteria: str
    checks: list[CheckAnswer]


class PlanAnswer(Answer):
    subtasks: list[SubtaskAnswer]
    goal: str
    strategy: Annotated[Strategy, AnyCase]
    synthesis_instruction: str


class WorkAnswer(Answer):
    status: Annotated[Literal["complete", "failed", "escalate"], AnyCase]
    result: str
    confidence: int
    sources: list[str]
    reason: Annotated[
        Literal["out_of_scope", "ambiguous_input", "confidence_too_low", "timeout", ""], AnyCase
    ]
    why: str


class ReviewAnswer(Answer):
    verdict: Annotated[Literal["pass", "fail"], AnyCase]
    why: str


class RefineAnswer(Answer):
    instruction: str


class ChangeAnswer(Answer):
    op: Annotated[Literal["add", "replace", "drop"], AnyCase]
    subtask: SubtaskAnswer
    why: str


class ReplanAnswer(Answer):
    changes: list[ChangeAnswer]


class DigestAnswer(Answer):
    digest: str


class JudgeAnswer(Answer):
    winner: str
    why: str


class VerdictAnswer(Answer):
    remark: int
    verdict: Annotated[Literal["confirmed", "refuted", "undecided"], AnyCase]
    why: str


class VerifyAnswer(Answer):
    verdicts: list[VerdictAnswer]


class IssueAnswer(Answer):
    severity: Annotated[Severity, AnyCase]
    problem: str
    fix: str


class CritiqueAnswer(Answer):
    issues: list[IssueAnswer]


class SynthesisAnswer(Answer):
    answer: str
    confidence: int
    conflicts: list[str]
    gaps: list[str]


def percent(value: int) -> int:
    """Clamp a model's confidence to 0–100."""
    return max(0, min(100, value))


def to_subtask(item: SubtaskAnswer) -> Subtask:
    return Subtask(
        id=item.id,
        title=item.title,
        instruction=item.instruction,
        inputs=tuple(item.inputs),
        role=item.role,
        tier=item.tier or None,
        depends_on=tuple(item.depends_on),
        acceptance_criteria=item.acceptance_criteria,
        checks=tuple(Check(kind=check.kind, argument=check.argument) for check in item.checks),
    )


def to_plan(answer: PlanAnswer) -> Plan:
    """The plan a planner meant; whether it is valid is for `graph.problems` to say."""
    return Plan(
        goal=answer.goal,
        strategy=answer.strategy,
        synthesis_instruction=answer.synthesis_instruction,
        subtasks=tuple(to_subtask(item) for item in answer.subtasks),
    )


def to_review(answer: ReviewAnswer) -> Review:
    return Review(passed=answer.verdict == "pass", why=answer.why)


def to_refined(answer: RefineAnswer) -> Refined:
    return Refined(instruction=answer.instruction)


def to_patch(answer: ReplanAnswer) -> Patch:
    """The patch a planner meant; whether it may be applied is for `revision.problems` to say."""
    return Patch(
        changes=tuple(
            Change(op=item.op, subtask=to_subtask(item.subtask), why=item.why)
            for item in answer.changes
        )
    )


def to_judgement(answer: JudgeAnswer) -> Judgement:
    winner = answer.winner.strip()
    return Judgement(winner="" if winner.lower() == "none" else winner, why=answer.why)


def to_digest(answer: DigestAnswer) -> Digest:
    return Digest(text=answer.digest)


def to_verdicts(answer: VerifyAnswer, count: int) -> Verdicts:
    """The verdicts on so many remarks, which are numbered from 1. ValueError unless there is
    exactly one for each, with a reason.
    """
    said = {each.remark: each for each in answer.verdicts}
    numbers = range(1, count + 1)
    if len(answer.verdicts) != count or list(numbers) != sorted(said):
        raise ValueError(f"verdicts: exactly one is wanted for each of the remarks 1 to {count}")
    if not all(each.why.strip() for each in answer.verdicts):
        raise ValueError("verdicts: each needs its why")
    found = (said[number] for number in numbers)
    return Verdicts(verdicts=tuple(Verdict(verdict=each.verdict, why=each.why) for each in found))


def to_critique(answer: CritiqueAnswer) -> Critique:
    return Critique(
        issues=tuple(
            Issue(severity=item.severity, problem=item.problem, fix=item.fix)
            for item in answer.issues
        )
    )


def to_draft(answer: WorkAnswer) -> Draft:
    """What a try produced; an escalation keeps what there is as its partial."""
    common: dict[str, Any] = {
        "confidence": percent(answer.confidence),
        "sources": tuple(answer.sources),
    }
    if answer.status == "complete":
        return Draft(content=answer.result, **common)
    if answer.status == "failed":
        return Draft(
            status="failed",
            content=answer.result,
            why=answer.why or "no reason given",
            **common,
        )
    reason: EscalationReason = answer.reason or "ambiguous_input"
    escalation = Escalation(reason=reason, why=answer.why, partial=answer.result)
    return Draft(
        status="escalated",
        content=answer.result,
        why=answer.why,
        escalation=escalation,
        **common,
    )


def to_synthesis(answer: SynthesisAnswer) -> Synthesis:
    return Synthesis(
        answer=answer.answer,
        confidence=percent(answer.confidence),
        conflicts=tuple(answer.conflicts),
        gaps=tuple(answer.gaps),
    )
