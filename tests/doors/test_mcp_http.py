"""The door for coding agents over HTTP: only on loopback, only with its token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from conftest import Runs
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.serving import MOST_BODY, MOST_SESSIONS, http_app, server_of
from holdfast.doors.tokens import Scopes, Tokens
from holdfast.intake.connection import Connection
from hosting import DECIDES, data, text
from steered import report_of, script

pytestmark = pytest.mark.anyio
PORT = 8701
URL = f"http://127.0.0.1:{PORT}/mcp"
HEADERS = {
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

    tokens = Tokens(connection.settings)
    secret = tokens.add("laptop", Scopes(dollars=Decimal(1)))
    server = server_of(Opening(connection.settings, opener), DECIDES)
    app: Any = http_app(server, PORT, tokens)
    transport = httpx2.ASGITransport(app)
    with runs.env.with_time_skipping_disabled():
        async with server.session_manager.run(), httpx2.AsyncClient(transport=transport) as client:
            client.headers["Authorization"] = f"Bearer {secret}"
            yield client


async def test_a_host_works_over_http(runs: Runs, http: httpx2.AsyncClient) -> None:
    async with runs.worker(script()):
        async with Client(streamable_http_client(URL, http_client=http)) as host:
            begun = await host.call_tool("run", {"goal": "Compare", "id": "h-run"})
            assert data(begun)["id"] == "h-run"
        async with Client(streamable_http_client(URL, http_client=http)) as other:
            while data(await other.call_tool("look", {"id": "h-run"}))["status"] == "working":
                pass


async def test_a_token_allows_no_more_than_it_says_and_its_name_is_the_hosts(
    runs: Runs, connection: Connection, http: httpx2.AsyncClient
) -> None:
    waiting = {"goal": "Compare", "approval": "always", "id": "h-token"}
    laptop = Client(streamable_http_client(URL, http_client=http))
    async with runs.worker(script()), laptop as host:
        refused = await host.call_tool("run", {**waiting, "dollars": 1.5})
        assert "$1.00 that one run" in text(refused)
        await host.call_tool("run", waiting)
        while data(await host.call_tool("look", {"id": "h-token"}))["status"] == "working":
            pass
        refused = await host.call_tool("decide", {"id": "h-token", "decision": "approve"})
        assert data(refused)["error"]["code"] == "not_allowed"
        await host.call_tool("decide", {"id": "h-token", "decision": "reject"})
        report = await report_of(connection, "h-token")
    assert [each.order.by for each in report.orders] == ["mcp:laptop"]
    tokens = Tokens(connection.settings)
    http.headers["Authorization"] = f"Bearer {tokens.add('reader', Scopes())}"
    async with Client(streamable_http_client(URL, http_client=http)) as reader:
        assert data(await reader.call_tool("look", {"id": "h-token"}))["status"] == "completed"
        for tool, given in (("run", waiting), ("review", {}), ("cancel", {"id": "h-token"})):
            refused = await reader.call_tool(tool, given)
            assert "may only look" in text(refused)
    tokens.revoke("reader")
    assert (await http.post(URL, headers=HEADERS, json=PING)).status_code == 401


async def test_hosts_that_leave_without_a_word_shut_nobody_out(http: httpx2.AsyncClient) -> None:
    asked = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"},
    }
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}

    async def status(session: str) -> int:
        headers = HEADERS | {"Mcp-Session-Id": session}
        return (await http.post(URL, headers=headers, json=PING)).status_code

    sessions = []
    for _ in range(MOST_SESSIONS + 2):
        answer = await http.post(URL, headers=HEADERS, json=initialize)
        assert answer.status_code == 200, answer.text
        sessions.append(answer.headers["mcp-session-id"])
        assert await status(sessions[0]) == 200, "what is used stays"
    assert [await status(each) for each in sessions[:4]] == [200, 404, 404, 200]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer hf_nobody"}, 401),
        ({"Authorization": "Basic bGFwdG9w"}, 401),
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
    ours = {"Authorization": http.headers["Authorization"], **HEADERS, **changed}
    headers = [(n.encode(), v.encode("latin-1")) for n, v in ours.items()]
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
