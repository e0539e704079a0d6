"""Sends the trace of each run that has closed to an OpenTelemetry backend. Off unless
OTEL_EXPORTER_OTLP_ENDPOINT, or the one for traces, is set; then nothing of it is even imported.

Spans are made from histories, not while work is done: so a run has exactly as many as its history
has steps, whoever was killed meanwhile, and a workflow that replays tells nothing again. What was
sent is noted in the state directory once the backend has it. Who is killed in between sends the run
once more, with the same ids, by which a backend knows it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from deployment.files import write_whole
from deployment.histories.tracing import traced
from deployment.known_secrets import KnownSecrets
from orchestrator import __version__
from orchestrator.tracing.otlp import SCOPE, OtelSpan, spans

VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The conventions' own switch."""
DISABLED = "OTEL_SDK_DISABLED"
LOOK_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
"""Between two tries to reach a backend."""
LAG = timedelta(seconds=10)
"""How late the server's list may show a run that has closed."""
BATCH = 500
"""Spans of one request."""
MISSING = (
    "no spans are sent, because %s is not installed: pip install opentelemetry-sdk"
    " opentelemetry-exporter-otlp-proto-http"
)
log = logging.getLogger("spans")
Send = Callable[[Sequence[OtelSpan]], bool]


class SentRuns(BaseModel):
    """What a state directory knows of spans: `spans.json`."""

    since: datetime
    """Runs that closed before, by more than a lag, are done."""
    runs: dict[str, datetime] = Field(default_factory=dict)
    """Executions whose spans a backend has, with the time of their close."""


def spans_wanted() -> bool:
    """Whether the environment names a backend."""
    off = os.environ.get(DISABLED, "").strip().lower() == "true"
    return not off and any(os.environ.get(name) for name in VARIABLES)


async def send_spans(client: Client, state: Path, secrets: Iterable[str]) -> None:
    """Send what has closed, forever. A backend that is away is tried again, and nothing is lost as
    long as the server keeps the histories.
    """
    try:
        send = exporter()
    except ImportError as error:
        log.error(MISSING, error.name)
        await asyncio.Event().wait()
        return
    path, known, pause = state / "spans.json", KnownSecrets(secrets), LOOK_SECONDS
    sent = _read(path)
    while True:
        try:
            done = await send_closed(client, sent, partial(_put, path, sent), send, known)
        except Exception:
            # The worker's work is no spans: whatever goes wrong here, it goes on.
            log.exception("spans could not be sent; they are tried again")
            done = False
        pause = LOOK_SECONDS if done else min(2 * pause, LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(pause)


async def send_closed(
    client: Client, sent: SentRuns, put: Callable[[], None], send: Send, known: KnownSecrets
) -> bool:
    """Send the runs that have closed and whose spans were not sent. False: the backend or the
    server did not answer.
    """
    since = sent.since
    runs = 'WorkflowType = "SupervisorWorkflow" AND ExecutionStatus != "Running"'
    query = f'{runs} AND CloseTime >= "{(since - LAG).isoformat()}"'
    try:
        async for run in client.list_workflows(query):
            closed = run.close_time or since
            if run.parent_id is None and run.run_id not in sent.runs:
                if not await _send_one(client, run, send, known):
                    return False
                sent.runs[run.run_id] = closed
                put()
            sent.since = max(sent.since, closed)
    except RPCError as error:
        log.info("closed runs could not be read: %s", error)
        sent.since = since
        return False
    # What the list cannot show any more need not be known.
    old = [each for each, closed in sent.runs.items() if closed < sent.since - 2 * LAG]
    for each in old:
        del sent.runs[each]
    if old:
        put()
    return True


async def _send_one(
    client: Client, run: WorkflowExecution, send: Send, known: KnownSecrets
) -> bool:
    latest = await client.get_workflow_handle(run.id).describe()
    if latest.run_id != run.run_id and latest.raw_info.first_run_id == run.raw_info.first_run_id:
        # It was reset: the execution that goes on has the steps of this one.
        return True
    content = os.environ.get(CONTENT, "").strip().lower() == "true"
    found = await traced(client, run.id, execution=run.run_id, content=content)
    told = spans(found.steps, found.first_run, content=content)
    clean = [_blotted(each, known) for each in told]
    for start in range(0, len(clean), BATCH):
        if not await asyncio.to_thread(send, clean[start : start + BATCH]):
            log.warning("the spans of %s were not taken; they are tried again", run.id)
            return False
    return True


def _blotted(span: OtelSpan, known: KnownSecrets) -> OtelSpan:
    values = {"name": span.name, "error": span.error, "attributes": dict(span.attributes)}
    clean: dict[str, Any] = known.blot_all(values)
    return OtelSpan(**{**vars(span), **clean})


def _read(path: Path) -> SentRuns:
    """What was sent before; at the very first start, nothing that closed before it."""
    with suppress(OSError, ValidationError):
        return SentRuns.model_validate_json(path.read_bytes())
    first = SentRuns(since=datetime.now(UTC) + LAG)
    _put(path, first)
    return first


def _put(path: Path, sent: SentRuns) -> None:
    write_whole(path, sent.model_dump_json().encode())


# ---------------------------------------------------------------- by OpenTelemetry's own exporter


def exporter() -> Send:
    """Sends spans as its environment variables say. ImportError where it is not installed."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace.export import SpanExportResult

    target = OTLPSpanExporter()
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))

    def send(told: Sequence[OtelSpan]) -> bool:
        made = [_made(each, resource) for each in told]
        return target.export(made) is SpanExportResult.SUCCESS

    return send


def _made(span: OtelSpan, resource: Any) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(id: str) -> SpanContext:
        sampled = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(span.trace_id, 16), int(id, 16), False, sampled)

    return ReadableSpan(
        span.name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope(SCOPE, __version__),
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=span.start,
        end_time=span.end,
    )
