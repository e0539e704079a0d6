"""Which groups of roles a goal needs, where there are too many roles for one menu."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import section
from holdfast.calls.kind import Answer, ModelKind
from holdfast.calls.plan import is_offered
from holdfast.contracts import Contract, PinnedInput, Reply, RoleCard
from holdfast.contracts.policies import model_policy

MOST_ON_MENU = 7
"""Roles beyond which choosing among them becomes unsure, and the group is chosen first: 7 to 10 by
the rules of thumb in docs/when-a-team.md.
"""


class GroupsAnswer(Answer):
    reason: str
    groups: list[str]


class ChosenGroups(Contract):
    groups: tuple[str, ...]
    why: str = ""


class GroupsMaterial(Contract):
    goal: str
    roles: tuple[RoleCard, ...]
    inputs: tuple[PinnedInput, ...] = ()
    about: About = About()


def groups_of(roles: Iterable[RoleCard]) -> Mapping[str, tuple[RoleCard, ...]]:
    """Return the roles that a planner may assign, by the name of their group."""
    found: dict[str, tuple[RoleCard, ...]] = {}
    for role in filter(is_offered, roles):
        name = group_of(role)
        found[name] = (*found.get(name, ()), role)
    return found


def group_of(role: RoleCard) -> str:
    return role.group.partition(",")[0].strip()


def to_groups(answer: GroupsAnswer, material: GroupsMaterial) -> ChosenGroups:
    """Return the known groups of an answer. ValueError if there is none."""
    known = {name.lower(): name for name in groups_of(material.roles)}
    named = [known.get(each.strip().lower(), "") for each in answer.groups]
    chosen = tuple(dict.fromkeys(filter(None, named)))
    if not chosen:
        raise ValueError(f"groups: name one or more of {', '.join(known.values())}")
    return ChosenGroups(groups=chosen, why=answer.reason)


def groups_prompt(material: GroupsMaterial) -> str:
    """Return the user turn: the groups with their roles by name, the inputs by kind, the goal."""
    groups = "\n".join(_describe(*each) for each in groups_of(material.roles).items())
    inputs = "\n".join(f"- {each.name}: {each.kind}" for each in material.inputs) or "none"
    return "\n\n".join(
        (
            f"Groups of roles:\n{groups}",
            f"Inputs of the goal, by name:\n{inputs}",
            *say_today(material.about),
            section("goal", material.goal),
            "Choose the groups.",
        )
    )


def _describe(name: str, roles: tuple[RoleCard, ...]) -> str:
    """Return a group in a line: its name, what it is for where a role file says so, its roles."""
    said = next((text for each in roles if (text := each.group.partition(",")[2].strip())), "")
    return f"- {name}{': ' * bool(said)}{said} ({', '.join(each.name for each in roles)})"


CHOOSE: ModelKind[GroupsMaterial, GroupsAnswer, ChosenGroups] = ModelKind(
    name="choose",
    reply=Reply[ChosenGroups],
    policy=model_policy("haiku", 2_000, "low"),
    answer=GroupsAnswer,
    value=to_groups,
    prompt="chooser",
    turn=groups_prompt,
    words="which groups of roles",
)
