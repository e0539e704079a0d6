"""The best of several findings, or the right side of a contradiction."""

from __future__ import annotations

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import section
from holdfast.calls.findings import enclose_findings
from holdfast.calls.kind import Answer, ModelKind
from holdfast.calls.sources import NOTHING, Contents, Sources, enclose_sources
from holdfast.contracts import Contract, Finding, Problem, Reply
from holdfast.contracts.policies import model_policy


class JudgeAnswer(Answer):
    why: str
    winner: str


class Judgement(Contract):
    winner: str
    """A subtask id; empty if the judge cannot decide."""
    why: str = ""


class JudgeMaterial(Contract):
    question: str
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    """Findings that were cut to fit the supervisor's context."""
    sources: Sources = Sources()
    broken: Problem | None = None
    about: About = About()


def to_judgement(answer: JudgeAnswer, material: JudgeMaterial) -> Judgement:
    """Return what was decided. ValueError unless the winner is one of the findings, or none."""
    winner = answer.winner.strip()
    winner = "" if winner.lower() == "none" else winner
    known = [finding.subtask_id for finding in material.findings]
    if winner and winner not in known:
        raise ValueError(f"winner: {winner!r} is none of {', '.join(known)}")
    return Judgement(winner=winner, why=answer.why)


def judge_prompt(material: JudgeMaterial, contents: Contents = NOTHING) -> str:
    return "\n\n".join(
        (
            *enclose_sources(material.sources, contents),
            *enclose_findings(material.findings),
            section("question", material.question),
            *say_today(material.about),
            "Decide the question.",
        )
    )


JUDGE: ModelKind[JudgeMaterial, JudgeAnswer, Judgement] = ModelKind(
    name="judge",
    reply=Reply[Judgement],
    policy=model_policy("opus", 8_000, "high"),
    answer=JudgeAnswer,
    value=to_judgement,
    prompt="judge",
    turn=judge_prompt,
    beyond=lambda material: material.sources.size,
    words="which one holds",
)
