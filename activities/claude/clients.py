"""The client of one process for its endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anthropic


class Clients:
    """Makes a client for each event loop that asks for one, one after the other: connections belong
    to a loop.
    """

    def __init__(self, make: Callable[[], anthropic.AsyncAnthropic]) -> None:
        self._make = make
        self._client: anthropic.AsyncAnthropic | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def current(self) -> anthropic.AsyncAnthropic:
        """Return the client of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop, self._client = loop, self._make()
        return self._client

    async def aclose(self) -> None:
        """Close all connections. More may be opened afterwards, also in another event loop."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
