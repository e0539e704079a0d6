"""The forms in which a trace is handed on: viewers open them, and they hold what was asked for."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory

from holdfast.replaying.tracing import read_trace_file
from holdfast.tracing.otlp import make_spans, to_otlp_json
from holdfast.tracing.steps import Trace

HISTORIES = sorted((Path(__file__).parent.parent / "histories").glob("*.json"))


@pytest.fixture(params=HISTORIES, ids=lambda path: path.stem)
def trace(request: pytest.FixtureRequest) -> Trace:
    path: Path = request.param
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    return asyncio.run(read_trace_file(history.events, content=True))


def test_every_step_is_one_span_with_ids_that_are_the_same_each_time(trace: Trace) -> None:
    told = make_spans(trace)
    assert len(told) == len(trace.steps) == len({each.span_id for each in told})
    assert told == make_spans(trace)
    assert {each.span_id for each in told}.isdisjoint(
        each.span_id for each in make_spans(replace(trace, first_run="another run of this name"))
    )
    ids = {each.span_id for each in told}
    roots = [each for each in told if not each.parent_id]
    assert len(roots) == 1 and roots[0].name == "invoke_workflow"
    assert all(each.parent_id in ids for each in told if each.parent_id)


def test_only_calls_of_models_have_usage_so_that_no_token_is_counted_twice(trace: Trace) -> None:
    told = make_spans(trace)
    paid = [each for each in told if "gen_ai.usage.input_tokens" in each.attributes]
    assert {each.name.split()[0] for each in paid} <= {"chat"}
    whole = next(each for each in trace.steps if not each.parent)
    total = sum(int(str(each.attributes["gen_ai.usage.output_tokens"])) for each in paid)
    assert total == whole.tokens.output_tokens
    assert all(each.attributes["gen_ai.provider.name"] == "anthropic" for each in paid)


def test_a_span_has_no_words_of_models_and_people_unless_they_are_asked_for(trace: Trace) -> None:
    bare = str(make_spans(trace))
    said = [each.why for each in trace.steps if each.why] + [each.title for each in trace.steps]
    assert not [each for each in said if each and each in bare and len(each.split()) > 1]
    full = make_spans(trace, content=True)
    assert any("input.value" in each.attributes for each in full)


def test_the_file_is_as_the_protocol_has_it_in_json(trace: Trace) -> None:
    document = to_otlp_json(make_spans(trace), {"service.name": "holdfast"})
    (resource,) = document["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    for span in scope["spans"]:
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16))
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert all(_is_value(each["value"]) for each in span["attributes"])
    steps = [each.started for each in trace.steps if each.started]
    assert all(before <= after for before, after in pairwise(steps)), "in the order of beginnings"


def _is_value(value: dict[str, Any]) -> bool:
    ((kind, held),) = value.items()
    types = {"stringValue": str, "intValue": str, "doubleValue": float, "arrayValue": dict}
    return isinstance(held, types[kind])
