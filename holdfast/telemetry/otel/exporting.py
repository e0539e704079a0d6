"""OpenTelemetry's own exporter. Off unless OTEL_EXPORTER_OTLP_ENDPOINT, or the one for traces, is
set; then nothing of it is even imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from holdfast import __version__
from holdfast.deployment.extras import how_to_get
from holdfast.tracing.otlp import SCOPE, OtelSpan
from holdfast.untrusted.known_secrets import KnownSecrets

VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
DISABLED = "OTEL_SDK_DISABLED"
MISSING = f"no spans are sent, because %s is not installed: {how_to_get('otel')}"
Send = Callable[[Sequence[OtelSpan]], bool]
"""Sends spans; returns whether the backend took them."""


def spans_wanted() -> bool:
    """True if the environment names a backend."""
    off = os.environ.get(DISABLED, "").strip().lower() == "true"
    return not off and any(os.environ.get(name) for name in VARIABLES)


def exporter(patience: float | None = None) -> Send:
    """Return what sends spans as OpenTelemetry's variables say. ImportError if it is not installed.

    `patience`: seconds after which it gives up if no variable says; None: the library's own.
    """
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace.export import SpanExportResult

    own = any(os.environ.get(name) for name in TIMEOUTS)
    session = requests.Session()
    session.hooks["response"].append(_refuse_elsewhere)
    target = OTLPSpanExporter(timeout=None if own else patience, session=session)
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))

    def send(told: Sequence[OtelSpan]) -> bool:
        made = [_made(each, resource) for each in told]
        return target.export(made) is SpanExportResult.SUCCESS

    return send


def _refuse_elsewhere(answer: Any, *_: Any, **__: Any) -> None:
    """Raise for a redirect: the library takes it for success and follows it nowhere."""
    if 300 <= answer.status_code < 400:
        answer.close()
        raise ConnectionAbortedError(
            f"the backend answers {answer.status_code}, that it is elsewhere: give that address"
        )


def blot_span(span: OtelSpan, known: KnownSecrets) -> OtelSpan:
    """Return the span without secrets."""
    values = {"name": span.name, "error": span.error, "attributes": dict(span.attributes)}
    clean: dict[str, Any] = known.blot_all(values)
    return OtelSpan(**{**vars(span), **clean})


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
