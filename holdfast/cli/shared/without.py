"""What a run goes without here, as far as a starter can tell: said before it begins."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.calls.turn import OF_SERVERS, READS_ON
from holdfast.cli.screen.streams import say_all
from holdfast.contracts import Goal, RoleCard
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.text import one_line


def say_without(goal: Goal, catalogue: Catalogue, settings: Settings, *, embedded: bool) -> None:
    """Print which roles a planner is not offered, and which tools a playbook's roles lack.

    `embedded`: the worker will have these settings and files; another worker's are not known here.
    """
    if goal.use_models and embedded:
        tools = _tools(goal, catalogue, settings) if goal.playbook else ()
        roles = _roles(goal, catalogue) if goal.plan is None else ()
        lines = [*roles, *tools]
        say_all(f"Goes without {one_line(each)}" for each in lines)


def _roles(goal: Goal, catalogue: Catalogue) -> Iterator[str]:
    """Yield the role files that cannot be used: the playbook's, and common ones if a planner
    chooses.
    """
    playbook = catalogue.playbooks.get(goal.playbook)
    planned = playbook is None or playbook.plan is None
    lines = (
        f"role {each.name}: {each.why}"
        for each in catalogue.unusable_roles
        if each.playbook == goal.playbook or (planned and not each.playbook)
    )
    # Of one name that is defined twice each file says the same.
    yield from dict.fromkeys(lines)


def _tools(goal: Goal, catalogue: Catalogue, settings: Settings) -> Iterator[str]:
    """Yield the roles that keep no tool, then the tools that others go on without."""
    own = [
        role.card
        for role in catalogue.roles.values()
        if role.playbook == goal.playbook and role.card.tier != "none"
    ]
    gone = _find_absent({name for card in own for name in card.tools}, settings)
    kept = list[RoleCard]()
    for card in own:
        lost = [name for name in card.tools if name in gone]
        if lost and {*card.tools} <= {*lost, READS_ON}:
            whys = "; ".join(dict.fromkeys(gone[name] for name in lost))
            yield f"role {card.name}, which has no tool but {', '.join(lost)}: {whys}"
        else:
            kept.append(card)
    for name, why in gone.items():
        if lack := [card.name for card in kept if name in card.tools]:
            yield f"tool {name}, of {', '.join(lack)}: {why}"


def _find_absent(names: Collection[str], settings: Settings) -> dict[str, str]:
    """Return why each of these tools is absent: a setting, packages, or an entry in the file of
    servers is missing. What a server offers is known only in the run.
    """
    # All tools and what speaks with servers: commands that start nothing do not wait for them.
    from holdfast.activities.toolset.shelf import tools_for
    from holdfast.cli.checks.hands import lacking_for

    ours = tools_for(settings.project)
    lacks = {name: lacking_for(ours[name], settings) for name in names if name in ours}
    gone = {name: f"it {why}" for name, why in lacks.items() if why}
    gone |= _no_server([name for name in names if name.startswith(OF_SERVERS)], settings)
    return {name: f"{gone[name]}; see: {STARTER} doctor" for name in sorted(gone)}


def _no_server(names: Collection[str], settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each of these tools whose server cannot be there, and why."""
    from holdfast.activities.toolset.mcp import find_server
    from holdfast.activities.toolset.servers import BadServers, Server, read_servers

    servers: Mapping[str, Server] = {}
    unknown = f"there is no such server in {settings.mcp_file.name}"
    try:
        servers = read_servers(settings.mcp_file, os.environ) if names else {}
    except BadServers as error:
        unknown = str(error)
    for name in names:
        server = find_server(name, servers)
        if server is None:
            yield name, unknown
        elif server.flaw:
            yield name, f"the MCP server {server.name} cannot be used: {server.flaw}"
