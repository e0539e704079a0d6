"""The door over stdio, and over HTTP on loopback with a token."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from anyio.abc import ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.doors.mcp.door import Door
from holdfast.doors.mcp.leash import Leash
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.server import CALLER_KEY, DoorServer, as_caller
from holdfast.doors.mcp.tasks import Tasks
from holdfast.doors.tokens import Tokens
from holdfast.errors import BadSettings

HOST = "127.0.0.1"
PORT = 8701
PATH = "/mcp"
MOST_BODY = 4 * 1024 * 1024
MOST_SESSIONS = 20
"""Of one token: hosts that leave seldom say so. For one more, that used longest ago is closed."""
SESSION = b"mcp-session-id"
SKILL = Path(__file__).parent / "SKILL.md"
TOKEN_VARIABLE = "MCP_HOLDFAST_TOKEN"
"""The variable of the host's environment that a printed configuration names."""


def server_of(opening: Opening, leash: Leash) -> DoorServer:
    """Return the server of a door, with its tasks for both eras."""
    door = Door(opening, leash)
    tasks = Tasks(door)
    return DoorServer(door, extensions=[tasks], middleware=[as_caller, tasks.in_core])


async def serve_stdio(server: DoorServer) -> None:
    """Speak to the host that started this process, until it closes its end.

    BadSettings if the process has no standard input or output of bytes.
    """
    if not all(hasattr(each, "buffer") for each in (sys.stdin, sys.stdout)):
        raise BadSettings(
            "mcp speaks over standard input and output, and one of them is closed; "
            "have a coding agent start it (--print-config), or name --http"
        )
    async with stdio_server() as (heard, said), anyio.create_task_group() as group:
        passed, reads = anyio.create_memory_object_stream[SessionMessage | Exception]()
        group.start_soon(_pass_on, heard, passed, said)
        await server.speak(reads, said)
        group.cancel_scope.cancel()


async def _pass_on(
    heard: ReadStream[SessionMessage | Exception],
    passed: ObjectSendStream[SessionMessage | Exception],
    said: WriteStream[SessionMessage],
) -> None:
    """Pass on what is a message, and answer what is none, for which a host would wait."""
    async with heard, passed:
        async for each in heard:
            if isinstance(each, SessionMessage):
                await passed.send(each)
            else:
                await said.send(SessionMessage(_no_message(each)))


def _no_message(error: Exception) -> JSONRPCError:
    kinds = [each["type"] for each in error.errors()] if isinstance(error, ValidationError) else []
    found = (
        ErrorData(code=PARSE_ERROR, message="this line is not JSON")
        if "json_invalid" in kinds
        else ErrorData(code=INVALID_REQUEST, message="this line is no message of JSON-RPC")
    )
    return JSONRPCError(jsonrpc="2.0", id=None, error=found)


def listen(port: int) -> socket.socket:
    """Return a socket that listens on loopback. BadSettings if the port is taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise BadSettings(
            f"--port {port}: {os.strerror(error.errno or 0)}; name another port"
        ) from error


async def serve_http(server: DoorServer, listening: socket.socket, tokens: Tokens) -> None:
    """Answer on loopback until the process is told to end."""
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        http_app(server, port, tokens),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    await uvicorn.Server(config).serve([listening])


def http_app(server: DoorServer, port: int, tokens: Tokens) -> ASGIApp:
    """Return the door as an application that wants a token, and is only reached as loopback."""
    names = [f"{name}:{port}" for name in (HOST, "localhost", "[::1]")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
        host=HOST,
    )
    return _with_token(app, tokens)


def _with_token(app: ASGIApp, tokens: Tokens) -> ASGIApp:
    """Refuse every request that bears no token of this state directory; nothing else of it is read
    before.
    """
    sessions: dict[str, dict[bytes, None]] = {}

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            kind, _, secret = given.partition(" ")
            caller = tokens.caller_of(secret) if kind == "Bearer" else None
            if caller is None:
                await _refuse(send)
                return
            scope[CALLER_KEY] = caller
            await _within(sessions.setdefault(caller.name, {}), app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return guarded


async def _within(
    known: dict[bytes, None], app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request, and keep no more sessions of its token than may be open. `known`: these,
    that used longest ago first.
    """

    async def noting(message: Message) -> None:
        session = dict(message.get("headers", ())).get(SESSION)
        if session is not None:
            known.pop(session, None)
            if scope["method"] != "DELETE":
                known[session] = None
        await send(message)

    async def close(session: bytes) -> None:
        headers = [each for each in scope["headers"] if each[0] in (b"host", b"origin")]
        there = {**scope, "method": "DELETE", "headers": [*headers, (SESSION, session)]}
        await app(there, _nothing, _unheard)

    await app(scope, receive, noting)
    while len(known) > MOST_SESSIONS:
        oldest = next(iter(known))
        del known[oldest]
        await close(oldest)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: Message) -> None:
    """Take an answer that nobody waits for."""


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    body = json.dumps({"error": {"code": "bad_token", "message": "a valid token is needed"}})
    headers = [
        (b"content-type", b"application/json"),
        (b"www-authenticate", b'Bearer realm="holdfast"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


# ---------------------------------------------------------------- for whoever sets up a host


def print_config(program: Sequence[str], options: Sequence[str], *, http: bool, port: int) -> str:
    """Return the entry of a host's `.mcp.json`."""
    entry: dict[str, Any] = {"command": program[0], "args": [*program[1:], "mcp", *options]}
    if http:
        bearer = f"Bearer ${{{TOKEN_VARIABLE}}}"
        url = f"http://{HOST}:{port}{PATH}"
        entry = {"type": "http", "url": url, "headers": {"Authorization": bearer}}
    return json.dumps({"mcpServers": {"holdfast": entry}}, indent=2)


def split_program(starter: str) -> list[str]:
    """Return a command line as a host starts it: without a shell, from any folder."""
    parts = shlex.split(starter)
    paths = [each for each in parts if "/" in each or each.endswith(".py")]
    return [str(Path(each).absolute()) if each in paths else each for each in parts]
