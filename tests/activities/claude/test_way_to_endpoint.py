"""The way of a call to its endpoint: proxies, and connections that are all in use."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.claude.endpoint import (
    Looked,
    _load_trusted,
    check_key,
    find_capabilities,
)
from holdfast.cli.checks.endpoint import check_models
from holdfast.contracts import Capabilities
from holdfast.contracts.errors import (
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
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
    wait: asyncio.Event | None = None
    heads: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        self.asked.set()
        if self.wait is not None:
            await self.wait.wait()
        writer.write(said(status=self.status))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[str]:
    serving = set[asyncio.Task[Any] | None]()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in filter(None, serving):
            task.cancel()
        await asyncio.gather(*filter(None, serving), return_exceptions=True)


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


async def test_no_proxy_leads_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://proxy.example:3128")
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


@dataclass
class Keeping:
    """Keeps its connections, and says the next of `texts` to each request."""

    texts: list[bytes]
    heads: list[str] = field(default_factory=list)
    ends: bool = False
    """True if it ends each connection after its answer, without having said so."""
    later: bytes = b""
    """What it adds when the first answer has been read."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.texts:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            await reader.readexactly(int(length))
            self.heads.append(head)
            writer.write(self.texts.pop(0))
            await writer.drain()
            if self.ends:
                break
            if self.later:
                await asyncio.sleep(0.02)
                writer.write(self.later)
                await writer.drain()
                self.later = b""
        writer.close()


def said(text: str = "{}", *, head: str = "", status: str = "200 OK") -> bytes:
    body = ANSWER.replace('"{}"', json.dumps(text))
    lengths = f"content-type: application/json\r\n{head}content-length: {len(body)}"
    return f"HTTP/1.1 {status}\r\n{lengths}\r\n\r\n{body}".encode()


async def asked(endpoint: Keeping, *requests: ModelRequest, user: str = "") -> list[str]:
    """What one process is answered, one call after the other."""
    async with listening(endpoint.serve) as place:
        model = Claude(key="k", base_url=f"http://{user}{place}", price=PRICES.price)
        try:
            texts = []
            for request in requests:
                texts.append((await model.ask(request)).text)
                if not endpoint.ends:
                    await asyncio.sleep(0.04)
            return texts
        finally:
            await model.aclose()


async def test_a_connection_that_its_server_ended_carries_no_further_call() -> None:
    endpoint = Keeping([said()] * 20, ends=True)
    assert await asked(endpoint, *[REQUEST] * 20) == ["{}"] * 20


@pytest.mark.parametrize("later", [said("nobody's"), said(status="408 Late")])
async def test_what_comes_unasked_answers_no_later_call(later: bytes) -> None:
    endpoint = Keeping([said("1"), said("2")], later=later)
    assert await asked(endpoint, REQUEST, REQUEST) == ["1", "2"]


async def test_a_user_in_the_address_is_told_the_endpoint_and_cookies_are_not() -> None:
    endpoint = Keeping([said(head="set-cookie: id=1\r\n"), said()])
    await asked(endpoint, REQUEST, REQUEST, user="me:secret@")
    assert all("Basic bWU6c2VjcmV0" in head for head in endpoint.heads)
    assert "cookie" not in endpoint.heads[1].lower()


async def test_a_long_head_and_a_long_request_are_carried() -> None:
    head = f"content-security-policy: {'a' * 20_000}\r\n" + "x: 1\r\n" * 200
    endpoint = Keeping([said(head=head)])
    assert await asked(endpoint, replace(REQUEST, prompt="P" * 2**21)) == ["{}"]


@pytest.mark.parametrize(
    "answer",
    [
        said(status="101 Switching"),
        b"HTTP/1.1 200 OK\r\nx: 1\r\n",
        b"SSH-2.0\r\n\r\n",
        said()[:-1],
    ],
)
async def test_what_is_no_answer_may_be_billed_and_is_told_in_one_line(answer: bytes) -> None:
    with pytest.raises(PossiblyBilled, match=f"{MODEL}: RemoteProtocolError: ") as raised:
        await asked(Keeping([answer], ends=True), REQUEST)
    assert "http://" not in str(raised.value) and "\n" not in str(raised.value)


async def test_what_a_proxy_says_that_is_not_http_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"noise\r\n\r\n")
        writer.close()

    async with listening(serve) as place:
        # Without a scheme it is one of HTTP.
        monkeypatch.setenv("https_proxy", f"me:secret@{place}")
        error = await ended("https://gateway.example")
        model = Claude(base_url="https://gateway.example", price=PRICES.price)
        assert (await model.reach()).startswith("illegal status line")
        await model.aclose()
    assert isinstance(error, EndpointUnreachable)
    assert error.unreached.why.startswith("the proxy 127.0.0.1: illegal status line")
    assert "secret" not in str(error)


async def test_a_socks_proxy_is_a_mistake_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://me:secret@127.0.0.1:1080")
    error = await ended(FAR)
    assert isinstance(error, CallRefused)
    assert "SOCKS" in str(error) and "secret" not in str(error)


async def test_certificates_that_cannot_be_read_are_a_mistake_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    _load_trusted.cache_clear()
    error = await ended("https://127.0.0.1:1")
    assert isinstance(error, CallRefused)
    said = "SSL_CERT_FILE or SSL_CERT_DIR cannot be read: No such file or directory"
    assert said in str(error)
    assert await check_key("k", "https://127.0.0.1:1", MODEL) == Looked(mistake=said)
    found = await find_capabilities("k", "https://127.0.0.1:1", "auto", [MODEL])
    assert found == Capabilities()


async def test_doctor_says_what_keeps_every_call_from_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # That something listens is all that it looks for.
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("SSL_CERT_FILE", "/none.pem")
        _load_trusted.cache_clear()
        settings = Settings(_env_file=None, anthropic_base_url=f"http://{place}")
        said, *_ = await check_models(settings)
    assert (said.mark, said.detail.partition(": ")[2]) == (
        "bad",
        "SSL_CERT_FILE or SSL_CERT_DIR cannot be read: No such file or directory",
    )
