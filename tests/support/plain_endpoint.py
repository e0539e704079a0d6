"""A second Messages API, of another make: it ignores schemas and parameters that it does not know,
sends events without names, no pings and no usage, and knows neither models nor token counting.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class PlainEndpoint:
    """Answers every message with `text`, or with the body `raw` if there is one."""

    text: str = ""
    raw: bytes | None = None
    content_type: str = "text/event-stream"
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the connection is closed."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            # Somebody only looked whether anybody listens.
            writer.close()
            return
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (each.partition(": ") for each in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if first.startswith("POST /v1/messages HTTP") or first.startswith("POST /v1/messages?"):
            self.bodies.append(json.loads(body))
            self.headers.append(headers)
            status, content = "200 OK", self._events() if self.raw is None else self.raw
        else:
            status, content = "404 Not Found", b'{"error": "no such route"}'
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: {self.content_type}\r\nconnection: close\r\n\r\n"
        )
        writer.write(head.encode() + content)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def _events(self) -> bytes:
        middle = len(self.text) // 2
        deltas = [
            {"type": "text_delta", "text": piece}
            for piece in (self.text[:middle], self.text[middle:])
        ]
        events: list[dict[str, Any] | str] = [
            {"type": "message_start", "message": {"role": "assistant"}},
            {"type": "some_extension", "progress": 0.5},
            *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": None},
            {"type": "message_stop"},
            "[DONE]",
        ]
        return "".join(
            f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
            for event in events
        ).encode()


@asynccontextmanager
async def serving(endpoint: PlainEndpoint) -> AsyncIterator[PlainEndpoint]:
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    async with server:
        endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield endpoint
