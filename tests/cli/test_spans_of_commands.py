"""A command that starts a run sends a span of its own, and the run's spans hang under it; what
called the command may hand it a context of W3C in TRACEPARENT.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from commanded import script
from conftest import Runs
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.intake.connection import Connection
from holdfast.replaying.tracing import read_trace
from holdfast.telemetry.otel import commands
from holdfast.telemetry.otel.closed_runs import SentRuns, send_closed
from holdfast.telemetry.otel.exporting import VARIABLES, exporter
from holdfast.tracing.context import SpanContext, parse_context
from holdfast.untrusted.known_secrets import KnownSecrets
from receiver import Received, receiver
from scripted import works

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
INBOUND = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    monkeypatch.delenv(commands.INBOUND, raising=False)
    with receiver() as received:
        monkeypatch.setenv(VARIABLES[0], received.address)
        yield received


@pytest.fixture
def server(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """Commands find the test server as they would find one of an operator's own."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", connection.target.address)
    monkeypatch.setenv("STORE_URL", connection.target.store_url)
    monkeypatch.setenv("HOLDFAST_TASK_QUEUE", connection.target.task_queue)
    return connection


async def typed(command: str) -> int:
    return await asyncio.to_thread(main, shlex.split(command))


async def sent(connection: Connection, run_id: str) -> list[Span]:
    """What the worker sends of a run that has closed, by a backend of its own."""
    beginning = SentRuns(since=datetime.now(UTC) - timedelta(seconds=60))
    execution = (await connection.handle(run_id).describe()).run_id
    with receiver() as received, pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLES[0], received.address)
        send = exporter()
        async with asyncio.timeout(30):
            while execution not in beginning.runs:
                none = KnownSecrets([])
                assert await send_closed(connection.client, beginning, lambda: None, send, none)
                await asyncio.sleep(0.1)
    return [each for each in received.spans if attribute(each, "gen_ai.conversation.id") == run_id]


def attribute(span: Span, name: str) -> str:
    return next((each.value.string_value for each in span.attributes if each.key == name), "")


def root(spans: list[Span]) -> Span:
    """The span of the run itself."""
    (found,) = (each for each in spans if each.name == "invoke_workflow")
    return found


@pytest.mark.anyio
async def test_a_run_hangs_under_the_command_that_started_it_and_that_under_its_caller(
    runs: Runs, server: Connection, backend: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(commands.INBOUND, INBOUND)
    async with runs.worker(script()):
        code = await typed("run 'Compare engines' --models --yes --id span-run --json")
    assert code == Code.COMPLETE
    (span,) = backend.spans
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == (
        "holdfast run",
        TRACE,
        SPAN,
    )
    assert attribute(span, "gen_ai.conversation.id") == "span-run"
    assert span.status.code == Status.STATUS_CODE_UNSET
    told = await sent(server, "span-run")
    run = root(told)
    assert run.parent_span_id == span.span_id
    assert {each.trace_id for each in told} == {span.trace_id}
    assert span.start_time_unix_nano < run.start_time_unix_nano
    assert span.end_time_unix_nano > run.end_time_unix_nano, "it watched to the end"
    again = await sent(server, "span-run")
    assert [each.span_id for each in again] == [each.span_id for each in told]
    assert len(told) == len((await read_trace(server.client, "span-run")).steps)


@pytest.mark.anyio
async def test_start_ends_its_span_when_the_run_has_started_in_a_trace_of_its_own(
    runs: Runs, server: Connection, backend: Received
) -> None:
    held = asyncio.Event()
    async with runs.worker(script(t1=[held, works("one")])):
        assert await typed("start 'Compare engines' --models --id span-start") == Code.COMPLETE
        (span,) = backend.spans
        held.set()
        await server.handle("span-start").result()
    run = root(await sent(server, "span-start"))
    assert (span.name, span.parent_span_id) == ("holdfast start", b"")
    assert (run.parent_span_id, run.trace_id) == (span.span_id, span.trace_id)
    assert span.end_time_unix_nano < run.end_time_unix_nano


@pytest.mark.long
@pytest.mark.anyio
async def test_what_the_caller_handed_on_reaches_the_run_where_the_command_has_no_backend(
    runs: Runs, server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[0], raising=False)
    monkeypatch.setenv(commands.INBOUND, INBOUND)
    async with runs.worker(script()):
        await typed("run 'Compare engines' --models --yes --id span-through --json")
    run = root(await sent(server, "span-through"))
    assert (run.trace_id.hex(), run.parent_span_id.hex()) == (TRACE, SPAN)


@pytest.mark.long
@pytest.mark.anyio
async def test_nothing_is_sent_of_a_trace_that_its_caller_does_not_keep(
    runs: Runs, server: Connection, backend: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(commands.INBOUND, f"00-{TRACE}-{SPAN}-00")
    async with runs.worker(script()):
        await typed("run 'Compare engines' --models --yes --id span-dropped --json")
    assert backend.spans == []
    assert await sent(server, "span-dropped") == []


@pytest.mark.anyio
async def test_a_malformed_context_is_said_in_a_line_and_not_used(
    runs: Runs,
    server: Connection,
    backend: Received,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(commands.INBOUND, "sk-very-secret-9182736")
    async with runs.worker(script()):
        await typed("run 'Compare engines' --models --yes --id span-bad --json")
    said = capsys.readouterr().err
    assert said.count(commands.INBOUND) == 1 and "very-secret" not in said
    (span,) = backend.spans
    assert span.parent_span_id == b"" and any(span.trace_id)


@pytest.mark.anyio
async def test_a_command_that_fails_says_so_in_its_span_and_a_backend_that_is_away_is_a_line(
    server: Connection,
    backend: Received,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr("holdfast.client.connecting.CONNECT_SECONDS", 0.1)
    assert await typed("start 'Compare engines' --models") == Code.UNREACHABLE
    (span,) = backend.spans
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert attribute(span, "error.type") == "Unreachable"
    capsys.readouterr()
    backend.takes = False
    assert await typed("start 'Compare engines' --models") == Code.UNREACHABLE
    said = capsys.readouterr().err.splitlines()
    assert said.count(commands.NOT_TAKEN) == 1 and len(said) == 2, said


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (INBOUND, SpanContext(TRACE, SPAN)),
        (f"00-{TRACE}-{SPAN}-00", SpanContext(TRACE, SPAN, sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", SpanContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", SpanContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-01.what", None),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        (f"{INBOUND}\n", None),
        ("", None),
    ],
)
def test_a_context_is_read_as_w3c_has_it(header: str, read: SpanContext | None) -> None:
    assert parse_context(header) == read
    assert read is None or parse_context(str(read)) == read
