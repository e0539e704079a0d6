"""Waiting for an endpoint that nobody answers at, seen from inside the activity."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from holdfast.activities.agents import Agents
from holdfast.activities.asking import reaching
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.reaching import wait_until_reached
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.prompts.files import system_prompts
from holdfast.calls.reach import Reached, ReachMaterial
from holdfast.contracts import Call
from holdfast.contracts.errors import CallRefused, NotBilled
from holdfast.deployment.address import address_of
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.server import Simulator
from holdfast.storage import DirectoryStore

pytestmark = pytest.mark.anyio


@dataclass
class Absent:
    """A model whose endpoint comes back after this many looks; notes when each look was."""

    looks: int
    at: list[float] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        raise AssertionError("nothing is paid while waiting")

    async def count_tokens(self, request: ModelRequest) -> int:
        raise AssertionError("nothing is counted while waiting")

    async def reach(self) -> str:
        self.at.append(asyncio.get_running_loop().time())
        return "Connection refused" if len(self.at) <= self.looks else ""


async def waited(
    model: Absent, seconds: float = 0.0, *, attempt: int = 1, limit: float = 300.0
) -> Reached:
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info, attempt=attempt, start_to_close_timeout=timedelta(seconds=limit)
    )
    wait = ReachMaterial(after_seconds=seconds, address="http://127.0.0.1:1")
    reached: Reached = await environment.run(wait_until_reached, model, wait, lambda: 0.0)
    return reached


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(reaching, "LONGEST_PAUSE", 0.08)
    monkeypatch.setattr(reaching, "MARGIN_SECONDS", 0.0)


async def test_an_endpoint_that_is_there_is_reached_at_the_first_look(fast: None) -> None:
    model = Absent(0)
    assert (await waited(model)).waited_seconds < 5
    assert len(model.at) == 1


async def test_each_look_waits_twice_as_long_as_the_one_before_up_to_a_bound(fast: None) -> None:
    model = Absent(5)
    await waited(model)
    pauses = [later - sooner for sooner, later in zip(model.at, model.at[1:], strict=False)]
    for pause, least in zip(pauses, (0.02, 0.04, 0.08, 0.08, 0.08), strict=True):
        assert pause >= least


async def test_the_first_look_waits_as_asked_and_a_worker_that_took_over_does_not(
    fast: None,
) -> None:
    assert (await waited(Absent(0), 0.2)).waited_seconds >= 0.2
    assert (await waited(Absent(0), 30.0, attempt=2)).waited_seconds < 25


async def test_an_attempt_hands_itself_back_before_its_time_is_over(fast: None) -> None:
    with pytest.raises(NotBilled, match="Connection refused") as back:
        await waited(Absent(1_000_000), limit=1.0)
    assert not back.value.non_retryable


async def test_a_worker_that_is_told_to_end_hands_its_wait_back_at_once() -> None:
    environment = ActivityEnvironment()
    model = Absent(1_000_000)
    task = asyncio.ensure_future(environment.run(wait_until_reached, model, ReachMaterial()))
    while not model.at:  # noqa: ASYNC110 - the model notes looks, nothing else
        await asyncio.sleep(0.01)
    environment.worker_shutdown()
    with pytest.raises(NotBilled):
        await task


async def test_a_worker_without_an_endpoint_says_so(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    journal, system = FileJournal(tmp_path / "journal"), system_prompts()
    agents = Agents(None, journal, store, {}, system, {}, lambda *_: None)
    with pytest.raises(CallRefused):
        call = Call(purpose="reach", kind="reach")
        await ActivityEnvironment().run(agents.reach, call, ReachMaterial())


async def test_nobody_waits_for_an_endpoint_that_the_deployment_has_left(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    journal = FileJournal(tmp_path / "journal")
    gone = Absent(1_000_000)
    system = system_prompts()
    agents = Agents(gone, journal, store, {}, system, {}, lambda *_: None, address="http://new")
    call = Call(purpose="reach", kind="reach")
    reply = await ActivityEnvironment().run(agents.reach, call, ReachMaterial(address="http://old"))
    assert reply.value == Reached(waited_seconds=0.0) and gone.at == []


# ---------------------------------------------------------------- what counts as reached

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def looking_at(url: str) -> AsyncIterator[Claude]:
    model = Claude(key="sk-ant-0123456789", base_url=url, price=lambda *_: Decimal(0))
    try:
        yield model
    finally:
        await model.aclose()


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def test_a_port_is_reached_as_soon_as_somebody_listens(fast: None) -> None:
    port = closed_port()
    async with looking_at(f"http://127.0.0.1:{port}") as model:
        assert await model.reach() == "Connection refused"
        async with Simulator(port=port) as simulator:
            assert await model.reach() == ""
            assert simulator.log.report()["requests"] == 0


@pytest.mark.parametrize(
    ("status", "there"),
    [
        ("200 OK", True),
        ("401 Unauthorized", True),
        ("404 Not Found", True),
        ("307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/", True),
        ("429 Too Many Requests", True),
        ("500 Internal Server Error", True),
        ("502 Bad Gateway", False),
        ("503 Service Unavailable", False),
        ("504 Gateway Timeout", False),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":' * 10_000])
async def test_any_status_but_those_of_a_gateway_before_nobody_is_an_answer(
    status: str, there: bool, body: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with looking_at(f"http://127.0.0.1:{port}") as model:
            assert (await model.reach() == "") == there


async def test_a_handshake_that_is_reset_is_no_answer() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with looking_at(f"https://127.0.0.1:{port}") as model:
            assert await model.reach()


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("http://user:secret@10.0.0.1:8080/v2/?token=x#y", "http://10.0.0.1:8080/v2"),
        ("https://api.anthropic.com", "https://api.anthropic.com"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("http://host:notaport", "?"),
        ("http://ho\x1bst", "http://ho\\x1bst"),
    ],
)
def test_an_address_is_shown_without_what_is_secret_in_it(base_url: str, shown: str) -> None:
    assert address_of(base_url) == shown
