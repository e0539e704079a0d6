"""Changes to the part of a plan that has not finished."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.calls.plan import LONGER, SubtaskAnswer, menu, to_subtask
from holdfast.contracts import Contract, FindingStatus, PinnedInput, Plan, Reply, RoleCard, Subtask
from holdfast.contracts.policies import model_policy
from holdfast.text import one_line


class ChangeAnswer(Answer):
    why: str
    op: Annotated[Literal["add", "replace", "drop"], AnyCase]
    subtask: SubtaskAnswer


class ReplanAnswer(Answer):
    changes: list[ChangeAnswer]


class Change(Contract):
    """One change of a running plan; for `drop` only the subtask's id counts."""

    op: Literal["add", "replace", "drop"]
    subtask: Subtask
    why: str = ""


class Patch(Contract):
    changes: tuple[Change, ...]


class Standing(Contract):
    """Progress of a subtask, for whoever changes the plan."""

    subtask_id: str
    status: FindingStatus | Literal["waiting", "running"]
    why: str = ""


class ReplanMaterial(Contract):
    """Material of `replan`: the plan as it stands, and what went wrong."""

    goal: str
    plan: Plan
    standings: tuple[Standing, ...]
    trouble: str
    """The subtasks that made it necessary, and why."""
    roles: tuple[RoleCard, ...]
    inputs: tuple[PinnedInput, ...] = ()
    used_ids: tuple[str, ...] = ()
    """Every id that this run has ever used: none may come again."""
    addable: int = 0
    subtask_timeout_seconds: int = 300
    """Limit of the run: a subtask may have less."""
    errors: tuple[str, ...] = ()
    previous: str = Field(default="", exclude_if=lambda text: not text)
    """The changes that have these errors."""
    asked: tuple[str, ...] = ()
    """Fingerprints of what the runs above have planned."""
    about: About = About()
    barred: dict[str, str] = Field(default_factory=dict)
    """Roles that no plan of this run may have, and why."""


def to_patch(answer: ReplanAnswer) -> Patch:
    """Return the patch that an answer means; `revision.problems` says whether it may be applied."""
    return Patch(
        changes=tuple(
            Change(op=item.op, subtask=to_subtask(item.subtask), why=item.why)
            for item in answer.changes
        )
    )


MOST_SHOWN = 60
"""Subtasks of a plan that are shown to whoever changes it; a model plans half as many."""


def select_shown(material: ReplanMaterial) -> tuple[Subtask, ...]:
    """Return the subtasks to show, in plan order; of very many what went wrong comes first."""
    subtasks = material.plan.subtasks
    if len(subtasks) <= MOST_SHOWN:
        return subtasks
    status = {each.subtask_id: each.status for each in material.standings}
    open_ones = ("waiting", "running")
    wrong = [each.id for each in subtasks if status[each.id] not in (*open_ones, "complete")]
    needing = [each.id for each in subtasks if any(edge in wrong for edge in each.depends_on)]
    left = [each.id for each in subtasks if status[each.id] in open_ones]
    first = [*dict.fromkeys((*wrong, *needing, *left))][:MOST_SHOWN]
    return tuple(each for each in subtasks if each.id in first)


def _unshown_bytes(material: ReplanMaterial) -> int:
    """Return the bytes of the material that stand in no prompt, as a negative number."""
    seen = [each.id for each in select_shown(material)]
    hidden = (each for each in material.plan.subtasks if each.id not in seen)
    return -sum(len(each.instruction.encode()) for each in hidden)


def _describe_others(material: ReplanMaterial) -> str:
    """Return how many subtasks are not shown, by status; empty for none."""
    seen = [each.id for each in select_shown(material)]
    left = Counter(each.status for each in material.standings if each.subtask_id not in seen)
    counts = ", ".join(f"{count} {status}" for status, count in left.items())
    return f"{left.total()} more subtasks are not shown: {counts}." if left else ""


def _asked(subtask: Subtask) -> str:
    """Return what else whoever replaces a subtask, or adds one instead, has to write again."""
    checks = [f"{each.kind} {each.argument}".strip() for each in subtask.checks]
    told = {
        "title": subtask.title,
        "once for each item of": subtask.map.over if subtask.map else "",
        "inputs": ", ".join(subtask.inputs),
        "secondary": subtask.secondary,
        "tier": subtask.tier or "",
        "checks": "; ".join(checks),
        "criteria": subtask.acceptance_criteria,
    }
    return "".join(f", {name} {one_line(text)}" for name, text in told.items() if text)


def replan_prompt(material: ReplanMaterial) -> str:
    standings = {each.subtask_id: each for each in material.standings}
    lines = []
    for subtask in select_shown(material):
        each = standings[subtask.id]
        edges = ", ".join(subtask.depends_on) or "nothing"
        said = f" ({each.why})" if each.why else ""
        rest = "" if each.status in ("running", "complete") else _asked(subtask)
        lines.append(
            f"{subtask.id} [{each.status}{said}] role {subtask.role}, depends on {edges}{rest}:"
            f" {subtask.instruction}"
        )
    inputs = ", ".join(pinned.name for pinned in material.inputs) or "none"
    others = _describe_others(material)
    parts = [
        envelope("the plan as it stands", "\n".join([*lines, *([others] if others else [])])),
        envelope("what went wrong", material.trouble),
        f"Roles you may assign:\n{menu(material.roles)}",
        section("goal", material.goal),
        *say_today(material.about),
        f"Inputs of the goal, by name: {inputs}",
        f"Used ids: {', '.join(material.used_ids)}. At most {material.addable} may be added.",
    ]
    if material.errors:
        listed = "\n".join(f"- {error}" for error in material.errors)
        if material.previous:
            parts.append(envelope("your previous changes", material.previous))
        wrong = envelope("errors of your previous changes", listed)
        parts.append(f"Your previous changes were refused; mend every error:\n{wrong}")
    parts.append("Change the plan.")
    return "\n\n".join(parts)


REPLAN: ModelKind[ReplanMaterial, ReplanAnswer, Patch] = ModelKind(
    name="replan",
    reply=Reply[Patch],
    policy=model_policy("sonnet", 8_000, "medium"),
    answer=ReplanAnswer,
    value=lambda answer, _: to_patch(answer),
    prompt="replanner",
    plans=True,
    turn=replan_prompt,
    longer=LONGER,
    beyond=_unshown_bytes,
    words="what else to do",
)
