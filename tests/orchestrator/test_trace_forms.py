"""The forms in which a trace is handed on: viewers open them, and they hold what was asked for."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory

from drawn import START
from holdfast.replaying.tracing import traced_file
from holdfast.tracing.chrome import chrome
from holdfast.tracing.otlp import as_file, spans
from holdfast.tracing.steps import Step, Trace

HISTORIES = sorted((Path(__file__).parent.parent / "histories").glob("*.json"))


@pytest.fixture(params=HISTORIES, ids=lambda path: path.stem)
def trace(request: pytest.FixtureRequest) -> Trace:
    path: Path = request.param
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    return asyncio.run(traced_file(history.events, content=True))


def test_every_step_is_one_slice_and_slices_of_a_row_lie_within_each_other(trace: Trace) -> None:
    events = chrome(trace.steps)["traceEvents"]
    slices = [each for each in events if each["ph"] == "X"]
    assert {each["args"]["id"] for each in slices} == {each.id for each in trace.steps}
    assert all(isinstance(each["ts"], int) and each["dur"] >= 0 for each in slices)
    for row in {(each["pid"], each["tid"]) for each in slices}:
        own = [each for each in slices if (each["pid"], each["tid"]) == row]
        placed = [(each["ts"], each["ts"] + each["dur"]) for each in own]
        for number, (start, end) in enumerate(placed):
            for later, until in placed[number + 1 :]:
                assert later >= end or (start <= later and until <= end), "one cuts into another"


def test_each_subtask_has_rows_of_its_own_below_those_of_the_supervisor(trace: Trace) -> None:
    events = chrome(trace.steps)["traceEvents"]
    names = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert names[0] == "supervisor"
    begun = [each for each in trace.steps if each.kind == "subtask" and each.started]
    for each in begun:
        assert sum(name.startswith(f"{each.name} ") for name in names) >= 1
    rows: dict[int, set[str]] = {}
    of = {each.id: each.subtask for each in trace.steps}
    for each in events:
        if each["ph"] == "X":
            subtask = of[each["args"]["id"]] if each["cat"] != "order" else ""
            rows.setdefault(each["tid"], set()).add(subtask)
    assert all(len(found) == 1 for found in rows.values()), "what is in a row is of one subtask"


def test_a_row_of_a_team_is_in_a_process_of_its_own_and_what_overlaps_has_its_own_row() -> None:
    def step(id: str, parent: str, kind: str, begin: int, end: int, **more: Any) -> Step:
        given = {"session": "r", "id": id, "parent": parent, "kind": kind, "name": id, "run": "r"}
        at = {"started": START + timedelta(seconds=begin), "ended": START + timedelta(seconds=end)}
        return Step.model_validate({**given, **at, **more})

    steps = (
        step("r", "", "run", 0, 9, title="Engines"),
        step("r:t1", "r", "subtask", 1, 8),
        step("r.t1.1", "r:t1", "team", 1, 8, title="a part"),
        step("r.t1.1:a", "r.t1.1", "subtask", 2, 7),
        step("one", "r.t1.1:a", "tool", 2, 4, tool="read_file", arguments='"a.md"'),
        step("two", "r.t1.1:a", "tool", 3, 5, tool="read_file", arguments="x" * 200),
        step(
            "no",
            "r.t1.1:a",
            "call",
            5,
            6,
            call="work",
            tier="sonnet",
            status="error",
            verdict="NotBilled",
        ),
    )
    events = chrome(steps)["traceEvents"]
    named = [
        each["args"]["name"] for each in events if each["ph"] == "M" and "_name" in each["name"]
    ]
    assert named == ["r Engines", "supervisor", "r:t1", "team a part", "r.t1.1:a", "r.t1.1:a (2)"]
    slices = {each["args"]["id"]: each for each in events if each["ph"] == "X"}
    assert slices["r.t1.1"]["pid"] == slices["r"]["pid"] != slices["one"]["pid"]
    assert slices["one"]["name"] == 'read_file "a.md"' and len(slices["two"]["name"]) == 80
    assert (slices["no"]["name"], slices["no"]["cname"]) == ("work sonnet: NotBilled", "terrible")


def test_every_step_is_one_span_with_ids_that_are_the_same_each_time(trace: Trace) -> None:
    told = spans(trace)
    assert len(told) == len(trace.steps) == len({each.span_id for each in told})
    assert told == spans(trace)
    assert {each.span_id for each in told}.isdisjoint(
        each.span_id for each in spans(replace(trace, first_run="another run of this name"))
    )
    ids = {each.span_id for each in told}
    roots = [each for each in told if not each.parent_id]
    assert len(roots) == 1 and roots[0].name == "invoke_workflow"
    assert all(each.parent_id in ids for each in told if each.parent_id)


def test_only_calls_of_models_have_usage_so_that_no_token_is_counted_twice(trace: Trace) -> None:
    told = spans(trace)
    paid = [each for each in told if "gen_ai.usage.input_tokens" in each.attributes]
    assert {each.name.split()[0] for each in paid} <= {"chat"}
    whole = next(each for each in trace.steps if not each.parent)
    total = sum(int(str(each.attributes["gen_ai.usage.output_tokens"])) for each in paid)
    assert total == whole.tokens.output_tokens
    assert all(each.attributes["gen_ai.provider.name"] == "anthropic" for each in paid)


def test_a_span_has_no_words_of_models_and_people_unless_they_are_asked_for(trace: Trace) -> None:
    bare = str(spans(trace))
    said = [each.why for each in trace.steps if each.why] + [each.title for each in trace.steps]
    assert not [each for each in said if each and each in bare and len(each.split()) > 1]
    full = spans(trace, content=True)
    assert any("input.value" in each.attributes for each in full)


def test_the_file_is_as_the_protocol_has_it_in_json(trace: Trace) -> None:
    document = as_file(spans(trace), {"service.name": "holdfast"})
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
