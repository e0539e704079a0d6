"""The span of a command that starts a run, which the run's own spans hang under. Its parent is what
TRACEPARENT names, as whatever called the command may have set it: so a run is a part of the trace
of a pipeline or a service.

The command sends it when it ends. One that is killed sends none: what the run did is there all the
same, under a span that never came.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from holdfast.telemetry.otel.exporting import MISSING, Send, blot_span, exporter, spans_wanted
from holdfast.tracing.context import SpanContext, parse_context
from holdfast.tracing.otlp import CONVERSATION, SCOPE, OtelSpan
from holdfast.untrusted.known_secrets import KnownSecrets

INBOUND = "TRACEPARENT"
PATIENCE_SECONDS = 3.0
"""How long a command that is done waits for a backend."""
MALFORMED = (
    f"{INBOUND} is not used, because it is no W3C trace context (00-TRACE-SPAN-FLAGS, 32, 16 and 2"
    " hex digits)"
)
NOT_TAKEN = "the OpenTelemetry backend did not take the span of this command"


@dataclass
class CommandSpan:
    """The span of a command while it runs."""

    name: str = ""
    parent: SpanContext | None = None
    own: SpanContext | None = None
    """None: nobody wants a span of it."""
    began: int = field(default_factory=time.time_ns)
    run_id: str = ""
    error: str = ""
    """What it ended with, in a word; empty: it went well."""
    send: Send | None = None

    @property
    def handed_on(self) -> str:
        """The `traceparent` for the run; empty if the run begins a trace of its own."""
        return str(self.own or self.parent or "")

    def end(self, secret: Iterable[str], warn: Callable[[str], None]) -> None:
        """Send the span without secrets."""
        if self.own is None or self.send is None or not self.own.sampled:
            return
        known = {CONVERSATION: self.run_id, "error.type": self.error}
        told = {"holdfast.kind": "command", **{name: it for name, it in known.items() if it}}
        span = OtelSpan(
            trace_id=self.own.trace_id,
            span_id=self.own.span_id,
            parent_id=self.parent.span_id if self.parent else "",
            name=f"{SCOPE} {self.name}",
            start=self.began,
            end=max(time.time_ns(), self.began),
            error=self.error,
            attributes=told,
        )
        if not self.send([blot_span(span, KnownSecrets(secret))]):
            warn(NOT_TAKEN)


def begin_span(name: str, warn: Callable[[str], None]) -> CommandSpan:
    """Return the span of a command that begins now. What cannot be used is passed to `warn` and
    stops nothing.
    """
    given = os.environ.get(INBOUND, "").strip()
    parent = parse_context(given) if given else None
    if given and parent is None:
        warn(MALFORMED)
    span = CommandSpan(name, parent)
    if not spans_wanted():
        return span
    # Its own complaints would stand on a person's screen; what matters of them is said once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    try:
        span.send = exporter(PATIENCE_SECONDS)
    except ImportError as error:
        warn(MISSING % error.name)
        return span
    trace_id = parent.trace_id if parent else _random(16)
    span.own = SpanContext(trace_id, _random(8), parent.sampled if parent else True)
    return span


def _random(size: int) -> str:
    """Return random hex digits that are not all zero."""
    return (secrets.randbits(8 * size) or 1).to_bytes(size).hex()
