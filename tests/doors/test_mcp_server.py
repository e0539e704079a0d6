"""The door for coding agents, as the official client meets it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest
from mcp import Client

from conftest import Runs
from holdfast.doors.mcp.leash import Leash
from holdfast.doors.mcp.opening import Opening
from holdfast.doors.mcp.serving import server_of
from holdfast.intake.connection import Connection
from steered import script

pytestmark = pytest.mark.anyio
Speak = Callable[..., Any]
SPENDS = Leash(Decimal(2), Decimal(5))


@pytest.fixture
async def speak(runs: Runs, connection: Connection) -> AsyncIterator[Speak]:
    """Open a client to a door over the test's server."""

    @asynccontextmanager
    async def opener() -> AsyncIterator[Connection]:
        yield connection

    def opened(leash: Leash = SPENDS, **client: Any) -> Client:
        return Client(server_of(Opening(connection.settings, opener), leash), **client)

    with runs.env.with_time_skipping_disabled():
        yield opened


def data(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.structured_content
    return found


async def test_a_run_is_started_looked_at_and_read(runs: Runs, speak: Speak) -> None:
    async with runs.worker(script()), speak() as host:
        begun = data(await host.call_tool("run", {"goal": "Compare three engines", "id": "m-1"}))
        assert (begun["id"], begun["status"]) == ("m-1", "working")
        ended = await host.call_tool("look", {"id": "m-1"})
    assert data(ended)["status"] == "completed"
    assert "Both" in data(ended)["untrusted"]["text"]
