"""The best of several findings, or the right side of a contradiction."""

from __future__ import annotations

from holdfast.calls.envelopes import section
from holdfast.calls.findings import enclose_findings
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Finding, Problem, Reply
from holdfast.contracts.policies import model_policy


class JudgeAnswer(Answer):
    winner: str
    why: str


class Judgement(Contract):
    winner: str
    """A subtask id; empty if the judge cannot decide."""
    why: str = ""


class JudgeMaterial(Contract):
    question: str
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    """Findings that were cut to fit the supervisor's context."""
    broken: Problem | None = None


def to_judgement(answer: JudgeAnswer, material: JudgeMaterial) -> Judgement:
    """Return what was decided. ValueError unless the winner is one of the findings, or none."""
    winner = answer.winner.strip()
    winner = "" if winner.lower() == "none" else winner
    known = [finding.subtask_id for finding in material.findings]
    if winner and winner not in known:
        raise ValueError(f"winner: {winner!r} is none of {', '.join(known)}")
    return Judgement(winner=winner, why=answer.why)


def judge_prompt(material: JudgeMaterial) -> str:
    return "\n\n".join(
        (section("question", material.question), *enclose_findings(material.findings))
    )


JUDGE: ModelKind[JudgeMaterial, JudgeAnswer, Judgement] = ModelKind(
    name="judge",
    reply=Reply[Judgement],
    policy=model_policy("opus", 8_000, "high"),
    answer=JudgeAnswer,
    value=to_judgement,
    prompt="judge",
    turn=judge_prompt,
    words="which one holds",
)
