"""Spans of closed runs reach a backend as the protocol has them, each once, by the exporter that
OpenTelemetry itself has; and where nobody asks for them nothing of it is loaded.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from conftest import Handle, Runs
from holdfast.contracts import Bill, Goal
from holdfast.contracts.errors import PossiblyBilled
from holdfast.deployment.settings import HOME, Settings
from holdfast.replaying.tracing import read_trace
from holdfast.telemetry.otel import closed_runs
from holdfast.telemetry.otel.closed_runs import CONTENT, SentRuns, send_closed, send_spans
from holdfast.telemetry.otel.exporting import DISABLED, VARIABLES, Send, exporter, spans_wanted
from holdfast.untrusted.known_secrets import KnownSecrets
from parameters import rest_long
from receiver import Received, receiver
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

ENDPOINT = VARIABLES[0]
SECRET = "sk-very-secret-9182736"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    with receiver() as received:
        monkeypatch.setenv(ENDPOINT, received.address)
        yield received


async def closed(runs: Runs) -> str:
    """A run that has closed, one of whose calls was lost."""
    dropped = PossiblyBilled("dropped", Bill(calls=1))
    model = ScriptedModel({"t1": [dropped, works("one")], "synthesize": [synthesizes("done")]})
    goal = Goal(text=f"Tell {SECRET}", use_models=True, plan=ready(subtask("t1")))
    return (await runs.run(goal, model)).run_id


async def until_sent(runs: Runs, run_id: str, sent: SentRuns, send: Send) -> None:
    """Look until the server's list shows the run and it was sent."""
    known = KnownSecrets([SECRET])
    execution = (await runs.client.get_workflow_handle(run_id).describe()).run_id
    async with asyncio.timeout(30):
        while execution not in sent.runs:
            assert await send_closed(runs.client, sent, lambda: None, send, known)
            await asyncio.sleep(0.1)


def beginning() -> SentRuns:
    return SentRuns(since=datetime.now(UTC) - timedelta(seconds=30))


def of_run(backend: Received, run_id: str) -> list[Span]:
    """The test server has other runs, too."""
    return [each for each in backend.spans if told(each)["gen_ai.conversation.id"] == run_id]


def told(span: Span) -> dict[str, Any]:
    kinds = {each.key: each.value.WhichOneof("value") for each in span.attributes}
    return {each.key: getattr(each.value, str(kinds[each.key])) for each in span.attributes}


async def test_a_run_has_as_many_spans_as_steps_and_none_is_sent_again(
    runs: Runs, backend: Received
) -> None:
    sent = beginning()
    run_id = await closed(runs)
    await until_sent(runs, run_id, sent, exporter())
    trace = await read_trace(runs.client, run_id)
    assert len(of_run(backend, run_id)) == len(trace.steps)
    assert await send_closed(runs.client, sent, lambda: None, exporter(), KnownSecrets([]))
    assert len(of_run(backend, run_id)) == len(trace.steps)
    assert backend.services == {"holdfast"}


async def test_spans_are_by_the_conventions_and_hang_together(
    runs: Runs, backend: Received
) -> None:
    run_id = await closed(runs)
    await until_sent(runs, run_id, beginning(), exporter())
    spans = {told(each)["holdfast.step"]: each for each in of_run(backend, run_id)}
    run, part = spans[run_id], spans[f"{run_id}:t1"]
    lost, call = spans[f"{run_id}/work-t1-1"], spans[f"{run_id}/work-t1-2"]
    assert (run.name, run.parent_span_id) == ("invoke_workflow", b"")
    assert (part.name, part.parent_span_id) == ("invoke_agent analyst", run.span_id)
    assert call.name.startswith("chat claude-sonnet") and call.parent_span_id == part.span_id
    assert call.kind == Span.SPAN_KIND_CLIENT
    facts = told(call)
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.provider.name"] == "anthropic"
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (1000, 100)
    assert [each.string_value for each in facts["gen_ai.response.finish_reasons"].values] == [
        "stop"
    ]
    assert facts["holdfast.cost_usd"] == 0.003
    assert (lost.status.code, lost.status.message) == (Status.STATUS_CODE_ERROR, "possibly_billed")
    assert told(lost)["error.type"] == "possibly_billed"
    assert {each.trace_id for each in spans.values()} == {run.trace_id}
    assert run.start_time_unix_nano <= call.start_time_unix_nano < call.end_time_unix_nano


async def test_what_was_said_is_in_no_span_unless_it_is_asked_for_and_a_secret_never(
    runs: Runs, backend: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await closed(runs)
    await until_sent(runs, run_id, beginning(), exporter())
    assert not [each for each in of_run(backend, run_id) if "input.value" in told(each)]
    assert "dropped" not in str(of_run(backend, run_id))
    backend.spans.clear()
    monkeypatch.setenv(CONTENT, "true")
    await until_sent(runs, run_id, beginning(), exporter())
    said = str([told(each) for each in of_run(backend, run_id)])
    assert "Tell [redacted]" in said and "very-secret" not in said


@pytest.mark.long
async def test_who_is_killed_before_it_noted_what_was_sent_sends_the_same_ids_again(
    runs: Runs, backend: Received
) -> None:
    run_id = await closed(runs)
    await until_sent(runs, run_id, beginning(), exporter())
    first = of_run(backend, run_id)
    await until_sent(runs, run_id, beginning(), exporter())
    again = of_run(backend, run_id)[len(first) :]
    assert sorted(each.span_id for each in again) == sorted(each.span_id for each in first)


@pytest.mark.parametrize("how", rest_long(["refuses", "says that it is elsewhere"]))
async def test_a_backend_that_is_away_gets_all_of_it_later(
    runs: Runs, backend: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(closed_runs, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(closed_runs, "LONGEST_PAUSE_SECONDS", 0.2)
    backend.takes, backend.elsewhere = how != "refuses", how != "refuses"
    sending = asyncio.create_task(send_spans(runs.client, tmp_path, []))
    try:
        await asyncio.sleep(0.2)
        run_id = await closed(runs)
        await asyncio.sleep(1)
        assert backend.spans == []
        backend.takes, backend.elsewhere = True, False
        steps = len((await read_trace(runs.client, run_id)).steps)
        for _ in range(300):
            if len(of_run(backend, run_id)) < steps:
                await asyncio.sleep(0.1)
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
    assert len(of_run(backend, run_id)) == steps
    assert run_id not in (tmp_path / "spans.json").read_text()
    assert (tmp_path / "spans.json").stat().st_mode & 0o077 == 0


async def test_where_the_exporter_is_not_installed_that_is_said_and_nothing_ends(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> Send:
        raise ImportError("no", name="opentelemetry.sdk")

    monkeypatch.setattr(closed_runs, "exporter", missing)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await send_spans(runs.client, tmp_path, [])
    assert "opentelemetry.sdk is not installed: make setup" in caplog.text


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: "http://127.0.0.1:1"}, True),
        ({VARIABLES[1]: "http://127.0.0.1:1/v1/traces"}, True),
        ({ENDPOINT: "http://127.0.0.1:1", DISABLED: "true"}, False),
    ],
)
def test_it_is_off_unless_a_backend_is_named(
    variables: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES, DISABLED):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert spans_wanted() is wanted


def test_a_worker_loads_nothing_of_it_before_somebody_wants_spans() -> None:
    code = "import sys, worker; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True
    )
    loaded = {each for each in done.stdout.split() if each.startswith("opentelemetry.")}
    assert not {each for each in loaded if "sdk" in each or "exporter" in each}


def test_what_a_backend_is_given_to_let_spans_in_is_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "team=x,api-key=abcdef-123456")
    assert "abcdef-123456" in Settings(_env_file=None).secrets


@pytest.mark.long
async def test_of_a_run_that_was_reset_only_the_execution_that_goes_on_is_sent(
    runs: Runs, backend: Received
) -> None:
    held = asyncio.Event()
    model = ScriptedModel(
        {"t1": [held, works("one"), works("one")], "synthesize": [synthesizes("done")]}
    )
    goal = Goal(text="Tell", use_models=True, plan=ready(subtask("t1")))
    sent = beginning()
    async with runs.worker(model), asyncio.timeout(60):
        handle = await runs.start(goal, skipping=False)
        await model.asked("t1")
        request = ResetWorkflowExecutionRequest(
            namespace=runs.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            reason="a test",
            # The task that follows on `prepare`.
            workflow_task_finish_event_id=await second_task(handle),
            request_id="once",
        )
        await runs.client.workflow_service.reset_workflow_execution(request)
        held.set()
        await runs.client.get_workflow_handle(handle.id).result()
    await until_sent(runs, handle.id, sent, exporter())
    steps = len((await read_trace(runs.client, handle.id)).steps)
    ids = [each.span_id for each in of_run(backend, handle.id)]
    assert len(ids) == len(set(ids)) == steps
    assert len(sent.runs) >= 2, "both executions are known to be done"


async def second_task(handle: Handle) -> int:
    """The event that completed the second workflow task of a run."""
    events = (await handle.fetch_history()).events
    kind = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    return [each.event_id for each in events if each.event_type == kind][1]
