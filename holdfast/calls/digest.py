"""Findings in fewer words, for a reader with a limited context."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pydantic import Field

from holdfast.calls.about import About, quote, say_today
from holdfast.calls.envelopes import section
from holdfast.calls.findings import enclose_findings
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Claim, Contract, Finding, Problem, Reply
from holdfast.contracts.policies import model_policy


class ClaimAnswer(Answer):
    claim: str
    sources: list[str]


class DigestAnswer(Answer):
    claims: list[ClaimAnswer]


class Digest(Contract):
    text: str
    claims: tuple[Claim, ...] = ()


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
            *_purpose(material.about),
            f"Shorten the findings to claims for the reader of this goal: at most {material.words}"
            " words in all.",
        )
    )


def _purpose(about: About) -> Iterator[str]:
    """Yield what the reader makes of the findings, as far as the plan says it."""
    if answer := quote(about.answer):
        yield f"What you shorten is read for this: {answer}"


def to_digest(answer: DigestAnswer, material: DigestMaterial) -> Digest:
    """Return the claims that say something, and their text: a line each."""
    claims = tuple(
        Claim(claim=said, sources=tuple(filter(None, map(str.strip, each.sources))))
        for each in answer.claims
        if (said := " ".join(each.claim.split()))
    )
    ids = [each.subtask_id for each in material.findings]
    return Digest(text="\n".join(_line(each, ids) for each in claims), claims=claims)


def _line(claim: Claim, ids: Collection[str]) -> str:
    """Write a claim as a line of a list; subtasks stand as they are cited in answers."""
    cited = [f"[{each}]" for each in claim.sources if each in ids]
    others = "; ".join(each for each in claim.sources if each not in ids)
    return " ".join(("-", claim.claim, *([f"({others})"] if others else []), *cited))


def digest_problem(digest: Digest) -> Problem | None:
    """Return what is wrong with a digest that claims nothing."""
    return None if digest.claims else Problem(kind="malformed", why="claims: there is none")


DIGEST: ModelKind[DigestMaterial, DigestAnswer, Digest] = ModelKind(
    name="digest",
    reply=Reply[Digest],
    policy=model_policy("haiku", 4_000, "low"),
    answer=DigestAnswer,
    value=to_digest,
    prompt="digester",
    turn=digest_prompt,
)
