"""Whether a goal is the one that a template is for, where its words leave that open."""

from __future__ import annotations

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, ModelKind, percent
from holdfast.contracts import Contract, Percent, PinnedInput, Reply, TemplateUse
from holdfast.contracts.policies import model_policy

NONE = "no_match"
LEAST_CONFIDENCE = 80
"""Percent: a wrong template is a wrong answer, and a plan costs cents."""


class MatchAnswer(Answer):
    reason: str
    template_id: str
    confidence: int


class Matched(Contract):
    fits: bool
    confidence: Percent = 0
    why: str = ""


class MatchMaterial(Contract):
    goal: str
    template: TemplateUse
    inputs: tuple[PinnedInput, ...] = ()
    about: About = About()


def to_matched(answer: MatchAnswer, material: MatchMaterial) -> Matched:
    """Return whether the template fits. ValueError if the answer names another one."""
    named, confidence = answer.template_id.strip(), percent(answer.confidence)
    if named not in (material.template.name, NONE):
        raise ValueError(f"template_id: say {material.template.name!r} or {NONE!r}")
    fits = named != NONE and confidence >= LEAST_CONFIDENCE
    return Matched(fits=fits, confidence=confidence, why=answer.reason)


def match_prompt(material: MatchMaterial) -> str:
    """Return the user turn: the template with its goal and its plan, filled in; then the goal."""
    used = material.template
    plan = "\n".join(f"- {each.role}: {each.instruction}" for each in used.plan.subtasks)
    values = "\n".join(f"- {name}: {value}" for name, value in used.values.items()) or "nothing"
    inputs = "\n".join(f"- {each.name}: {each.kind}" for each in material.inputs) or "none"
    return "\n\n".join(
        (
            f"Template: {used.name}",
            envelope("goal of the template", used.goal),
            envelope("plan of the template, for the goal below", plan),
            envelope("what it takes from the goal below", values),
            f"Inputs, by name:\n{inputs}",
            *say_today(material.about),
            section("goal", material.goal),
            f"Answer {used.name} or {NONE}.",
        )
    )


MATCH: ModelKind[MatchMaterial, MatchAnswer, Matched] = ModelKind(
    name="match",
    reply=Reply[Matched],
    policy=model_policy("haiku", 2_000, "low"),
    answer=MatchAnswer,
    value=to_matched,
    prompt="matcher",
    turn=match_prompt,
    words="whether a template fits",
)
