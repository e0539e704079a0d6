"""The tools that roles can name, for `doctor`: what each needs, whose it is, and MCP servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.tools import OF_CLAUDE_CODE
from holdfast.activities.tools.run_python import run_python
from holdfast.activities.toolset.mcp import PART, Offered, ServerFailed, find_server, list_tools
from holdfast.activities.toolset.offering import describe_unasked
from holdfast.activities.toolset.servers import BadServers, Server, read_servers
from holdfast.activities.toolset.shelf import find_lacking, source_of, tools_for
from holdfast.activities.toolset.tool import Tool
from holdfast.calls.turn import OF_SERVERS, READS_ON, WEB_FETCH, WEB_SEARCH
from holdfast.cli.checks.diagnosis import Checkup, Mark
from holdfast.deployment.address import address_of
from holdfast.deployment.settings import Settings
from holdfast.text import one_line
from holdfast.untrusted.redact import redact

MOST_TOOLS = 50
"""Tools of one server that are named."""

Owners = Mapping[str, list[str]]
"""The roles that have a tool, by its name."""


def owners_in(catalogue: Catalogue) -> Owners:
    """Return the roles with a model, by the tools that they name."""
    owners: dict[str, list[str]] = {}
    for role in catalogue.roles.values():
        for name in role.card.tools if role.card.tier != "none" else ():
            owners.setdefault(name, []).append(role.card.name)
    return owners


def check_tools(
    catalogue: Catalogue, settings: Settings, tools: Mapping[str, Tool] | None = None
) -> list[Checkup]:
    """Return a line for each tool of ours; a note where one is left out, and why."""
    owners = owners_in(catalogue)
    shelf = tools_for(settings.project) if tools is None else tools
    return [_line(each, owners.get(each.name, []), settings) for each in shelf.values()]


def _line(tool: Tool, owners: list[str], settings: Settings) -> Checkup:
    needs = [Settings.variable(each) for each in tool.needs]
    own = settings.endpoint_web and tool.name in (WEB_SEARCH, WEB_FETCH)
    unset = lacking_for(tool, settings)
    others = [other for other, ours in OF_CLAUDE_CODE.items() if tool.name in ours]
    source = source_of(tool)
    told = (
        source,
        _tell_owners(owners),
        f"a role may write {' or '.join(others)} for it" if others else "",
        "changes things outside" if tool.effects else "",
        "a person approves each call" if tool.approval else "",
        f"needs {', '.join(needs)}" if needs and not own and not unset else "",
        "the endpoint's own (HOLDFAST_ENDPOINT_WEB)" if own else "",
        _elsewhere(tool, settings),
        f"{unset}: left out" if unset else "",
    )
    mark: Mark = "note" if unset else "fact" if source else "ok"
    return Checkup("agents", tool.name, mark, "; ".join(filter(None, told)))


def lacking_for(tool: Tool, settings: Settings) -> str:
    """Return what a tool lacks here, without which it is left out; empty if it works."""
    return find_lacking(tool, settings, endpoint_web=settings.endpoint_web)


def _elsewhere(tool: Tool, settings: Settings) -> str:
    """Return where a tool of this machine sends what an agent gives it; empty if nowhere."""
    if tool is run_python and settings.python_sandbox:
        key = "a key" if settings.python_sandbox_key else "no key"
        return f"its code is sent to {address_of(settings.python_sandbox)}, with {key}"
    return ""


def _tell_owners(owners: list[str]) -> str:
    return f"of {', '.join(owners)}" if owners else "no role has it"


# ---------------------------------------------------------------- MCP servers


async def check_servers(
    catalogue: Catalogue, settings: Settings, tools: Mapping[str, Tool] | None = None
) -> AsyncIterator[Checkup]:
    """Yield a line for each MCP server and each of its tools, for each tool that a role names and
    no server offers, and for each role that goes on without one.

    All servers are asked at once, each no longer than a run would.
    """
    every = owners_in(catalogue)
    owners = {name: roles for name, roles in every.items() if name.startswith(OF_SERVERS)}
    ours = tools_for(settings.project) if tools is None else tools
    gone = [name for name, tool in ours.items() if name in every and lacking_for(tool, settings)]
    try:
        servers = read_servers(settings.mcp_file, os.environ)
    except BadServers as error:
        yield Checkup("mcp", "file", "note", f"{error}; its servers are left out")
        servers = {}
    asked = {name: asyncio.create_task(_ask(each)) for name, each in servers.items()}
    offers, told = set[str](), set[str]()
    try:
        for name, answer in asked.items():
            for check in _server(servers[name], await answer, owners):
                if check.mark == "ok":
                    offers.add(check.name)
                told.add(check.name)
                yield check
    finally:
        for answer in asked.values():
            answer.cancel()
    gone += [name for name in owners if name not in offers]
    for name in gone:
        if name in owners and name not in told:
            known = (
                "its server does not offer it" if find_server(name, servers) else "no such server"
            )
            yield Checkup("mcp", name, "note", f"{_tell_owners(owners[name])}; {known}: left out")
    for check in check_roles(catalogue, gone):
        yield check


def check_roles(catalogue: Catalogue, gone: Collection[str]) -> Iterator[Checkup]:
    """Yield what each role goes on without; a role without any of its tools cannot be used."""
    for role in catalogue.roles.values():
        tools = role.card.tools if role.card.tier != "none" else ()
        lost = [name for name in tools if name in gone]
        without = f"goes on without {', '.join(lost)}"
        if lost and {*tools} <= {*lost, READS_ON}:
            without = (
                f"cannot be used: it has no tool but {', '.join(lost)}, left out as said above"
            )
        if lost:
            yield Checkup("roles", f"role {role.card.name}", "note", without)


async def _ask(server: Server) -> Offered | str:
    """Return what a server offers, or why it does not, in its own words but without its arguments:
    a diagnosis is shown to others.
    """
    try:
        found = await list_tools(server)
        return describe_unasked(server, found) or found
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
        checks.append(Checkup("mcp", name, "ok", _tell_owners(owners.get(name, [])) + asks))
    if count > MOST_TOOLS:
        checks.append(Checkup("mcp", server.name, "ok", f"and {count - MOST_TOOLS} more tools"))
    for name, why in answer.flaws.items():
        if name not in tools:
            told = f"{_tell_owners(owners.get(name, []))}; left out, as it {why}"
            checks.append(Checkup("mcp", name, "note", told))
    return checks
