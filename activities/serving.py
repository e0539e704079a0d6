"""Which roles a run may use on this worker, why not the others, and what it goes without. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.calls.turn import OF_SERVERS, READS_ON
from orchestrator.contracts import Omission, Plan, RoleCard

Offer = Callable[[Sequence[str]], Awaitable[tuple[str, int, str]]]
"""Tools -> digest and bytes of what endpoints are told of those of servers; or why not, a line."""


@dataclass(frozen=True)
class RolesHere:
    """The roles within reach of a goal, as this worker can serve them."""

    roles: tuple[RoleCard, ...]
    missing: Mapping[str, str]
    """Name -> why it cannot be served."""
    unset: Mapping[str, str]
    """Of the missing, those that want nothing but a setting."""
    without: tuple[tuple[str, str, str], ...] = field(default=())
    """(role, tool, settings) of each tool that a role goes on without."""

    def omissions(self, ready: Plan | None) -> tuple[Omission, ...]:
        """The tools that the roles of a plan go on without; None: those of all roles."""
        planned = None if ready is None else {each.role for each in ready.subtasks}
        found: dict[tuple[str, str], list[str]] = {}
        for role, tool, settings in self.without:
            if planned is None or role in planned:
                found.setdefault((tool, settings), []).append(role)
        return tuple(
            Omission(
                what=f"tool {tool}",
                why=f"it needs {settings}, which is not set here;"
                f" {' and '.join(roles)} go{'es' * (len(roles) == 1)} on without",
            )
            for (tool, settings), roles in found.items()
        )


def serve(
    cards: Iterable[RoleCard],
    lenses: Collection[str],
    tools: Collection[str],
    lacking: Mapping[str, str],
    *,
    use_models: bool,
) -> RolesHere:
    """The roles that can be served with these lenses and tools. `lacking` names tools that are here
    and the settings without which they do nothing; a role that has others goes on without them.
    """
    served: list[RoleCard] = []
    missing, unset = {}, {}
    without: list[tuple[str, str, str]] = []
    for card in cards:
        here = lenses if card.tier == "none" else tools
        ours = [name for name in card.tools if not name.startswith(OF_SERVERS)]
        absent = [name for name in ours if name not in here]
        useless = [name for name in card.tools if name in lacking]
        left = tuple(name for name in card.tools if name not in useless)
        if card.tier != "none" and not use_models:
            missing[card.name] = "needs a model, and this run uses none"
        elif absent:
            missing[card.name] = f"needs {', '.join(absent)}, which this worker does not have"
        elif useless and {*left} <= {READS_ON}:
            needs = "; ".join(f"{name} needs {lacking[name]}" for name in useless)
            missing[card.name] = unset[card.name] = f"{needs}, which is not set here"
        else:
            served.append(card.model_copy(update={"tools": left}) if useless else card)
            without += [(card.name, name, lacking[name]) for name in useless]
    return RolesHere(tuple(served), missing, unset, tuple(without))


def with_effects(here: RolesHere, effects: Collection[str]) -> RolesHere:
    """The same, each role with which of its tools change something outside."""
    roles = tuple(
        card.model_copy(update={"effects": those})
        if (those := tuple(name for name in card.tools if name in effects))
        else card
        for card in here.roles
    )
    return replace(here, roles=roles)


def asking(here: RolesHere, must: Callable[[str], bool]) -> RolesHere:
    """The same, each role with those of its tools of which a person must approve each call."""
    roles = tuple(
        card.model_copy(update={"approval": asks})
        if (asks := tuple(filter(must, card.tools)))
        else card
        for card in here.roles
    )
    return replace(here, roles=roles)


async def nothing_offered(tools: Sequence[str]) -> tuple[str, int, str]:
    """No server is known."""
    return "", 0, f"no MCP server is known here that could offer {', '.join(tools)}"


async def offered(here: RolesHere, plan: Plan | None, offer: Offer) -> RolesHere:
    """The same with what servers offer to the roles of a plan; None: to all roles. A role that
    cannot have what it names cannot be served.
    """
    planned = None if plan is None else {each.role for each in plan.subtasks}
    roles, missing = [], dict(here.missing)
    for card in here.roles:
        wanted = planned is None or card.name in planned
        if not wanted or not any(name.startswith(OF_SERVERS) for name in card.tools):
            roles.append(card)
            continue
        specs, size, why = await offer(card.tools)
        if why:
            missing[card.name] = why
            continue
        told = card.prompt_bytes + size
        roles.append(card.model_copy(update={"specs": specs, "prompt_bytes": told}))
    unset = {name: why for name, why in missing.items() if name not in here.missing}
    return replace(here, roles=tuple(roles), missing=missing, unset={**here.unset, **unset})
