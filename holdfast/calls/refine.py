"""A better instruction, from what went wrong with the tries so far."""

from __future__ import annotations

from holdfast.calls.about import About, say_about
from holdfast.calls.envelopes import defang, envelope, section
from holdfast.calls.kind import Answer, ModelKind
from holdfast.calls.plan import describe
from holdfast.calls.work import say_checks
from holdfast.contracts import Contract, Problem, Reply, RoleCard, Subtask
from holdfast.contracts.policies import model_policy


class RefineAnswer(Answer):
    instruction: str


class Refined(Contract):
    instruction: str


class RefineMaterial(Contract):
    """Material of `refine`: the subtask, who does it, and why each try was not accepted."""

    subtask: Subtask
    role: RoleCard
    whys: tuple[str, ...]
    previous: str = ""
    """The result of the last try, as far as it may be shown."""
    broken: Problem | None = None
    about: About = About()


def refine_prompt(material: RefineMaterial) -> str:
    subtask = material.subtask
    whys = "\n".join(f"try {number}: {why}" for number, why in enumerate(material.whys, start=1))
    findings = [f"the finding of {each}" for each in subtask.depends_on]
    given = ", ".join((*subtask.inputs, *findings)) or "nothing but its instruction"
    parts = [envelope("why the tries were not accepted", whys)]
    if material.previous:
        parts.append(envelope("the result of the last try", material.previous))
    parts += [
        section("role", describe(material.role)),
        f"The agent is given: {defang(given)}.",
        *say_about(material.about, own=False),
        section("instruction", subtask.instruction),
    ]
    if subtask.acceptance_criteria:
        parts.append(section("acceptance_criteria", subtask.acceptance_criteria))
    return "\n\n".join((*parts, *say_checks(subtask), "Write the better instruction."))


REFINE: ModelKind[RefineMaterial, RefineAnswer, Refined] = ModelKind(
    name="refine",
    reply=Reply[Refined],
    policy=model_policy("sonnet", 4_000, "medium"),
    answer=RefineAnswer,
    value=lambda answer, _: Refined(instruction=answer.instruction),
    prompt="refiner",
    turn=refine_prompt,
)
