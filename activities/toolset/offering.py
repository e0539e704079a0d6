"""What MCP servers offer to a run's roles, asked once when the run is prepared and kept for it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from activities.seam import Store
from activities.toolset.mcp import PART, PREFIX, Offered, ServerFailed, offered, server_of
from activities.toolset.servers import Server
from orchestrator.text import one_line

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Offering:
    """The servers of this worker. `flaw` says why none of them is known, if that is so."""

    servers: Mapping[str, Server]
    store: Store
    flaw: str = ""

    async def to(self, tools: Sequence[str]) -> tuple[str, int, str]:
        """Digest and bytes of what an endpoint is told of those of these tools that servers offer;
        or why a role cannot have them. Asks each server that is named, at the same time, and never
        raises: one that does not answer is said, with its command.
        """
        names = [name for name in tools if name.startswith(f"{PREFIX}{PART}")]
        if not names:
            return "", 0, ""
        unknown = [name for name in names if server_of(name, self.servers) is None]
        if unknown:
            why = self.flaw or "there is no such server in the file of MCP servers"
            return "", 0, f"needs {', '.join(unknown)}: {why}"
        asked = {server.name: server for name in names if (server := self._of(name))}
        found = await asyncio.gather(*map(_asked, asked.values()))
        told = {tool.name: dict(tool.told) for each in found if not isinstance(each, str)
                for tool in each.tools}  # fmt: skip
        wrong = [each for each in found if isinstance(each, str)]
        missing = [name for name in names if name not in told and not wrong]
        if missing:
            wrong.append(f"its server does not offer {', '.join(missing)}")
        if wrong:
            return "", 0, "; ".join(wrong)
        content = json.dumps({name: told[name] for name in names}).encode()
        return await self.store.put(content), len(content), ""

    def asks(self, name: str) -> bool:
        """Whether a person must approve each call of a tool of a server, as its file says."""
        server = self._of(name)
        return server is not None and server.asks(name.split(PART, 2)[2])

    def _of(self, name: str) -> Server | None:
        return server_of(name, self.servers)


async def _asked(server: Server) -> Offered | str:
    try:
        found = await offered(server)
        named = () if isinstance(server.approval, bool) else server.approval
        known = [tool.name.split(PART, 2)[2] for tool in found.tools]
        unknown = [name for name in named if name not in known]
        if unknown:
            # A name that is written wrongly would let through what a person is to see.
            names = one_line(", ".join(unknown))
            return f"the MCP server {server.name} does not offer {names}, which its approval names"
        return found
    except ServerFailed as error:
        # What it complained of may hold a secret: the worker's log has it.
        logger.warning("%s", error.told)
        return f"{error} ({server.written})"
