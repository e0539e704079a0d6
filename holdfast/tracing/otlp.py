"""A trace as spans of OpenTelemetry, by its conventions for generative AI. Pure.

Those conventions are in development: their names stand here and nowhere else. What models and
people wrote, titles and reasons too, is among the attributes only where content was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.tracing.facts import USES_TOOLS
from holdfast.tracing.steps import Trace, TraceStep, last_moment

Attribute = str | int | float | bool | list[str]
PROVIDER = "anthropic"
SCOPE = "holdfast"
CONVERSATION = "gen_ai.conversation.id"
"""The run that a person started."""
_CLIENT, _INTERNAL = 3, 1
_UNSET, _ERROR = 0, 2
_OPERATIONS: Mapping[str, str] = {
    "run": "invoke_workflow",
    "team": "invoke_workflow",
    "subtask": "invoke_agent",
    "agent": "invoke_agent",
    "map": "invoke_agent",
    "call": "chat",
    "tool": "execute_tool",
    "lens": "execute_tool",
}


@dataclass(frozen=True)
class OtelSpan:
    """One span, in the values of the protocol."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    parent_id: str
    """Empty: it is the root."""
    name: str
    start: int
    """Nanoseconds since 1970."""
    end: int
    client: bool = False
    """True if it is a request to another service."""
    error: str = ""
    """The kind of error, in a word; empty: there was none."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def make_spans(trace: Trace, *, content: bool = False) -> tuple[OtelSpan, ...]:
    """Return a span for each step that has begun; the run's hangs under its caller's, where it has
    one. The same step has the same ids whenever and by whomever its span is made: a backend that
    gets it twice counts it once.
    """
    late = last_moment(trace.steps)
    if late is None:
        return ()
    begun = [each for each in trace.steps if each.started is not None]
    return tuple(_span(each, trace, late, content=content) for each in begun)


def _span(step: TraceStep, trace: Trace, late: datetime, *, content: bool) -> OtelSpan:
    assert step.started is not None
    of, caller = trace.first_run, trace.caller
    above = caller.span_id if caller else ""
    start = _nanoseconds(step.started)
    failed = step.status in ("error", "unfinished")
    return OtelSpan(
        trace_id=caller.trace_id if caller else hashlib.sha256(of.encode()).hexdigest()[:32],
        span_id=_span_id(of, step.id),
        parent_id=_span_id(of, step.parent) if step.parent else above,
        name=_name(step),
        start=start,
        end=max(_nanoseconds(step.ended or late), start),
        client=_asks(step),
        error=(step.verdict or step.status) if failed else "",
        attributes={**_conventional(step), **_own(step), **(_content(step) if content else {})},
    )


def _nanoseconds(moment: datetime) -> int:
    """Return the time since 1970, exactly: a float would not hold the last microsecond."""
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000


def _span_id(first_run: str, step: str) -> str:
    return hashlib.sha256(f"{first_run}\n{step}".encode()).hexdigest()[:16]


def _asks(step: TraceStep) -> bool:
    return step.kind == "call" and bool(step.model)


def _name(step: TraceStep) -> str:
    """Return `chat MODEL`, `invoke_agent ROLE`: of few kinds, so that a backend can group by it."""
    operation = _OPERATIONS.get(step.kind, step.kind)
    if step.kind == "call" and not step.model:
        return step.call
    told = {"call": step.model, "tool": step.tool, "lens": step.tool, "order": step.name}
    return f"{operation} {told.get(step.kind, step.agent)}".strip()


def _conventional(step: TraceStep) -> dict[str, Attribute]:
    """Return the conventions' own attributes. A sum of calls is in no `usage`, or a backend would
    count it twice.
    """
    found: dict[str, Attribute] = {CONVERSATION: step.session}
    if step.kind in _OPERATIONS and (step.kind != "call" or step.model):
        found["gen_ai.operation.name"] = _OPERATIONS[step.kind]
    if step.agent and step.kind != "order":
        found["gen_ai.agent.name"] = step.agent
    if step.kind in ("tool", "lens"):
        found |= {"gen_ai.tool.name": step.tool, "gen_ai.tool.type": "function"}
    if step.status in ("error", "unfinished"):
        found["error.type"] = step.verdict or step.status
    if not _asks(step):
        return found
    used = step.tokens
    cached = used.cache_read_tokens + used.cache_write_tokens
    found |= {
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": step.model,
        "gen_ai.response.model": step.model,
        "gen_ai.response.finish_reasons": [_finish(step)],
        # The sum with what was cached, as the conventions have it.
        "gen_ai.usage.input_tokens": used.input_tokens + cached,
        "gen_ai.usage.output_tokens": used.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": used.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": used.cache_write_tokens,
    }
    return found


def _finish(step: TraceStep) -> str:
    """Return how the answer ended, in the words of the conventions."""
    if step.status != "ok":
        return "error"
    known = {"refusal": "content_filter", "truncated": "length", USES_TOOLS: "tool_call"}
    return known.get(step.verdict, "stop")


def _own(step: TraceStep) -> dict[str, Attribute]:
    """Return the attributes for which the conventions have no names."""
    found: dict[str, Attribute] = {
        "holdfast.step": step.id,
        "holdfast.kind": step.kind,
        "holdfast.status": step.status,
        "holdfast.attempt": step.attempt,
        "holdfast.queued_seconds": step.queued,
    }
    if step.dollars is not None and step.kind in ("run", "team", "agent", "map", "subtask", "call"):
        # Sums have a name of their own: who adds up calls must not meet them.
        name = "cost_usd" if step.kind == "call" else "cost_usd_in_all"
        found[f"holdfast.{name}"] = float(step.dollars)
    for name in ("verdict", "subtask", "task", "call", "tier"):
        if value := getattr(step, name):
            found[f"holdfast.{name}"] = value
    if step.try_number:
        found["holdfast.try"] = step.try_number
    return found


def _content(step: TraceStep) -> dict[str, Attribute]:
    told = {"holdfast.title": step.title, "holdfast.why": step.why}
    found: dict[str, Attribute] = {name: text for name, text in told.items() if text}
    if step.input is not None:
        # The names of OpenInference: the conventions' own want messages, which no history holds.
        found["input.value"] = json.dumps(step.input, ensure_ascii=False)
    if step.output is not None:
        found["output.value"] = json.dumps(step.output, ensure_ascii=False)
    return found


# ---------------------------------------------------------------- as a file


def to_otlp_json(told: Sequence[OtelSpan], resource: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return spans as one document of OTLP/JSON: a line for a collector's file receiver."""
    scope = {"scope": {"name": SCOPE}, "spans": [_as_json(each) for each in told]}
    described = {"attributes": _attributes(resource)}
    return {"resourceSpans": [{"resource": described, "scopeSpans": [scope]}]}


def _as_json(span: OtelSpan) -> dict[str, Any]:
    parent = {"parentSpanId": span.parent_id} if span.parent_id else {}
    status = {"code": _ERROR, "message": span.error} if span.error else {"code": _UNSET}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **parent,
        "name": span.name,
        "kind": _CLIENT if span.client else _INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "status": status,
    }


def _attributes(values: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value}
