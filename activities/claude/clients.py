"""The connections of one process to its endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anthropic

TOGETHER = 8
"""Requests of one client at a time. A client looks at each of its connections whenever one is taken
or given back: with 200 of them that took a twelfth of a worker's processor time.
"""


@dataclass
class _Line:
    client: anthropic.AsyncAnthropic
    flying: int = 0


class Clients:
    """Makes as many clients as the requests under way need. Used from one event loop at a time,
    because connections belong to a loop.
    """

    def __init__(self, make: Callable[[int], anthropic.AsyncAnthropic], connections: int) -> None:
        """`make` is called with the connections that one client may have; all together have
        `connections`.
        """
        self._make = make
        self._each = min(TOGETHER, connections)
        self._most = connections // self._each
        self._lines: list[_Line] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def borrow(self) -> Iterator[anthropic.AsyncAnthropic]:
        """Lend a client to one request, which is under way as long as the block."""
        line = self._free()
        line.flying += 1
        try:
            yield line.client
        finally:
            line.flying -= 1

    async def aclose(self) -> None:
        """Close all connections. More may be opened afterwards, also in another event loop."""
        lines, self._lines = self._lines, []
        await asyncio.gather(*(line.client.close() for line in lines))

    def _free(self) -> _Line:
        """Return the first client with room, so that connections are used again; beyond the most
        clients, the one with the fewest requests.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lines = loop, []
        for line in self._lines:
            if line.flying < self._each:
                return line
        if len(self._lines) < self._most:
            self._lines.append(_Line(self._make(self._each)))
            return self._lines[-1]
        return min(self._lines, key=lambda line: line.flying)
