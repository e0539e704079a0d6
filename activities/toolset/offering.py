"""Find out what MCP servers offer to a run's roles, once when the run is prepared.
The file that names the servers is read each time: what it says now holds.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.activities.toolset.mcp import (
    PART,
    PREFIX,
    Offered,
    ServerFailed,
    find_server,
    list_tools,
    make_offer,
)
from holdfast.activities.toolset.remembered import ToolLists
from holdfast.activities.toolset.servers import BadServers, Server
from holdfast.activities.toolset.serving import FromServers
from holdfast.contracts import Outlet
from holdfast.ports import Store
from holdfast.text import one_line

logger = logging.getLogger(__name__)

GOES = 2
"""Attempts to ask a server that may answer yet."""
ALL_SECONDS = 150.0
"""Time limit of all of it, waiting included: half of what preparing a run may take."""


@dataclass(frozen=True)
class Offering:
    """The servers of this worker. `read` reads their file, and raises BadServers if it cannot be
    used.
    """

    read: Callable[[], Mapping[str, Server]]
    store: Store
    remembered: ToolLists

    def known(self) -> tuple[Mapping[str, Server], str]:
        """Return the servers as the file has them now, and why none is known, if so."""
        try:
            return self.read(), ""
        except BadServers as error:
            return {}, str(error)

    def outlets(self) -> tuple[Outlet, ...]:
        """Return where the words of a call go, by server."""
        return tuple(
            Outlet(
                tool=PART.join((PREFIX, each.name, "")),
                what=f"MCP server {each.name}, {each.place}",
            )
            for each in self.known()[0].values()
            if each.place
        )

    def asks(self, name: str) -> bool:
        """True if a person must approve each call of a server's tool, as its file says."""
        server = find_server(name, self.known()[0])
        return server is not None and server.asks(name.split(PART, 2)[2])

    async def offer_to(self, wanted: Mapping[str, Sequence[str]]) -> Mapping[str, FromServers]:
        """Return what servers offer of the tools that each role names. Asks all servers that are
        named at the same time, and never raises: roles are told of one that does not answer, and
        one that is too slow is taken at what it told last.
        """
        servers, flaw = self.known()
        names = {name for tools in wanted.values() for name in tools}
        asked = {found.name: found for name in names if (found := find_server(name, servers))}
        heard = await asyncio.gather(*map(self._ask, asked.values()))
        answers = dict(zip(asked, heard, strict=True))
        specs = {
            tool.name: dict(tool.spec)
            for answer in answers.values()
            if answer.offer
            for tool in answer.offer.tools
        }
        unknown = flaw or "there is no such server in the file of MCP servers"
        absent = {
            name: _why(name, server, answers[server.name]) if server else unknown
            for name in names - {*specs}
            for server in (find_server(name, servers),)
        }
        return {
            role: await self._tell(tools, specs, absent, answers, servers)
            for role, tools in wanted.items()
        }

    async def _tell(
        self,
        tools: Sequence[str],
        specs: Mapping[str, object],
        absent: Mapping[str, str],
        answers: Mapping[str, _Answer],
        servers: Mapping[str, Server],
    ) -> FromServers:
        of = {name: answers[each.name] for name in tools if (each := find_server(name, servers))}
        told = FromServers(
            absent={name: absent[name] for name in tools if name in absent},
            unreached=tuple(name for name, answer in of.items() if answer.unreached),
            recalled=tuple(dict.fromkeys(each.recalled for each in of.values() if each.recalled)),
        )
        offered = {name: specs[name] for name in tools if name in specs}
        if not offered:
            return told
        content = json.dumps(offered).encode()
        return replace(told, specs=await self.store.put(content), size=len(content))

    async def _ask(self, server: Server) -> _Answer:
        try:
            async with asyncio.timeout(ALL_SECONDS):
                return await self._hear(server)
        except TimeoutError:
            return self._recall(server, ServerFailed(server, "did not get its turn", kind="late"))

    async def _hear(self, server: Server) -> _Answer:
        """Return what a server offers; one that is too slow is asked once more."""
        failed = None
        for _ in range(GOES):
            try:
                found = await list_tools(server)
            except ServerFailed as error:
                failed = error
                # Its arguments and what it complained of may hold secrets: the log has them.
                logger.warning("%s", error.told)
                if error.kind == "gone":
                    break
                continue
            if why := describe_unasked(server, found):
                return _Answer(why)
            await asyncio.to_thread(self.remembered.keep, server, found.listed)
            return _Answer(offer=found)
        assert failed is not None, "it was asked"
        return self._recall(server, failed)

    def _recall(self, server: Server, error: ServerFailed) -> _Answer:
        """Return what stands in for a server that did not list its tools: its last list, if it was
        only too slow.
        """
        why = f"{error} ({server.place})" if server.place else str(error)
        told = self.remembered.last(server) if error.kind == "late" else None
        found = make_offer(server, told.tools) if told else None
        if told is None or found is None or describe_unasked(server, found):
            return _Answer(why, unreached=not server.flaw)
        recalled = f"{why}; what it told on {told.at:%Y-%m-%d at %H:%M} UTC stands"
        return _Answer(offer=found, recalled=recalled)


@dataclass(frozen=True)
class _Answer:
    """Answer of a server."""

    why: str = ""
    """Why it offers nothing."""
    offer: Offered | None = None
    unreached: bool = False
    """True if nobody knows what it would have offered."""
    recalled: str = ""
    """Why an earlier run's list is used; empty: the server answered this run."""


def _why(name: str, server: Server, answer: _Answer) -> str:
    """Return why a server does not offer a tool, as anybody may be told."""
    if answer.offer is None:
        return answer.why
    flaw = answer.offer.flaws.get(name)
    if flaw:
        return f"as the MCP server {server.name} describes it, it {flaw}"
    return f"the MCP server {server.name} does not offer it"


def describe_unasked(server: Server, found: Offered) -> str:
    """Return why a server cannot be used, some of whose tools a person must approve; empty: it can.
    A name that is written wrongly would let through what a person is to see.
    """
    known = [tool.name.split(PART, 2)[2] for tool in found.tools]
    named = () if isinstance(server.approval, bool) else server.approval
    names = one_line(", ".join(name for name in named if name not in known))
    return (
        f"the MCP server {server.name} does not offer {names}, which its approval names"
        if names
        else ""
    )
