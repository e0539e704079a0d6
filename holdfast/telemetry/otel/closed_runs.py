"""Sends the trace of each run that has closed to an OpenTelemetry backend.

Spans are made from histories, not while work is done: so a run has exactly as many as its history
has steps, whoever was killed meanwhile, and a workflow that replays tells nothing again. What was
sent is noted in the state directory once the backend has it. Who is killed in between sends the run
once more, with the same ids, by which a backend knows it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from holdfast.replaying.tracing import read_trace
from holdfast.storage.files import write_whole
from holdfast.telemetry.otel.exporting import MISSING, Send, blot_span, exporter
from holdfast.temporal.connection import is_part
from holdfast.tracing.otlp import OtelSpan, make_spans
from holdfast.untrusted.known_secrets import KnownSecrets

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The conventions' own switch."""
LOOK_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
"""Between two tries to reach a backend."""
LAG = timedelta(seconds=10)
"""How late the server's list may show a run that has closed."""
BATCH = 500
"""Spans of one request."""
log = logging.getLogger("spans")


class SentRuns(BaseModel):
    """The record of a state directory's sent spans: `spans.json`."""

    since: datetime
    """Runs that closed before, by more than a lag, are done."""
    runs: dict[str, datetime] = Field(default_factory=dict)
    """Executions whose spans a backend has, with the time of their close."""


async def send_spans(client: Client, state: Path, secrets: Iterable[str]) -> None:
    """Send the spans of closed runs, for ever. A backend that is away is tried again; nothing is
    lost while the server keeps the histories.
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
    """Send the spans of closed runs that were not sent. False if the backend or the server did not
    answer.
    """
    waiting, last = _Waiting(sent, put, send), sent.since
    runs = 'WorkflowType = "SupervisorWorkflow" AND ExecutionStatus != "Running"'
    query = f'{runs} AND CloseTime >= "{(sent.since - LAG).isoformat()}"'
    try:
        async for run in client.list_workflows(query):
            closed = run.close_time or sent.since
            last = max(last, closed)
            if is_part(run) or run.run_id in sent.runs:
                continue
            waiting.runs[run.run_id] = closed
            waiting.spans += await _spans_of(client, run, known)
            if len(waiting.spans) >= BATCH and not await waiting.leave():
                return False
    except RPCError as error:
        log.info("closed runs could not be read: %s", error)
        return False
    if not await waiting.leave():
        return False
    sent.since = last
    # What the list cannot show any more need not be known.
    old = [each for each, closed in sent.runs.items() if closed < last - 2 * LAG]
    for each in old:
        del sent.runs[each]
    if old:
        put()
    return True


@dataclass
class _Waiting:
    """Spans that are sent together: a request for each run would cost more than its spans."""

    sent: SentRuns
    put: Callable[[], None]
    send: Send
    spans: list[OtelSpan] = field(default_factory=list)
    runs: dict[str, datetime] = field(default_factory=dict)

    async def leave(self) -> bool:
        """Send them and record their runs. False if the backend did not take them."""
        for start in range(0, len(self.spans), BATCH):
            if not await asyncio.to_thread(self.send, self.spans[start : start + BATCH]):
                log.warning("%d spans were not taken; they are tried again", len(self.spans))
                return False
        if self.runs:
            self.sent.runs |= self.runs
            self.put()
        self.spans, self.runs = [], {}
        return True


async def _spans_of(client: Client, run: WorkflowExecution, known: KnownSecrets) -> list[OtelSpan]:
    """Return the spans of a run; none if it was reset, as the execution that goes on has its steps,
    or if its caller does not sample.
    """
    if await _was_reset(client, run):
        return []
    content = os.environ.get(CONTENT, "").strip().lower() == "true"
    found = await read_trace(client, run.id, execution=run.run_id, content=content)
    if found.caller is not None and not found.caller.sampled:
        return []
    return [blot_span(each, known) for each in make_spans(found, content=content)]


async def _was_reset(client: Client, run: WorkflowExecution) -> bool:
    """True if another execution goes on in place of this one."""
    if run.status is not WorkflowExecutionStatus.TERMINATED:
        return False
    told = await client.get_workflow_handle(run.id, run_id=run.run_id).describe()
    return bool(told.raw_description.workflow_extended_info.reset_run_id)


def _read(path: Path) -> SentRuns:
    """Return what was sent before; at the very first start, everything closed earlier counts as
    sent.
    """
    with suppress(OSError, ValidationError):
        return SentRuns.model_validate_json(path.read_bytes())
    first = SentRuns(since=datetime.now(UTC) + LAG)
    _put(path, first)
    return first


def _put(path: Path, sent: SentRuns) -> None:
    write_whole(path, sent.model_dump_json().encode())
