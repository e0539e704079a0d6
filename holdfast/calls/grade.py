"""Ask whether something is true of an answer, where no code can decide it: the judge of an eval."""

from __future__ import annotations

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Problem, Reply
from holdfast.contracts.policies import model_policy


class GradeAnswer(Answer):
    why: str
    holds: bool


class Grade(Contract):
    holds: bool
    why: str = ""


class GradeMaterial(Contract):
    """Material of `grade`."""

    goal: str
    """What was asked."""
    answer: str
    rubric: str
    """What must be true of the answer."""
    broken: Problem | None = None
    about: About = About()


def grade_prompt(material: GradeMaterial) -> str:
    return "\n\n".join(
        (
            envelope("the answer to grade", material.answer),
            section("goal", material.goal),
            section("acceptance_criteria", material.rubric),
            *say_today(material.about),
            "Is what stands in acceptance_criteria true of the answer?",
        )
    )


GRADE: ModelKind[GradeMaterial, GradeAnswer, Grade] = ModelKind(
    name="grade",
    reply=Reply[Grade],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=GradeAnswer,
    value=lambda answer, _: Grade(holds=answer.holds, why=answer.why),
    prompt="grader",
    turn=grade_prompt,
    words="whether an answer is as it must be",
)
