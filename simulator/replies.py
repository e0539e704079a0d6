"""How an answer, or what is left of it, leaves the server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from holdfast.contracts import Usage
from holdfast.simulator import wire
from holdfast.simulator.script import Fault

STATUS_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
REQUEST_ID = web.RequestKey("request_id", str)
LIMITS = web.RequestKey("limits", dict[str, str])
"""What the head of the answer says of the limits."""
BETWEEN = 0.1
"""Seconds between two deltas of a paced stream."""
HTML = "<html><body><h1>A gateway (scripted)</h1></body></html>"


@dataclass(frozen=True)
class Reply:
    """A message and how it is to arrive; times in seconds."""

    message: dict[str, Any]
    stream: bool
    fault: Fault | None
    error_type: str
    fault_seconds: float
    latency: float
    tokens_per_second: float
    ping_seconds: float
    cut: bool = False
    """True if the arguments of its last call break off."""

    @property
    def arrives(self) -> bool:
        """True if the whole answer leaves, in time or late."""
        return self.fault in (None, "slow_pings", "json_not_stream")

    @property
    def pause(self) -> float:
        """Between two of the stream's deltas."""
        return self._seconds / max(1, len(self.deltas)) if self.tokens_per_second else 0.0

    @property
    def deltas(self) -> list[bytes]:
        """The stream's deltas: where it is paced, one in a tenth of a second."""
        most = max(wire.DELTAS, int(self._seconds / BETWEEN))
        return wire.deltas(self.message, self.cut, most)

    @property
    def _seconds(self) -> float:
        if not self.tokens_per_second:
            return 0.0
        tokens: int = self.message["usage"]["output_tokens"]
        return tokens / self.tokens_per_second


def usage_of(message: dict[str, Any]) -> Usage:
    """A message's usage as the contracts count it."""
    usage = message["usage"]
    return Usage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cache_read_tokens=usage["cache_read_input_tokens"],
        cache_write_tokens=usage["cache_creation_input_tokens"],
        searches=usage.get("server_tool_use", {}).get("web_search_requests", 0),
    )


def hour_of(message: dict[str, Any]) -> int:
    """Return the tokens that a message has written to the cache for an hour."""
    written: dict[str, int] = message["usage"].get("cache_creation") or {}
    return written.get("ephemeral_1h_input_tokens", 0)


def headers_of(request: web.Request) -> dict[str, str]:
    """Headers of every response: its id, that it is scripted, and what is left of the limits."""
    id = {"request-id": request[REQUEST_ID], "x-simulator": "scripted"}
    return {**id, **request.get(LIMITS, {})}


def refuse(
    status: int,
    type: str,
    message: str,
    request: web.Request,
    *,
    error_code: str = "",
    headers: dict[str, str] | None = None,
) -> web.Response:
    """An error status with the API's body."""
    body = wire.error(type, message, request[REQUEST_ID], error_code)
    return web.json_response(
        body, status=status, headers={**headers_of(request), **(headers or {})}
    )


async def send(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Send a reply, with its fault if it has one."""
    match reply.fault:
        case "hang":
            await asyncio.sleep(reply.fault_seconds)
            return drop(request)
        case "drop_before_headers":
            return drop(request)
        case "drop_mid_headers":
            if request.transport is not None:
                request.transport.write(b"HTTP/1.1 200 OK\r\ncontent-")
            return drop(request)
        case "html_200" | "html_404" | "html_502":
            status = int(reply.fault.removeprefix("html_"))
            headers = headers_of(request)
            return web.Response(text=HTML, status=status, content_type="text/html", headers=headers)
    if reply.stream and reply.fault != "json_not_stream":
        return await _stream(request, reply)
    await asyncio.sleep(reply.latency)
    text = json.dumps(reply.message)
    return web.Response(
        text=text[: len(text) // 2] if reply.fault == "bad_json" else text,
        content_type="application/json",
        headers=headers_of(request),
    )


async def _stream(request: web.Request, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers_of(request))
    response.content_type = "text/event-stream"
    response.headers["cache-control"] = "no-cache"
    await response.prepare(request)
    opening, closing = wire.opening(reply.message), wire.closing(reply.message)
    deltas = reply.deltas
    if not (reply.fault or reply.latency or reply.pause):
        await response.write_eof(opening + b"".join(deltas) + closing)
        return response
    await response.write(opening)
    await _idle(response, reply.latency, reply.ping_seconds)
    if reply.fault:
        await response.write(b"".join(deltas[:1]))
        if not await _survives(request, response, reply):
            return response
        deltas = deltas[1:]
    for delta in deltas if reply.pause else [b"".join(deltas)]:
        await response.write(delta)
        await _idle(response, reply.pause, reply.ping_seconds)
    await response.write_eof(closing)
    return response


async def _survives(request: web.Request, response: web.StreamResponse, reply: Reply) -> bool:
    """Let the fault of a stream happen in its middle; whether the stream goes on."""
    match reply.fault:
        case "error_mid_stream":
            error = wire.error(reply.error_type, "scripted failure", request[REQUEST_ID])
            await response.write_eof(wire.event(error))
        case "bad_json":
            await response.write_eof(b'event: content_block_delta\ndata: {"type": "content\n\n')
        case "end_mid_stream":
            await response.write_eof()
        case "drop_mid_stream":
            drop(request)
        case "stall_mid_stream":
            await asyncio.sleep(reply.fault_seconds)
            drop(request)
        case "slow_pings":
            await _idle(response, reply.fault_seconds, reply.ping_seconds)
            return True
    return False


async def _idle(response: web.StreamResponse, seconds: float, ping_seconds: float) -> None:
    """Wait, with a ping every so often, as the API does while a model thinks."""
    while seconds > ping_seconds:
        await asyncio.sleep(ping_seconds)
        await response.write(wire.event({"type": "ping"}))
        seconds -= ping_seconds
    if seconds:
        await asyncio.sleep(seconds)


def drop(request: web.Request) -> web.Response:
    """Cut the connection."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
