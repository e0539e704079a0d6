"""Ask whether a draft meets the criteria that no check covers."""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.contracts import Contract, Draft, Problem, Reply, Subtask
from holdfast.contracts.policies import model_policy


class ReviewAnswer(Answer):
    verdict: Annotated[Literal["pass", "fail"], AnyCase]
    why: str


class Review(Contract):
    passed: bool
    why: str = ""


class ReviewMaterial(Contract):
    """Material of `review`: the subtask and its draft, nothing about its author."""

    subtask: Subtask
    draft: Draft
    broken: Problem | None = None


def review_prompt(material: ReviewMaterial) -> str:
    subtask = material.subtask
    return "\n\n".join(
        (
            section("instruction", subtask.instruction),
            section("acceptance_criteria", subtask.acceptance_criteria),
            envelope(f"result of subtask {subtask.id}", material.draft.content),
            "Does the result meet the acceptance criteria?",
        )
    )


REVIEW: ModelKind[ReviewMaterial, ReviewAnswer, Review] = ModelKind(
    name="review",
    reply=Reply[Review],
    policy=model_policy("haiku", 4_000, "low"),
    answer=ReviewAnswer,
    value=lambda answer, _: Review(passed=answer.verdict == "pass", why=answer.why),
    prompt="reviewer",
    turn=review_prompt,
)
