"""The door for coding agents over HTTP: only on loopback, only with its token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from conftest import Runs
from holdfast.deployment.settings import Settings
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.serving import MOST_BODY, http_app, read_token, server_of, token_file
from holdfast.errors import BadSettings
from holdfast.intake.connection import Connection
from hosting import SPENDS, data
from steered import script

pytestmark = pytest.mark.anyio
PORT = 8701
URL = f"http://127.0.0.1:{PORT}/mcp"
TOKEN = "a-token-of-more-than-20-letters"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
async def http(runs: Runs, connection: Connection) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the door's application, in this process."""

    @asynccontextmanager
    async def opener() -> Any:
        yield connection

    server = server_of(Opening(connection.settings, opener), SPENDS)
    app: Any = http_app(server, PORT, TOKEN)
    transport = httpx2.ASGITransport(app)
    with runs.env.with_time_skipping_disabled():
        async with server.session_manager.run(), httpx2.AsyncClient(transport=transport) as client:
            yield client


async def test_a_host_works_over_http(runs: Runs, http: httpx2.AsyncClient) -> None:
    http.headers["Authorization"] = HEADERS["Authorization"]
    async with runs.worker(script()):
        async with Client(streamable_http_client(URL, http_client=http)) as host:
            begun = await host.call_tool("run", {"goal": "Compare", "id": "h-run"})
            assert data(begun)["id"] == "h-run"
        async with Client(streamable_http_client(URL, http_client=http)) as other:
            while data(await other.call_tool("look", {"id": "h-run"}))["status"] == "working":
                pass


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": "Bearer ü"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8701"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:80"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
async def test_strangers_are_refused(
    http: httpx2.AsyncClient, changed: dict[str, str], status: int
) -> None:
    headers = [(n.encode(), v.encode("latin-1")) for n, v in (HEADERS | changed).items()]
    answer = await http.post(URL, headers=headers, json=PING)
    assert answer.status_code == status
    if status == 401:
        assert answer.json()["error"]["code"] == "bad_token"
        assert answer.headers["www-authenticate"] == 'Bearer realm="holdfast"'


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b"{",
        b"\xff\xfe",
        b"null",
        b" " * (MOST_BODY + 1),
    ],
    ids=["deep list", "deep object", "cut", "no text", "null", "large"],
)
async def test_a_body_that_is_no_message_is_refused(http: httpx2.AsyncClient, body: bytes) -> None:
    answer = await http.post(URL, headers=HEADERS, content=body)
    assert 400 <= answer.status_code < 500


def test_the_token_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, state_dir=tmp_path / "state")
    token = read_token(settings)
    assert len(token) > 40 and read_token(settings) == token
    assert token_file(settings).stat().st_mode & 0o777 == 0o600
    token_file(settings).write_text("short")
    with pytest.raises(BadSettings, match="holds no token"):
        read_token(settings)
