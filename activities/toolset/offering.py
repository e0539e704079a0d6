"""What MCP servers offer to a run's roles, asked once when the run is prepared and kept for it. The
file that names the servers is read whenever somebody asks: what it says now is what holds.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from activities.seam import Store
from activities.serving import FromServers
from activities.toolset.mcp import PART, PREFIX, Offered, ServerFailed, offered, server_of
from activities.toolset.servers import BadServers, Server
from orchestrator.contracts import Outlet
from orchestrator.text import one_line

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Offering:
    """The servers of this worker. `read` looks into their file; BadServers if it is none."""

    read: Callable[[], Mapping[str, Server]]
    store: Store

    def known(self) -> tuple[Mapping[str, Server], str]:
        """The servers as the file has them now, and why none of them is known, if that is so."""
        try:
            return self.read(), ""
        except BadServers as error:
            return {}, str(error)

    def outlets(self) -> tuple[Outlet, ...]:
        """Where the words of a call go, by server."""
        return tuple(
            Outlet(
                tool=PART.join((PREFIX, each.name, "")),
                what=f"MCP server {each.name}, {each.place}",
            )
            for each in self.known()[0].values()
            if each.place
        )

    def asks(self, name: str) -> bool:
        """Whether a person must approve each call of a tool of a server, as its file says."""
        server = server_of(name, self.known()[0])
        return server is not None and server.asks(name.split(PART, 2)[2])

    async def to(self, wanted: Mapping[str, Sequence[str]]) -> Mapping[str, FromServers]:
        """What servers offer of the tools that each role names. Asks each server that is named, all
        at the same time, and never raises: of one that does not answer, the roles are told so.
        """
        servers, flaw = self.known()
        names = {name for tools in wanted.values() for name in tools}
        asked = {found.name: found for name in names if (found := server_of(name, servers))}
        answers = dict(zip(asked, await asyncio.gather(*map(_asked, asked.values())), strict=True))
        specs = {
            tool.name: dict(tool.told)
            for answer in answers.values()
            if isinstance(answer, Offered)
            for tool in answer.tools
        }
        unknown = flaw or "there is no such server in the file of MCP servers"
        absent = {
            name: _why(name, server, answers[server.name]) if server else unknown
            for name in names - {*specs}
            for server in (server_of(name, servers),)
        }
        return {role: await self._told(tools, specs, absent) for role, tools in wanted.items()}

    async def _told(
        self, tools: Sequence[str], specs: Mapping[str, object], absent: Mapping[str, str]
    ) -> FromServers:
        offered = {name: specs[name] for name in tools if name in specs}
        missing = {name: absent[name] for name in tools if name in absent}
        if not offered:
            return FromServers(absent=missing)
        content = json.dumps(offered).encode()
        return FromServers(await self.store.put(content), len(content), missing)


def _why(name: str, server: Server, answer: Offered | str) -> str:
    """Why a server does not offer a tool, as anybody may be told."""
    if isinstance(answer, str):
        return answer
    flaw = answer.flaws.get(name)
    if flaw:
        return f"as the MCP server {server.name} describes it, it {flaw}"
    return f"the MCP server {server.name} does not offer it"


async def _asked(server: Server) -> Offered | str:
    try:
        found = await offered(server)
        return unasked(server, found) or found
    except ServerFailed as error:
        # Its arguments and what it complained of may hold secrets: the worker's log has them.
        logger.warning("%s", error.told)
        return f"{error} ({server.place})" if server.place else str(error)


def unasked(server: Server, found: Offered) -> str:
    """Why a server cannot be used of whose tools a person must approve some; empty: it can. A name
    that is written wrongly would let through what a person is to see.
    """
    known = [tool.name.split(PART, 2)[2] for tool in found.tools]
    named = () if isinstance(server.approval, bool) else server.approval
    names = one_line(", ".join(name for name in named if name not in known))
    return (
        f"the MCP server {server.name} does not offer {names}, which its approval names"
        if names
        else ""
    )
