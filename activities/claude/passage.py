"""Watch a request and its answer pass: whether it left, what came back, and no more of that than
can be meant.

Works by hooks of the HTTP client, because the SDK reads errors and small answers itself.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

from holdfast.activities.claude.quotas import read_head
from holdfast.ports import Head

BYTES_FOR_A_TOKEN = 64
"""More bytes than any token of an answer takes on the wire, its event included."""
ROOM = 2**20
"""Bytes beyond what the tokens need; and the most of an error or a count."""
COMPRESSED = ("gzip", "x-gzip", "deflate")


@dataclass
class Passage:
    """One request on its way."""

    most_bytes: int = ROOM
    moved: Callable[[], None] = lambda: None
    heard: Callable[[Head], None] = lambda _: None
    """Called with the head of what came back."""
    left: bool = False
    """True once the first byte of the request itself may have left; setting up a connection, or a
    proxy's tunnel, does not count.
    """
    towards: str = ""
    """The host that a connection was last opened to: the endpoint's, or a proxy's."""
    status: int = 0
    """HTTP status of what came back; 0: nothing did."""

    async def trace(self, name: str, info: dict[str, Any]) -> None:
        """Called by the transport with each of its steps."""
        if name.endswith(".send_request_headers.started"):
            self.left |= info["request"].method != b"CONNECT"
        elif name == "connection.connect_tcp.started":
            self.towards = str(info.get("host", ""))


_current: ContextVar[Passage | None] = ContextVar("passage", default=None)


@contextmanager
def under_way(passage: Passage) -> Iterator[Passage]:
    """Watch the requests of the block by this passage."""
    token = _current.set(passage)
    try:
        yield passage
    finally:
        _current.reset(token)


async def outgoing(request: httpx2.Request) -> None:
    """Hook before a request."""
    passage = _current.get()
    if passage is not None:
        request.extensions = {**request.extensions, "trace": passage.trace}


async def incoming(response: httpx2.Response) -> None:
    """Hook after the head of an answer, before its body is read."""
    passage = _current.get() or Passage()
    passage.status = response.status_code
    passage.moved()
    passage.heard(read_head(response.status_code, response.headers))
    encoding = response.headers.pop("content-encoding", "").strip().lower()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(
        response.stream, encoding in COMPRESSED, passage, cut=response.status_code >= 300
    )


class _Bounded(httpx2.AsyncByteStream):
    """A body of bounded size: beyond it the body is `cut`, or else refused.

    Decompresses, piece by piece, what should not have been compressed at all: a few bytes can
    unpack to gigabytes. What cannot be decompressed stays as it is and is not an answer.
    """

    def __init__(
        self, inner: httpx2.AsyncByteStream, compressed: bool, passage: Passage, *, cut: bool
    ) -> None:
        self._inner = inner
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if compressed else None
        self._passage = passage
        self._left = ROOM if cut else passage.most_bytes
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._passage.moved()
            piece = self._plain(chunk)
            self._left -= len(piece)
            if self._left >= 0:
                yield piece
            elif self._cut:
                yield piece[: self._left]
                return
            else:
                raise httpx2.DecodingError("the answer is larger than any that was asked for")

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _plain(self, chunk: bytes) -> bytes:
        if self._unpack is None:
            return chunk
        try:
            # One byte more than there is room for shows that there is more.
            return self._unpack.decompress(chunk, self._left + 1)
        except zlib.error:
            raise httpx2.DecodingError("the answer cannot be decompressed") from None


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """Yield server-sent events as name and data. Raise UnicodeDecodeError if they are not UTF-8. An
    event at the end counts although the line that should end it is missing.
    """
    name, data = "", list[str]()
    async for line in _lines(chunks):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif not line and data:
            yield name, "\n".join(data)
            name, data = "", []
    if data:
        yield name, "\n".join(data)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = bytearray()
    async for chunk in chunks:
        rest.extend(chunk)
        # A carriage return at the very end may be half a line end.
        end = max(rest.rfind(b"\n", -len(chunk) - 1), rest.rfind(b"\r", -len(chunk) - 1, -1)) + 1
        if end:
            for line in bytes(rest[:end]).splitlines():
                yield line.decode("utf-8")
            del rest[:end]
    for line in bytes(rest).splitlines():
        yield line.decode("utf-8")
