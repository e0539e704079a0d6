"""The tools that roles can name, for `doctor`: what each needs, whose it is, and MCP servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping

from activities.catalogue import Catalogue
from activities.catalogue_tools import OF_CLAUDE_CODE
from activities.code_review.redact import redact
from activities.tools.run_python import run_python
from activities.toolset.mcp import PART, Offered, ServerFailed, offered, server_of
from activities.toolset.offering import unasked
from activities.toolset.servers import BadServers, Server, read_servers
from activities.toolset.shelf import shipped
from activities.toolset.tool import Tool
from cli.diagnosis import Checkup, Mark
from deployment.address import address_of
from deployment.settings import Settings
from orchestrator.calls.turn import OF_SERVERS, WEB_FETCH, WEB_SEARCH
from orchestrator.text import one_line

MOST_TOOLS = 50
"""Tools of one server that are named."""

Owners = Mapping[str, list[str]]
"""The roles that have a tool, by its name."""


def owners_in(catalogue: Catalogue) -> Owners:
    """The roles with a model, by the tools that they name."""
    owners: dict[str, list[str]] = {}
    for role in catalogue.roles.values():
        for name in role.card.tools if role.card.tier != "none" else ():
            owners.setdefault(name, []).append(role.card.name)
    return owners


def hands(
    catalogue: Catalogue, settings: Settings, tools: Mapping[str, Tool] | None = None
) -> list[Checkup]:
    """A line for each tool of ours; a note where a role has one whose key is not set."""
    owners = owners_in(catalogue)
    shelf = shipped() if tools is None else tools
    return [_line(each, owners.get(each.name, []), settings) for each in shelf.values()]


def _line(tool: Tool, owners: list[str], settings: Settings) -> Checkup:
    needs = [Settings.variable(each) for each in tool.needs]
    own = settings.endpoint_web and tool.name in (WEB_SEARCH, WEB_FETCH)
    unset = [Settings.variable(each) for each in tool.needs if not settings.key(each) and not own]
    others = [other for other, ours in OF_CLAUDE_CODE.items() if tool.name in ours]
    told = (
        _owned(owners),
        f"a role may write {' or '.join(others)} for it" if others else "",
        "changes things outside" if tool.effects else "",
        "a person approves each call" if tool.approval else "",
        f"needs {', '.join(needs)}" if needs and not own else "",
        "the endpoint's own (HOLDFAST_ENDPOINT_WEB)" if own else "",
        _elsewhere(tool, settings),
        f"{', '.join(unset)} not set: roles go on without it" if unset else "",
    )
    mark: Mark = "note" if unset and owners else "ok"
    return Checkup("agents", tool.name, mark, "; ".join(filter(None, told)))


def _elsewhere(tool: Tool, settings: Settings) -> str:
    """Where what an agent gives to a tool of this machine goes all the same."""
    if tool is run_python and settings.python_sandbox:
        key = "a key" if settings.python_sandbox_key else "no key"
        return f"its code is sent to {address_of(settings.python_sandbox)}, with {key}"
    return ""


def _owned(owners: list[str]) -> str:
    return f"of {', '.join(owners)}" if owners else "no role has it"


# ---------------------------------------------------------------- MCP servers


async def mcp_servers(catalogue: Catalogue, settings: Settings) -> AsyncIterator[Checkup]:
    """A line for each server, whether it starts, and for each of its tools; what a role names and
    nobody offers. All are asked side by side, each no longer than a run would.
    """
    owners = {
        name: roles for name, roles in owners_in(catalogue).items() if name.startswith(OF_SERVERS)
    }
    try:
        servers = read_servers(settings.mcp_file, os.environ)
    except BadServers as error:
        yield Checkup("mcp", "file", "note", f"{error}; roles go on without its servers")
        servers = {}
    asked = {name: asyncio.create_task(_asked(each)) for name, each in servers.items()}
    offers = set()
    try:
        for name, answer in asked.items():
            for check in _server(servers[name], await answer, owners):
                offers.add(check.name)
                yield check
    finally:
        for answer in asked.values():
            answer.cancel()
    for name, roles in owners.items():
        if name not in offers:
            known = "its server does not offer it" if server_of(name, servers) else "no such server"
            yield Checkup("mcp", name, "note", f"{_owned(roles)}; {known}: roles go on without it")


async def _asked(server: Server) -> Offered | str:
    """What a server offers, or why it does not, with its own words but not its arguments: what a
    diagnosis prints is shown to others.
    """
    try:
        found = await offered(server)
        return unasked(server, found) or found
    except ServerFailed as error:
        said = f"; it said: {redact(one_line(error.complaint))}" if error.complaint else ""
        return f"{error} ({server.place}){said}" if server.place else str(error)


def _server(server: Server, answer: Offered | str, owners: Owners) -> list[Checkup]:
    if isinstance(answer, str):
        return [Checkup("mcp", server.name, "note", answer)]
    count = len(answer.tools)
    told = f"{server.place} starts and offers {count} tool{'s' * (count != 1)}"
    checks = [Checkup("mcp", server.name, "ok", told)]
    # Those that a role names first: of a long list, nobody misses the others.
    tools = sorted((each.name for each in answer.tools), key=lambda name: name not in owners)
    for name in tools[:MOST_TOOLS]:
        asks = "; a person approves each call" if server.asks(name.split(PART, 2)[2]) else ""
        checks.append(Checkup("mcp", name, "ok", _owned(owners.get(name, [])) + asks))
    if count > MOST_TOOLS:
        checks.append(Checkup("mcp", server.name, "ok", f"and {count - MOST_TOOLS} more tools"))
    for name, why in answer.flaws.items():
        if name not in tools:
            told = f"{_owned(owners.get(name, []))}; left out, as it {why}"
            checks.append(Checkup("mcp", name, "note", told))
    return checks
