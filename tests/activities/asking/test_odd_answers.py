"""Whatever an endpoint sends ends the call, as a reply or an error that can be stored and read
again. The real adapter, journal and converter; only the endpoint is odd.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import re
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking import sending
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.prices import Prices
from holdfast.activities.asking.replies import NO_COUNT, Shape
from holdfast.activities.claude import adapter as claude
from holdfast.activities.claude import endpoint
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.claude.endpoint import make_client
from holdfast.activities.claude.passage import ROOM
from holdfast.activities.claude.stream import MOST_TOKENS
from holdfast.calls.work import WorkAnswer, WorkMaterial, to_draft
from holdfast.contracts import Bill, Call, Capabilities, Draft, ModelCard, Reply
from holdfast.contracts.errors import (
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
)
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelRequest
from parameters import rest_long
from scripted import subtask, works

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, scope="module")
def _no_garbage_of_others() -> None:
    """Collect what earlier tests left: found deep in a parser, its end is an error there."""
    gc.collect()


prices = Prices.of(Settings(_env_file=None))
HAIKU = next(card for card in prices.cards() if card.tier == "haiku")
PLAIN = Capabilities(schema_mode="prompt", effort=False, token_counting=False)
CALL = Call(
    purpose="work-t1",
    kind="work",
    tier="haiku",
    model=HAIKU,
    role="analyst",
    max_output=1_000,
    ceiling=Decimal("0.05"),
    token_ceiling=100_000,
    capabilities=PLAIN,
)
MATERIAL = WorkMaterial.model_validate({"subtask": subtask("t1") | {"tier": None}})
SHAPE = Shape(WorkAnswer, to_draft)
TEXT = json.dumps(works("words enough to read"))
DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%b}}'


@dataclass
class OddEndpoint:
    """Answers every request with these bytes."""

    raw: bytes
    head: str = "200 OK\r\ncontent-type: text/event-stream"
    url: str = ""
    requests: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        told = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(told[1]) if told else 0)
        writer.write(f"HTTP/1.1 {self.head}\r\nconnection: close\r\n\r\n".encode() + self.raw)
        try:
            await writer.drain()
        except ConnectionError:
            # It has heard enough.
            return
        finally:
            writer.close()


@asynccontextmanager
async def serving(endpoint: OddEndpoint) -> AsyncIterator[OddEndpoint]:
    async with await asyncio.start_server(endpoint.serve, "127.0.0.1", 0) as server:
        endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield endpoint


def stream(*events: Any) -> bytes:
    return b"".join(
        b"data: " + (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n\n"
        for each in events
    )


def said(text: str | bytes = TEXT, usage: Any = None, start: Any = None, **message: Any) -> bytes:
    """A whole answer; bytes are JSON text of the delta as it is."""
    piece = text if isinstance(text, bytes) else json.dumps(text).encode()
    begun = {"model": HAIKU.id, "usage": {"input_tokens": 500, "output_tokens": 1}}
    ended = {"stop_reason": "end_turn"}
    for name, value in message.items():
        (ended if name in ("stop_reason", "stop_details") else begun)[name] = value
    return stream(
        {"type": "message_start", "message": begun | ({"usage": start} if start else {})},
        DELTA % piece,
        {"type": "message_delta", "delta": ended, "usage": usage or {"output_tokens": 20}},
        {"type": "message_stop"},
    )


async def outcome(
    endpoint: OddEndpoint, folder: Path, call: Call = CALL
) -> Reply[Draft] | OrchestrationError:
    """What the activity ends with, after a way through the converter, as the server keeps it."""
    converter = pydantic_data_converter
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, start_to_close_timeout=timedelta(seconds=60))
    async with serving(endpoint):
        model = Claude(key="sk-ant-0123456789", base_url=endpoint.url, price=prices.price)
        way = Asking(model, FileJournal(folder), prices.price)
        try:
            async with asyncio.timeout(30):
                reply = await environment.run(way.ask, call, MATERIAL, SHAPE, "System", "P")
        except OrchestrationError as error:
            failure = Failure()
            await converter.encode_failure(error, failure)
            failure.ParseFromString(failure.SerializeToString())
            await converter.decode_failure(failure)
            return error
        finally:
            await model.aclose()
    kept = await converter.encode([reply])
    [again] = await converter.decode(kept, [Reply[Draft]])
    assert isinstance(again, Reply)
    return again


def bill_of(end: Reply[Draft] | OrchestrationError) -> Bill:
    bill = end.bill if isinstance(end, Reply) else end.details[0]
    assert isinstance(bill, Bill)
    return bill


DEEP = b'{"a":' * 100_000
BLOCK = "content_block_start"


def text_at(index: Any, text: Any) -> dict[str, Any]:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def error(type: Any, message: Any, **more: Any) -> bytes:
    return stream({"type": "error", "error": {"type": type, "message": message, **more}})


NESTED = b"[" * 900 + b"]" * 900
ODD = {
    "lone surrogate": said(b'"words \\ud800 enough"'),
    "escaped surrogate": said(TEXT.replace("enough", "\\ud800")),
    "NUL": said(TEXT.replace("enough", "\\u0000"), model="a\0b"),
    "deep text": said("[" * 200_000),
    "deep event": stream(DEEP),
    "deep block": stream({"type": BLOCK}, b'{"type":"x","a":' + NESTED + b"}") + said(),
    "deep message": said(TEXT, extra=json.loads("[" * 700 + "]" * 700)),
    "huge number": stream(b'{"type": "message_start", "n": ' + b"9" * 10_000 + b"}"),
    "big number": said(TEXT, extra=10**4_000),
    "nan": said(TEXT, extra=float("nan")),
    "model is a list": said(TEXT, model=["x"]),
    "model is a number": said(TEXT, model=10**30),
    "model is long": said(TEXT, model="m" * 100_000),
    "model is hidden": said(TEXT, model="\ud800\x1b[2J\u202e"),
    "stop reason is an object": said(TEXT, stop_reason={"a": 1}),
    "stop reason is hidden": said(TEXT, stop_reason="\udfff\0\x1b"),
    "stop reason is long": said(TEXT, stop_reason="s" * 500_000),
    "odd refusal": said(stop_reason="refusal", stop_details={"category": "\ud800\0"}),
    "refusal with a list": said(TEXT, stop_reason="refusal", stop_details=[1]),
    "content is a number": said(TEXT, content=7),
    "index is odd": stream(text_at({"a": 1}, 7)) + said(),
    "huge index": stream(text_at(10**400, "x")) + said(),
    "arguments are a number": stream(
        {"type": BLOCK, "index": 0, "content_block": {"type": "tool_use", "partial_json": 7}}
    )
    + said(),
    "type is a list": stream({"type": ["message_start"]}),
    "type of a delta is a list": stream({"type": "content_block_delta", "delta": {"type": []}}),
    "error is odd": error(7, {"a": 1}, details=[2]),
    "error is hidden": error("\ud800", "\0\udfff\x1b"),
    "error is long": error("t" * 300_000, "m" * 300_000),
    "an event of nothing": b"data:\n\ndata\n\nevent: message_stop\n\n",
    "a line without end": b"data: " + b"x" * 300_000,
    "a hundred thousand lines": b"data: 1\n" * 120_000,
    "null": stream(None, 1, "x", [], {}),
    "bad utf-8": b"data: \xff\xfe\n\n",
}


@pytest.fixture(autouse=True)
def no_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an endpoint out of reach."""
    monkeypatch.setattr(sending, "BLIP_SECONDS", 0.0)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("schema_mode", ["native", "prompt"])
async def test_an_odd_answer_ends_its_call(name: str, schema_mode: Any, tmp_path: Path) -> None:
    mode = CALL.capabilities.model_copy(update={"schema_mode": schema_mode})
    call = CALL.model_copy(update={"capabilities": mode})
    end = await outcome(OddEndpoint(ODD[name]), tmp_path, call)
    assert isinstance(end, Reply | PossiblyBilled)
    assert bill_of(end).calls == 1
    assert len(bill_of(end).model) <= 1_000


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_document_ends_its_call(name: str, tmp_path: Path) -> None:
    document = ODD[name].removeprefix(b"data: ").partition(b"\n")[0]
    head = "200 OK\r\ncontent-type: application/json"
    end = await outcome(OddEndpoint(document, head), tmp_path)
    assert isinstance(end, PossiblyBilled)


@pytest.mark.parametrize("name", rest_long(ODD, first=6))
@pytest.mark.parametrize(
    "status", rest_long([307, 400, 429, 503, 300, 401, 408, 413, 500, 502, 529, 999], first=4)
)
async def test_an_odd_error_ends_its_call(name: str, status: int, tmp_path: Path) -> None:
    body = ODD[name].removeprefix(b"data: ").partition(b"\n")[0]
    head = f"{status} Odd\r\ncontent-type: application/json\r\nlocation: http://\x01:x"
    head = (
        f"{status} Odd\r\ncontent-type: application/json\r\nretry-after: 1e999\r\nrequest-id: \xff"
    )
    end = await outcome(OddEndpoint(body, head), tmp_path)
    assert isinstance(end, OrchestrationError)
    assert len(str(end)) < 1_500


@pytest.mark.parametrize(
    "tokens", [True, -1, 1.5, "7", [7], MOST_TOKENS + 1, 10**30, float("inf"), float("nan")]
)
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_input_tokens"])
async def test_a_count_that_cannot_be_is_none_and_the_call_counts_in_full(
    tokens: Any, name: str, tmp_path: Path
) -> None:
    used = {"input_tokens": 500, "output_tokens": 20, name: tokens}
    end = await outcome(OddEndpoint(said(usage=used, start={"output_tokens": 1})), tmp_path)
    assert isinstance(end, Reply) and end.value is not None
    assert not end.bill.final
    assert NO_COUNT in end.bill.note
    assert end.bill.usage.input_tokens >= 10
    assert end.bill.usage.output_tokens >= len(TEXT) // 8


async def test_a_count_is_never_taken_back(tmp_path: Path) -> None:
    start = {"input_tokens": 90_000, "output_tokens": 900}
    end = await outcome(
        OddEndpoint(said(start=start, usage={"input_tokens": 1, "output_tokens": 1})), tmp_path
    )
    usage = bill_of(end).usage
    assert (usage.input_tokens, usage.output_tokens) == (90_000, 900)


async def test_output_counts_at_least_what_arrived(tmp_path: Path) -> None:
    long = json.dumps(works("word " * 1_000))
    end = await outcome(OddEndpoint(said(long, usage={"output_tokens": 1})), tmp_path)
    assert bill_of(end).usage.output_tokens >= 625


async def test_halves_of_a_character_in_two_deltas_are_one_character(tmp_path: Path) -> None:
    before, after = json.dumps(TEXT).replace("enough", "\\ud83d|\\ude00").split("|")
    pieces = (before + '"', '"' + after)
    deltas = [DELTA % each.encode() for each in pieces]
    answer = stream(
        {"type": "message_start", "message": {"model": HAIKU.id}},
        *deltas,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": None},
        {"type": "message_stop"},
    )
    end = await outcome(OddEndpoint(answer), tmp_path)
    assert isinstance(end, Reply) and end.value is not None
    assert end.value.content == "words \U0001f600 to read"


async def test_half_a_character_makes_an_answer_malformed_and_its_bill_stays(
    tmp_path: Path,
) -> None:
    text = json.dumps(TEXT).replace("enough", "\\ud83d").encode()
    end = await outcome(OddEndpoint(said(text)), tmp_path)
    assert isinstance(end, Reply) and end.problem is not None
    assert end.problem.kind == "malformed"
    assert end.bill.usage.input_tokens == 500


async def test_a_model_without_a_price_counts_no_less_than_the_one_that_was_asked(
    tmp_path: Path,
) -> None:
    used = {"input_tokens": 500, "output_tokens": 8_000}
    end = await outcome(OddEndpoint(said(model="mystery-model-1", usage=used)), tmp_path)
    bill = bill_of(end)
    assert bill.dollars == prices.price(HAIKU.id, bill.usage)
    assert not bill.final
    assert "'mystery-model-1', which has no price" in bill.note


async def test_a_run_of_unpriced_models_has_unpriced_calls(tmp_path: Path) -> None:
    card = ModelCard(tier="haiku", id="local")
    call = CALL.model_copy(update={"model": card})
    bill = bill_of(await outcome(OddEndpoint(said(model="other")), tmp_path, call))
    assert (bill.dollars, bill.final, bill.note) == (None, True, "")


async def test_a_bill_above_the_reservation_is_final_and_left_to_the_ledger_to_note(
    tmp_path: Path,
) -> None:
    used = {"input_tokens": 50_000, "output_tokens": 1_000}
    end = await outcome(OddEndpoint(said(model="claude-opus-4-1", usage=used)), tmp_path)
    bill = bill_of(end)
    assert bill.dollars is not None and bill.dollars > CALL.ceiling
    assert bill.note == "", "`settling.pay` notes it, and once is enough"
    assert bill.final


# ---------------------------------------------------------------- sizes

MOST = ROOM + 64 * CALL.max_output


def unpacked(size: int) -> bytes:
    return b'data: {"type": "ping", "x": "' + b"x" * size + b'"}\n\n' + said()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("identity", bytes), ("gzip", gzip.compress), ("deflate", zlib.compress)],
)
async def test_an_answer_has_a_size_counted_after_decompression(
    encoding: str, packed: Any, tmp_path: Path
) -> None:
    head = f"200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {encoding}"
    fits = await outcome(OddEndpoint(packed(unpacked(ROOM)), head), tmp_path / "a")
    assert isinstance(fits, Reply)
    above = await outcome(OddEndpoint(packed(unpacked(MOST)), head), tmp_path / "b")
    assert isinstance(above, PossiblyBilled)
    assert "larger than any" in str(above)


@pytest.mark.long
async def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    once = gzip.compress(b"x" * 200_000_000)
    for head in ("200 OK", "400 Bad"):
        for encoding in ("gzip", "gzip, gzip"):
            bomb = gzip.compress(once) if "," in encoding else once
            told = f"{head}\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}"
            began = time.process_time()
            end = await outcome(OddEndpoint(bomb, told), tmp_path / head / encoding)
            assert isinstance(end, PossiblyBilled if head == "200 OK" else CallRefused)
            # Unpacking all of it takes twenty times as long.
            assert time.process_time() - began < 3.0


async def test_a_long_error_still_has_its_status(tmp_path: Path) -> None:
    end = await outcome(OddEndpoint(b"x" * (ROOM + 1), "529 Busy"), tmp_path)
    assert isinstance(end, NotBilled) and end.throttled


async def test_nothing_is_compressed_if_it_can_be_helped(tmp_path: Path) -> None:
    endpoint = OddEndpoint(said())
    await outcome(endpoint, tmp_path)
    assert b"accept-encoding: identity\r\n" in endpoint.requests[0].lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_refusal_and_nothing_follows_it(status: int, tmp_path: Path) -> None:
    async with serving(OddEndpoint(said())) as other:
        head = f"{status} Elsewhere\r\nlocation: {other.url}/v1/messages"
        end = await outcome(OddEndpoint(b"", head), tmp_path)
        assert isinstance(end, CallRefused)
        assert "ANTHROPIC_BASE_URL" in str(end)
        assert other.requests == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://gateway.example"])
async def test_no_client_follows_redirects(url: str) -> None:
    client = make_client("sk-ant-KEY", url, httpx2.Timeout(1), 1)
    assert client._client.follow_redirects is False
    await client.close()


# ---------------------------------------------------------------- what never left


async def lost_on_the_way(handler: Any, scheme: str) -> OrchestrationError:
    async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = Claude(key="k", base_url=f"{scheme}://127.0.0.1:{port}", price=prices.price)
        request = ModelRequest(HAIKU.id, "S", "P", {"type": "object"}, 100, capabilities=PLAIN)
        try:
            with pytest.raises(OrchestrationError) as raised:
                await model.ask(replace(request, deadline_seconds=5.0))
        finally:
            await model.aclose()
    return raised.value


async def test_a_handshake_that_fails_is_an_endpoint_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claude, "CONNECT_SECONDS", 0.3)

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    for handler in (reset, nonsense, silent):
        error = await lost_on_the_way(handler, "https")
        assert isinstance(error, EndpointUnreachable)
        assert error.unreached.why
        assert "\n" not in error.unreached.why


async def test_a_request_that_left_may_be_billed_however_it_was_lost() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    assert isinstance(await lost_on_the_way(reset, "http"), PossiblyBilled)


@pytest.mark.parametrize("address", ["https://127.0.0.1:8443", "https://gateway.example"])
async def test_whom_ssl_cert_file_names_is_trusted_on_this_machine_too(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    endpoint._load_trusted.cache_clear()
    try:
        with pytest.raises(ValueError, match="SSL_CERT_FILE or SSL_CERT_DIR cannot be read"):
            make_client("sk-ant-KEY", address, httpx2.Timeout(1), 1)
    finally:
        endpoint._load_trusted.cache_clear()
