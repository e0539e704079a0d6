"""Findings in fewer words, for a reader with a limited context."""

from __future__ import annotations

from pydantic import Field

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import section
from holdfast.calls.findings import enclose_findings
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Finding, Problem, Reply
from holdfast.contracts.policies import model_policy


class DigestAnswer(Answer):
    digest: str


class Digest(Contract):
    text: str


class DigestMaterial(Contract):
    """Material of `digest`: one finding, or several to shorten into one."""

    goal: str
    findings: tuple[Finding, ...]
    words: int = Field(300, ge=1)
    cut: tuple[str, ...] = ()
    """Findings that were cut to fit the supervisor's context."""
    broken: Problem | None = None
    about: About = About()


def digest_prompt(material: DigestMaterial) -> str:
    return "\n\n".join(
        (
            *enclose_findings(material.findings),
            section("goal", material.goal),
            *say_today(material.about),
            f"Shorten the findings to at most {material.words} words for the reader of this goal.",
        )
    )


DIGEST: ModelKind[DigestMaterial, DigestAnswer, Digest] = ModelKind(
    name="digest",
    reply=Reply[Digest],
    policy=model_policy("haiku", 4_000, "low"),
    answer=DigestAnswer,
    value=lambda answer, _: Digest(text=answer.digest),
    prompt="digester",
    turn=digest_prompt,
)
