"""The way of a call to its endpoint: proxies, and connections that are all in use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.claude.transport import proxy_of
from holdfast.contracts import Capabilities
from holdfast.contracts.errors import (
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
)
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelRequest

pytestmark = pytest.mark.anyio

PRICES = Prices.of(Settings(_env_file=None))
MODEL = next(card.id for card in PRICES.cards() if card.tier == "haiku")
REQUEST = ModelRequest(
    MODEL,
    "S",
    "P",
    {"type": "object"},
    100,
    capabilities=Capabilities(schema_mode="prompt", effort=False, token_counting=False),
    deadline_seconds=5.0,
)
ANSWER = json.dumps(
    {
        "type": "message",
        "model": MODEL,
        "content": [{"type": "text", "text": "{}"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
)
FAR = "http://gateway.example"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class Answering:
    """Answers each request alike, after `wait`."""

    status: str = "200 OK"
    body: str = ANSWER
    wait: asyncio.Event | None = None
    heads: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        self.asked.set()
        if self.wait is not None:
            await self.wait.wait()
        length = f"content-type: application/json\r\ncontent-length: {len(self.body)}"
        writer.write(f"HTTP/1.1 {self.status}\r\n{length}\r\n\r\n{self.body}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[str]:
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def ended(url: str) -> object:
    """What a call to this endpoint ends with."""
    model = Claude(key="k", base_url=url, price=PRICES.price)
    try:
        return await model.ask(REQUEST)
    except OrchestrationError as error:
        return error
    finally:
        await model.aclose()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_a_proxy_of_the_environment_carries_calls_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Answering()
    async with listening(proxy.serve) as place:
        monkeypatch.setenv("http_proxy", f"http://me:secret@{place}")
        answer = await ended(FAR)
    assert getattr(answer, "text", "") == "{}"
    (head,) = proxy.heads
    assert head.startswith(f"POST {FAR}/v1/messages HTTP/1.1")
    assert "Basic bWU6c2VjcmV0" in head


async def test_a_proxy_that_refuses_is_a_mistake_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Answering(status="407 Proxy Authentication Required")
    async with listening(proxy.serve) as place:
        monkeypatch.setenv("https_proxy", f"http://me:secret@{place}")
        error = await ended("https://gateway.example")
    assert isinstance(error, CallRefused)
    assert "the proxy refuses: 407 Proxy Authentication Required" in str(error)
    assert "secret" not in str(error)
    assert proxy.heads[0].startswith("CONNECT gateway.example:443")


async def test_a_proxy_out_of_reach_is_named_and_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with listening(Answering().serve) as place:
        port = place.partition(":")[2]
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
    error = await ended(FAR)
    assert isinstance(error, EndpointUnreachable)
    assert error.unreached.why == "the proxy 127.0.0.1: Connection refused"


async def test_no_proxy_leads_to_this_machine_or_past_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("all_proxy", "http://proxy.example:3128")
    assert proxy_of(FAR) == "http://proxy.example:3128"
    monkeypatch.setenv("no_proxy", "gateway.example")
    assert proxy_of(FAR) == ""
    async with listening(Answering().serve) as place:
        assert getattr(await ended(f"http://{place}"), "text", "") == "{}"


async def test_a_call_for_which_no_connection_is_free_was_not_sent() -> None:
    endpoint = Answering(wait=asyncio.Event())
    assert endpoint.wait is not None
    async with listening(endpoint.serve) as place:
        model = Claude(
            key="k",
            base_url=f"http://{place}",
            price=PRICES.price,
            connections=1,
            pool_seconds=0.05,
        )
        first = asyncio.create_task(model.ask(REQUEST))
        await endpoint.asked.wait()
        with pytest.raises(NotBilled, match="no connection is free"):
            await model.ask(REQUEST)
        endpoint.wait.set()
        assert (await first).text == "{}"
        await model.aclose()
    assert len(endpoint.heads) == 1
