"""Decide which roles a run may use on this worker, why not the others, and what it goes without.
Pure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.calls.turn import OF_SERVERS, READS_ON
from holdfast.contracts import Omission, Outlet, PinnedInput, Plan, RoleCard
from holdfast.text import pluralize


@dataclass(frozen=True)
class FromServers:
    """Tools of MCP servers for one role."""

    specs: str = ""
    """Digest of what endpoints are told of it; empty: nothing is offered."""
    size: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    """Each tool that the role goes without, and why: a line."""
    unreached: tuple[str, ...] = ()
    """The absent tools whose servers could not be asked."""
    recalled: tuple[str, ...] = ()
    """A line for each server whose earlier list is used, with the reason."""


NO_MODEL = "needs a model, and this run uses none: --models asks them"
Offer = Callable[[Mapping[str, Sequence[str]]], Awaitable[Mapping[str, FromServers]]]
"""(the tools of servers that each role names, by role) -> what each of these roles is offered."""


@dataclass(frozen=True)
class RolesHere:
    """The roles within reach of a goal, as this worker can serve them."""

    roles: tuple[RoleCard, ...]
    missing: Mapping[str, str]
    """Name -> why it cannot be served."""
    unset: Mapping[str, str]
    """Those of the missing roles that need nothing but settings, packages or servers."""
    without: tuple[tuple[str, str, str], ...] = field(default=())
    """(role, tool, why) of each tool that a role goes on without."""
    unreached: Mapping[str, str] = field(default_factory=dict)
    """Role -> the servers that could not be asked for its tools, and why: a line."""
    recalled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Lines on servers whose earlier list is used -> the roles they serve."""

    def omissions(self, ready: Plan | None) -> tuple[Omission, ...]:
        """Return the tools that the roles of a plan go on without; None: those of all roles. What
        the same roles go without for the same reason is one line.
        """
        planned = None if ready is None else roles_in(ready)
        roles_of: dict[tuple[str, str], list[str]] = {}
        for role, tool, why in self.without:
            if planned is None or role in planned:
                roles_of.setdefault((tool, why), []).append(role)
        tools_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (tool, why), roles in roles_of.items():
            tools_of.setdefault((why, tuple(roles)), []).append(tool)
        gone = tuple(
            Omission(
                what=f"tool{'s' * (len(tools) != 1)} {', '.join(tools)}",
                why=f"{why}; {' and '.join(roles)} go{'es' * (len(roles) == 1)} on without",
                roles=roles,
            )
            for (why, roles), tools in tools_of.items()
        )
        anew = (
            Omission(what="a new list of tools", why=why, roles=roles)
            for why, roles in self.recalled.items()
        )
        return (*gone, *anew)

    def named(self, roles: Collection[str]) -> tuple[Omission, ...]:
        """Return what these roles, which somebody named, lack because a server could not be
        asked.
        """
        return tuple(
            Omission(what=f"The tools of role {role}", why=f"not reachable: {why}")
            for role, why in self.unreached.items()
            if role in roles
        )

    def reached(self, outlets: Iterable[Outlet]) -> tuple[Outlet, ...]:
        """Return the outlets that a tool of a role leads to."""
        return tuple(
            each for each in outlets if any(each.serves(card.tools) for card in self.roles)
        )


def serve(
    cards: Iterable[RoleCard],
    lenses: Collection[str],
    tools: Collection[str],
    lacking: Mapping[str, str],
    *,
    use_models: bool,
) -> RolesHere:
    """Return the roles that can be served with these lenses and tools. `lacking` says of tools that
    are here why they do nothing, as the rest of a sentence: "needs SETTING, which is not set here".
    A role that has other tools goes on without them.
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
            missing[card.name] = NO_MODEL
        elif absent:
            missing[card.name] = f"needs {', '.join(absent)}, which this worker does not have"
        elif useless and {*left} <= {READS_ON}:
            needs = "; ".join(f"{name} {lacking[name]}" for name in useless)
            missing[card.name] = unset[card.name] = needs
        else:
            update = {"tools": left, "without": tuple(useless)}
            served.append(card.model_copy(update=update) if useless else card)
            without += [(card.name, name, f"it {lacking[name]}") for name in useless]
    return RolesHere(tuple(served), missing, unset, tuple(without))


def bar_teams(cards: Iterable[RoleCard], path: Sequence[str]) -> dict[str, str]:
    """Return the teams that a run below these teams may not have once more, and why."""
    above = " → ".join(path)
    return {
        card.name: f"it is a team above this run ({above}); `repeat` in its file allows more"
        for card in cards
        if card.team and path.count(card.name) >= card.repeat
    }


def mark_tools(
    here: RolesHere,
    effects: Collection[str],
    volatile: Collection[str],
    asks: Callable[[str], bool],
) -> RolesHere:
    """Note for each role which of its tools change something outside, which may bring another
    result later, and which need a person's approval of each call.
    """
    roles = []
    for card in here.roles:
        marks = {
            "effects": tuple(name for name in card.tools if name in effects),
            "volatile": tuple(name for name in card.tools if name in volatile),
            "approval": tuple(filter(asks, card.tools)),
        }
        roles.append(
            card.model_copy(update={name: those for name, those in marks.items() if those})
        )
    return replace(here, roles=tuple(roles))


async def offer_nothing(wanted: Mapping[str, Sequence[str]]) -> Mapping[str, FromServers]:
    """Offer nothing: no server is known."""
    why = "no MCP server is known here"
    return {role: FromServers(absent=dict.fromkeys(tools, why)) for role, tools in wanted.items()}


async def add_offers(here: RolesHere, plan: Plan | None, offer: Offer) -> RolesHere:
    """Add what servers offer to the roles of a plan; None: to all roles. A role goes on without
    what it names and cannot have; one that has no other tool cannot be served.
    """
    planned = None if plan is None else roles_in(plan)
    wanted = {
        card.name: [name for name in card.tools if name.startswith(OF_SERVERS)]
        for card in here.roles
        if planned is None or card.name in planned
    }
    told = await offer({role: names for role, names in wanted.items() if names})
    roles, missing, without = [], {}, [*here.without]
    unreached = {
        role: "; ".join(dict.fromkeys(each.absent[name] for name in each.unreached))
        for role, each in told.items()
        if each.unreached
    }
    for card in here.roles:
        found = told.get(card.name, FromServers())
        left = tuple(name for name in card.tools if name not in found.absent)
        if found.absent and {*left} <= {READS_ON}:
            whys = dict.fromkeys(found.absent.values())
            missing[card.name] = f"it goes without {', '.join(found.absent)}: {'; '.join(whys)}"
            continue
        without += [(card.name, name, why) for name, why in found.absent.items()]
        size = card.prompt_bytes + found.size
        update = {
            "tools": left,
            "without": (*card.without, *found.absent),
            "specs": found.specs,
            "prompt_bytes": size,
        }
        roles.append(card.model_copy(update=update) if card.name in told else card)
    recalled: dict[str, tuple[str, ...]] = {}
    for role, each in told.items():
        for line in each.recalled:
            recalled[line] = (*recalled.get(line, ()), role)
    return RolesHere(
        tuple(roles),
        missing={**here.missing, **missing},
        unset={**here.unset, **missing},
        without=tuple(without),
        unreached=unreached,
        recalled=recalled,
    )


def roles_in(plan: Plan) -> frozenset[str]:
    """Return the names of the roles that a plan has at work, or in reserve."""
    return frozenset(name for each in plan.subtasks for name in (each.role, each.secondary) if name)


def drop_inputs(plan: Plan | None, absent: Collection[str]) -> Plan | None:
    """Return a playbook's plan without these inputs, which are optional and were not given."""
    if plan is None or not absent:
        return plan
    subtasks = tuple(
        each.model_copy(
            update={"inputs": tuple(name for name in each.inputs if name not in absent)}
        )
        for each in plan.subtasks
    )
    return plan.model_copy(update={"subtasks": subtasks})


def omit_roles(roles: Mapping[str, str]) -> tuple[Omission, ...]:
    """Return what to say of roles that a planner is not offered."""
    return tuple(Omission(what=f"role {name}", why=why) for name, why in roles.items())


NO_CHANGE = "no text differs from the base"
WHOLE_TREE = "it looks at changes, and the whole tree is reviewed"
IdleLenses = Callable[[str], Awaitable[Mapping[str, str]]]
"""Digest of a snapshot -> the lenses that could look at nothing of it, each with what it lacks;
empty: no file is for it.
"""


async def find_none_idle(digest: str) -> Mapping[str, str]:
    """Find that every lens has something to look at."""
    del digest
    return {}


async def drop_idle(
    plan: Plan,
    roles: Collection[RoleCard],
    inputs: Iterable[PinnedInput],
    idle_lenses: IdleLenses,
    only_changes: Collection[str] = (),
) -> tuple[Plan, tuple[Omission, ...]]:
    """Return the plan without the subtasks of lenses that could look at nothing, and what to say of
    those that lack something. `only_changes`: roles that look at changes alone.
    """
    pinned = next((each for each in inputs if each.kind == "repository"), None)
    idle = await idle_lenses(pinned.digest) if pinned else {}
    whys = {
        card.name: idle[card.tools[0]]
        for card in roles
        if card.tier == "none" and card.tools and card.tools[0] in idle
    }
    if pinned and not pinned.base:
        whys |= dict.fromkeys(only_changes, WHOLE_TREE)
    if pinned and pinned.change is not None and not pinned.change.files:
        whys |= dict.fromkeys((each.name for each in roles if each.tier != "none"), NO_CHANGE)
    kept, omissions = keep_servable(plan, whys)
    assert kept is not None
    return kept, tuple(each for each in omissions if each.why)


def keep_servable(
    plan: Plan | None, missing: Mapping[str, str]
) -> tuple[Plan | None, tuple[Omission, ...]]:
    """Return the part of a playbook's plan that can be served here, and what to say of the rest, a
    line for each reason.
    """
    if plan is None:
        return None, ()
    left_out = [each for each in plan.subtasks if each.role in missing]
    kept = tuple(each for each in plan.subtasks if each.role not in missing)
    titles: dict[str, list[str]] = {}
    for each in left_out:
        titles.setdefault(missing[each.role], []).append(each.title)
    agents = len(titles.pop(NO_MODEL, ()))
    omissions = [Omission(what=", ".join(what), why=why) for why, what in titles.items()]
    if agents:
        why = "no model; set ANTHROPIC_API_KEY and run with --models"
        omissions.append(Omission(what=pluralize(agents, "agent"), why=why, agents=agents))
    gone = {each.id for each in left_out}
    kept = tuple(
        each.model_copy(
            update={
                "depends_on": tuple(edge for edge in each.depends_on if edge not in gone),
                "secondary": "" if each.secondary in missing else each.secondary,
            }
        )
        for each in kept
    )
    return plan.model_copy(update={"subtasks": kept}), tuple(omissions)
