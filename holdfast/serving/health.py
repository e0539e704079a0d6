"""Answers whether this worker lives and is ready, for whoever supervises it.

    GET /live     200 while the process turns; silence means that it hangs
    GET /ready    200 while the server hears this worker ask for work; 503 with why otherwise

It tells nobody anything else, and needs no web server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from temporalio.service import RPCError

from holdfast.errors import Refused

READ_SECONDS = 5.0
LOOK_SECONDS = 5.0
"""How long an answer of the server serves."""
MOST_BYTES = 8_192
Why = Callable[[], Awaitable[str]]
"""Returns why the worker is not ready; empty if it is. RPCError."""


class Health:
    """What /ready says, asked of the server at most every few seconds."""

    def __init__(self, why: Why) -> None:
        self._why = why
        self._line = "it starts"
        self._until = 0.0
        self._looking = asyncio.Lock()
        self._draining = False

    def drain(self) -> None:
        """Be ready no more."""
        self._draining = True

    async def explain(self) -> str:
        """Return why this worker is not ready; empty if it is."""
        if self._draining:
            return "it drains"
        async with self._looking:
            if time.monotonic() >= self._until:
                try:
                    self._line = await self._why()
                except RPCError as error:
                    self._line = f"the server does not answer: {error}"
                self._until = time.monotonic() + LOOK_SECONDS
        return self._line

    async def listen(self, place: str) -> asyncio.Server:
        """Answer at ADDRESS:PORT until the server that is returned is closed. Refused if that is
        not to be had.
        """
        host, _, port = place.rpartition(":")
        try:
            return await asyncio.start_server(
                self._answer, host.strip("[]"), int(port), limit=MOST_BYTES
            )
        except OSError as error:
            raise Refused(f"HOLDFAST_HEALTH: cannot listen at {place}: {error.strerror}") from error

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._respond(head))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _respond(self, head: bytes) -> bytes:
        words = head.split(b" ", 2)
        path = words[1] if len(words) == 3 and words[0] == b"GET" else b""
        if path == b"/live":
            return _response("200 OK", "it lives")
        if path == b"/ready":
            why = await self.explain()
            return (
                _response("503 Service Unavailable", why) if why else _response("200 OK", "ready")
            )
        return _response("404 Not Found", "ask for /live or /ready")


def _response(status: str, line: str) -> bytes:
    body = f"{line}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
