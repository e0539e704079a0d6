"""The door over stdio, and over HTTP on loopback with a token."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.deployment.settings import Settings
from holdfast.doors.mcp.door import Door
from holdfast.doors.mcp.leash import Leash
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.server import DoorServer
from holdfast.doors.mcp.tasks import Tasks
from holdfast.embedded import StateDir
from holdfast.errors import BadSettings
from holdfast.storage.files import write_whole

HOST = "127.0.0.1"
PORT = 8701
PATH = "/mcp"
MOST_BODY = 4 * 1024 * 1024
MOST_SESSIONS = 100
TOKEN_LETTERS = (20, 200)
SKILL = Path(__file__).parent / "SKILL.md"
TOKEN_VARIABLE = "MCP_HOLDFAST_TOKEN"
"""The variable of the host's environment that a printed configuration names."""


def server_of(opening: Opening, leash: Leash) -> DoorServer:
    """Return the server of a door, with its tasks for both eras."""
    door = Door(opening, leash)
    tasks = Tasks(door)
    return DoorServer(door, extensions=[tasks], middleware=[tasks.in_core])


async def serve_stdio(server: DoorServer) -> None:
    """Speak to the host that started this process, until it closes its end."""
    await server.run_stdio_async()


def listen(port: int) -> socket.socket:
    """Return a socket that listens on loopback. BadSettings if the port is taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise BadSettings(
            f"--port {port}: {os.strerror(error.errno or 0)}; name another port"
        ) from error


async def serve_http(server: DoorServer, listening: socket.socket, token: str) -> None:
    """Answer on loopback until the process is told to end."""
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        http_app(server, port, token),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    await uvicorn.Server(config).serve([listening])


def http_app(server: DoorServer, port: int, token: str) -> ASGIApp:
    """Return the door as an application that wants a token, and is only reached as loopback."""
    names = [f"{name}:{port}" for name in (HOST, "localhost", "[::1]")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY,
        max_sessions=MOST_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
        host=HOST,
    )
    return _with_token(app, token)


def _with_token(app: ASGIApp, token: str) -> ASGIApp:
    """Refuse every request that does not bear the token; nothing of it is read before."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, wanted):
                await _refuse(send)
                return
        await app(scope, receive, send)

    return guarded


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    body = json.dumps({"error": {"code": "bad_token", "message": "a valid token is needed"}})
    headers = [
        (b"content-type", b"application/json"),
        (b"www-authenticate", b'Bearer realm="holdfast"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def token_file(settings: Settings) -> Path:
    return StateDir.of(settings).path / "mcp-token"


def read_token(settings: Settings) -> str:
    """Return the token of this state directory, made at its first use and readable by its owner
    alone. BadSettings if it cannot be used.
    """
    path = token_file(settings)
    try:
        if not path.exists():
            StateDir.of(settings).create()
            write_whole(path, secrets.token_urlsafe(32).encode())
            path.chmod(0o600)
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: cannot be used as the door's token: {error}") from error
    least, most = TOKEN_LETTERS
    if not least <= len(token) <= most or not token.isascii() or not token.isprintable():
        raise BadSettings(f"{path}: holds no token; delete it, and another is made")
    return token


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
    return [str(Path(each).absolute()) if "/" in each else each for each in parts]
