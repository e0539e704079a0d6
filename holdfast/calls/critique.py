"""Ask what is wrong with a synthesis, before anybody relies on it."""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.calls.envelopes import envelope, section
from holdfast.calls.findings import author_says, enclose_findings
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.contracts import Contract, Finding, Problem, Reply, Severity, Synthesis
from holdfast.contracts.policies import model_policy


class IssueAnswer(Answer):
    severity: Annotated[Severity, AnyCase]
    problem: str
    fix: str


class CritiqueAnswer(Answer):
    issues: list[IssueAnswer]


class Issue(Contract):
    severity: Literal["critical", "warning", "info"]
    problem: str
    fix: str = ""


class Critique(Contract):
    issues: tuple[Issue, ...] = ()


class CritiqueMaterial(Contract):
    """Material of `critique`."""

    goal: str
    instruction: str
    synthesis: Synthesis
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    """Findings that were cut to fit the supervisor's context."""
    broken: Problem | None = None


def critique_prompt(material: CritiqueMaterial) -> str:
    return "\n\n".join(
        (
            section("goal", material.goal),
            section("instruction", material.instruction or "Answer the goal."),
            *enclose_findings(material.findings),
            envelope("the answer to check", material.synthesis.answer),
            envelope("what its author says beside it", author_says(material.synthesis)),
            "What must change before this is delivered?",
        )
    )


CRITIQUE: ModelKind[CritiqueMaterial, CritiqueAnswer, Critique] = ModelKind(
    name="critique",
    reply=Reply[Critique],
    policy=model_policy("sonnet", 8_000, "high"),
    answer=CritiqueAnswer,
    value=lambda answer, _: Critique.model_validate(answer.model_dump()),
    prompt="critic",
    turn=critique_prompt,
    words="what the answer lacks",
)
