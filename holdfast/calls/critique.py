"""Ask what is wrong with a synthesis, before anybody relies on it."""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.findings import author_says, enclose_findings
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.calls.sources import NOTHING, Contents, Sources, enclose_sources
from holdfast.contracts import Contract, Finding, Problem, Reply, Severity, Synthesis
from holdfast.contracts.policies import model_policy


class IssueAnswer(Answer):
    problem: str
    fix: str
    severity: Annotated[Severity, AnyCase]


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
    sources: Sources = Sources()
    broken: Problem | None = None
    about: About = About()


def critique_prompt(material: CritiqueMaterial, contents: Contents = NOTHING) -> str:
    return "\n\n".join(
        (
            *enclose_sources(material.sources, contents),
            *enclose_findings(material.findings),
            envelope("the answer to check", material.synthesis.answer),
            envelope("what its author says beside it", author_says(material.synthesis)),
            section("goal", material.goal),
            section("instruction", material.instruction or "Answer the goal."),
            *say_today(material.about),
            "What must change in the answer before this is delivered?",
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
    beyond=lambda material: material.sources.size,
    words="what the answer lacks",
)
