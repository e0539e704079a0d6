"""The tools of agents for `doctor`: what each needs, and which roles have it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from activities.catalogue import Catalogue
from activities.toolset.mcp import server_of
from activities.toolset.servers import BadServers, Server, read_servers
from activities.toolset.shelf import shipped
from activities.toolset.tool import Tool
from cli.diagnosis import Checkup, Mark
from deployment.settings import Settings
from orchestrator.text import one_line

NAME_LETTERS = 60


def hands(
    catalogue: Catalogue, settings: Settings, tools: Mapping[str, Tool] | None = None
) -> list[Checkup]:
    """A line for each tool; a note where a role has one whose key is not set."""
    owners: dict[str, list[str]] = {}
    for role in catalogue.roles.values():
        for name in role.card.tools if role.card.tier != "none" else ():
            owners.setdefault(name, []).append(role.card.name)
    shelf = shipped() if tools is None else tools
    ours = [_line(each, owners.get(each.name, []), settings) for each in shelf.values()]
    return [*ours, *_servers(settings, owners)]


def _servers(settings: Settings, owners: Mapping[str, list[str]]) -> Iterator[Checkup]:
    """A line for each MCP server, none of which is asked anything."""
    try:
        servers = read_servers(settings.mcp_file, os.environ)
    except BadServers as error:
        yield Checkup("agents", "MCP servers", "note", str(error))
        return
    for server in servers.values():
        named = [name for name in owners if server_of(name, servers) == server]
        roles = dict.fromkeys(role for name in named for role in owners[name])
        told = (
            f"of {', '.join(roles)}" if roles else "no role has a tool of it",
            _asks(server),
            f"cannot be used: {server.flaw}" if server.flaw else "",
        )
        mark: Mark = "note" if server.flaw and roles else "ok"
        name = one_line(f"MCP server {server.name}")[:NAME_LETTERS]
        yield Checkup("agents", name, mark, "; ".join(filter(None, told)))


def _asks(server: Server) -> str:
    if isinstance(server.approval, bool):
        return "a person approves each call" if server.approval else ""
    return f"a person approves each call of {one_line(', '.join(server.approval))}"


def _line(tool: Tool, owners: list[str], settings: Settings) -> Checkup:
    needs = [Settings.variable(each) for each in tool.needs]
    unset = [Settings.variable(each) for each in tool.needs if not settings.key(each)]
    told = (
        f"of {', '.join(owners)}" if owners else "no role has it",
        "changes things outside" if tool.effects else "",
        "a person approves each call" if tool.approval else "",
        f"needs {', '.join(needs)}" if needs else "",
        f"{', '.join(unset)} not set: roles go on without it" if unset else "",
    )
    mark: Mark = "note" if unset and owners else "ok"
    return Checkup("agents", tool.name, mark, "; ".join(filter(None, told)))
