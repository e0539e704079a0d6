"""Ask whether a draft meets the criteria that no check covers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from holdfast.calls.about import About, say_about
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.findings import enclose_findings
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.calls.sources import NOTHING, Contents, Sources, enclose_sources
from holdfast.contracts import Contract, Draft, Finding, Problem, Reply, Subtask
from holdfast.contracts.policies import model_policy


class ReviewAnswer(Answer):
    why: str
    verdict: Annotated[Literal["pass", "fail"], AnyCase]


class Review(Contract):
    passed: bool
    why: str = ""


class ReviewMaterial(Contract):
    """Material of `review`: the subtask, its draft and what that rests on; nothing about its
    author.
    """

    subtask: Subtask
    draft: Draft
    sources: Sources = Sources()
    dependencies: tuple[Finding, ...] = ()
    broken: Problem | None = None
    about: About = About()


def review_prompt(material: ReviewMaterial, contents: Contents = NOTHING) -> str:
    subtask = material.subtask
    return "\n\n".join(
        (
            *enclose_sources(material.sources, contents),
            *enclose_findings(material.dependencies),
            envelope(f"result of subtask {subtask.id}", material.draft.content),
            *_sources_named(material.draft),
            *say_about(material.about, own=False),
            section("instruction", subtask.instruction),
            section("acceptance_criteria", subtask.acceptance_criteria),
            "Does the result meet the acceptance criteria?",
        )
    )


def _sources_named(draft: Draft) -> Iterator[str]:
    """Yield what a result says it rests on: calculations stand there, too."""
    if draft.sources:
        yield envelope("what it says it rests on", "\n".join(draft.sources))


REVIEW: ModelKind[ReviewMaterial, ReviewAnswer, Review] = ModelKind(
    name="review",
    reply=Reply[Review],
    policy=model_policy("haiku", 4_000, "low"),
    answer=ReviewAnswer,
    value=lambda answer, _: Review(passed=answer.verdict == "pass", why=answer.why),
    prompt="reviewer",
    turn=review_prompt,
    beyond=lambda material: material.sources.size,
)
