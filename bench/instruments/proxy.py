"""A gateway before an endpoint, which can be lost in every way that networks and gateways know."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PAGE = b"<!doctype html><title>Sorry</title><h1>We will be back soon.</h1>"
ERROR = b'{"type": "error", "error": {"type": "%s", "message": "not just now"}}'
STATUSES = {
    "500": (b"500 Internal Server Error", b"application/json", ERROR % b"api_error"),
    "502": (b"502 Bad Gateway", b"text/html", PAGE),
    "503": (b"503 Service Unavailable", b"text/html", PAGE),
    "504": (b"504 Gateway Timeout", b"text/html", PAGE),
    "529": (b"529 Overloaded", b"application/json", ERROR % b"overloaded_error"),
    "a page with status 200": (b"200 OK", b"text/html", PAGE),
}
SILENT = ("half-open", "black hole")
"""Kinds in which a connection stays and nothing comes back over it, also when all is well again."""
UNLISTENED = ("refused", "unanswered")
KINDS = (
    *UNLISTENED,
    "accepts and closes",
    "resets",
    *SILENT,
    *STATUSES,
    "lists its models and loses calls",
)
"""Each an outage. In half-open ones requests arrive and answers do not."""
FILLERS = 8
"""Connections that fill the queue of a socket that nobody accepts from."""


@dataclass(eq=False)
class Proxy:
    """Hands requests on, one a connection; what is in flight when an outage begins is lost."""

    upstream: str
    kind: str = ""
    """Kind of the outage; empty: all is well."""
    port: int = 0
    _server: asyncio.Server | None = None
    _dead: list[socket.socket] = field(default_factory=list)
    _open: set[Exchange] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def outage(self, kind: str, seconds: float) -> None:
        """Be lost in this way for this time."""
        try:
            await self.lose(kind)
            await asyncio.sleep(seconds)
        finally:
            await self.find()

    async def lose(self, kind: str) -> None:
        """Begin an outage."""
        self.kind = kind
        for exchange in tuple(self._open):
            exchange.lose(silent=kind in SILENT)
        if kind in UNLISTENED:
            await self._stop()
        if kind == "unanswered":
            self._fill()

    async def find(self) -> None:
        """End it."""
        self.kind = ""
        while self._dead:
            self._dead.pop().close()
        if self._server is None:
            await self.start()

    async def start(self) -> None:
        """Listen, always on the same port."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more, and drop what is open."""
        for exchange in tuple(self._open):
            exchange.lose(silent=False)
        await self._stop()

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            # The port is free once the loop has taken the socket out.
            await asyncio.sleep(0)

    def _fill(self) -> None:
        """Listen with a queue that is full: no further SYN is answered."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(0)
        self._dead.append(listening)
        for _ in range(FILLERS):
            filler = socket.socket()
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(("127.0.0.1", self.port))
            self._dead.append(filler)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = Exchange(writer)
        self._open.add(exchange)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._exchange(reader, exchange)
        finally:
            self._open.discard(exchange)
            exchange.close()

    async def _exchange(self, reader: asyncio.StreamReader, exchange: Exchange) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        kind = self.kind
        if kind == "lists its models and loses calls":
            kind = "" if head.startswith(b"GET") else "accepts and closes"
        if kind == "resets":
            exchange.lose(silent=False)
            return
        lines = head.lower().split(b"\r\n")
        lengths = [int(each[15:]) for each in lines if each.startswith(b"content-length:")]
        body = await reader.readexactly(lengths[0] if lengths else 0)
        if kind in STATUSES:
            status, form, text = STATUSES[kind]
            about = b"content-type: %s\r\ncontent-length: %d" % (form, len(text))
            exchange.writer.write(
                b"HTTP/1.1 %s\r\n%s\r\nconnection: close\r\n\r\n%s" % (status, about, text)
            )
            await exchange.writer.drain()
            return
        if kind in SILENT:
            exchange.silent = True
        if kind not in ("accepts and closes", "black hole"):
            await self._hand_on(head, body, exchange)
        while exchange.silent and await reader.read(1024):
            pass

    async def _hand_on(self, head: bytes, body: bytes, exchange: Exchange) -> None:
        at = urlsplit(self.upstream)
        source, sink = await asyncio.open_connection(at.hostname, at.port)
        exchange.sink = sink
        first, _, rest = head.partition(b"\r\n")
        kept = b"\r\n".join(
            each for each in rest.split(b"\r\n") if not each.lower().startswith(b"connection:")
        )
        sink.write(first + b"\r\nconnection: close\r\n" + kept + body)
        await sink.drain()
        while chunk := await source.read(65_536):
            if not exchange.silent:
                exchange.writer.write(chunk)
                await exchange.writer.drain()


@dataclass(eq=False)
class Exchange:
    """One request and its answer."""

    writer: asyncio.StreamWriter
    sink: asyncio.StreamWriter | None = None
    silent: bool = False
    """True once no byte comes back."""

    def lose(self, *, silent: bool) -> None:
        """Reset it, or let it hang."""
        self.silent = silent
        if silent:
            return
        made: socket.socket = self.writer.get_extra_info("socket")
        with suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.close()

    def close(self) -> None:
        """Whatever is still open."""
        for each in (self.writer, self.sink):
            if each is not None:
                each.close()


@asynccontextmanager
async def proxied(upstream: str) -> AsyncIterator[Proxy]:
    """A proxy before this address."""
    proxy = Proxy(upstream)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.find()
        await proxy.stop()
