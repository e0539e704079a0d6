"""A better instruction, from what went wrong with the tries so far."""

from __future__ import annotations

from holdfast.calls.about import About, say_about
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Problem, Reply, Subtask
from holdfast.contracts.policies import model_policy


class RefineAnswer(Answer):
    instruction: str


class Refined(Contract):
    instruction: str


class RefineMaterial(Contract):
    """Material of `refine`: the instruction, and why each try was not accepted."""

    subtask: Subtask
    whys: tuple[str, ...]
    broken: Problem | None = None
    about: About = About()


def refine_prompt(material: RefineMaterial) -> str:
    whys = "\n".join(f"try {number}: {why}" for number, why in enumerate(material.whys, start=1))
    return "\n\n".join(
        (
            envelope("why the tries were not accepted", whys),
            *say_about(material.about),
            section("instruction", material.subtask.instruction),
            section("acceptance_criteria", material.subtask.acceptance_criteria),
            "Write the better instruction.",
        )
    )


REFINE: ModelKind[RefineMaterial, RefineAnswer, Refined] = ModelKind(
    name="refine",
    reply=Reply[Refined],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=RefineAnswer,
    value=lambda answer, _: Refined(instruction=answer.instruction),
    prompt="refiner",
    turn=refine_prompt,
)
