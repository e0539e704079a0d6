"""The adapter against two servers: the simulator, and a plain one of another make."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calling import KEY, PLAIN, REQUEST, claude, price
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.claude.endpoint import find_capabilities
from holdfast.activities.claude.wire import shape
from holdfast.calls.plan import PlanAnswer
from holdfast.calls.synthesize import SynthesisAnswer
from holdfast.calls.work import WorkAnswer
from holdfast.contracts import Capabilities
from holdfast.contracts.errors import PossiblyBilled
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator
from plain_endpoint import PlainEndpoint, serving

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- the request


def test_a_request_carries_nothing_that_a_current_model_refuses() -> None:
    body = shape(REQUEST, Capabilities())
    assert set(body) == {"model", "max_tokens", "messages", "system", "stream", "output_config"}
    assert body["messages"][-1]["role"] == "user"
    assert body["output_config"]["effort"] == "medium"


def test_no_prompt_is_marked_for_a_cache_that_would_not_take_it() -> None:
    body = shape(REQUEST, Capabilities())
    assert body["system"] == REQUEST.system
    assert "cache_control" not in json.dumps(body)


def test_an_endpoint_that_understands_nothing_gets_text_and_the_schema_in_it() -> None:
    body = shape(REQUEST, PLAIN)
    assert set(body) == {"model", "max_tokens", "messages", "system", "stream"}
    assert body["system"].startswith("You are an analyst.")
    assert '"additionalProperties": false' in body["system"]


def test_effort_is_left_out_by_itself() -> None:
    body = shape(REQUEST, Capabilities(effort=False))
    assert "effort" not in body["output_config"]
    assert "format" in body["output_config"]


def test_constraints_that_structured_outputs_refuse_are_words_in_the_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"share": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["share"],
    }
    sent = shape(replace(REQUEST, schema=schema), Capabilities())["output_config"]["format"][
        "schema"
    ]
    assert sent["additionalProperties"] is False
    assert "minimum" not in sent["properties"]["share"]
    assert "100" in sent["properties"]["share"]["description"]


@pytest.mark.parametrize("answer", [PlanAnswer, WorkAnswer, SynthesisAnswer])
@pytest.mark.parametrize("capabilities", [Capabilities(), PLAIN])
async def test_every_answer_shape_is_taken_and_filled(
    answer: type[PlanAnswer | WorkAnswer | SynthesisAnswer], capabilities: Capabilities
) -> None:
    request = replace(REQUEST, schema=answer.model_json_schema(), capabilities=capabilities)
    async with Simulator() as simulator, claude(simulator.url) as model:
        answered = await model.ask(request)
    assert "(scripted)" in answer.model_validate_json(answered.text).model_dump_json()


async def test_the_key_goes_as_a_bearer_and_to_gateways_also_in_the_older_header() -> None:
    async with serving(PlainEndpoint(text="{}")) as endpoint, claude(endpoint.url) as model:
        await model.ask(replace(REQUEST, capabilities=PLAIN))
    (headers,) = endpoint.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-api-key"] == KEY


def test_only_the_adapter_imports_the_sdk() -> None:
    root = Path(__file__).parents[3]
    folders = ("activities", "holdfast", "simulator", "workflows")
    importers = [
        path.relative_to(root).as_posix()
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) anthropic\b", path.read_text(), re.MULTILINE)
    ]
    assert importers
    assert all(path.startswith("activities/claude") for path in importers)


# ---------------------------------------------------------------- the answer


async def test_an_answer_carries_its_text_model_stop_reason_usage_and_raw_message() -> None:
    async with Simulator() as simulator, claude(simulator.url) as model:
        answer = await model.ask(REQUEST)
    assert answer.model == "claude-sonnet-5-5"
    assert answer.stop_reason == "end_turn"
    assert answer.usage == simulator.log.usage
    assert answer.raw["content"] == [{"type": "text", "text": answer.text}]
    assert price(answer.model, answer.usage) == simulator.log.dollars


@pytest.mark.parametrize(
    ("flaw", "stop_reason"),
    [
        ("refusal", "refusal"),
        ("truncated", "max_tokens"),
        ("malformed", "end_turn"),
        ("empty", "end_turn"),
    ],
)
async def test_what_is_wrong_with_a_complete_answer_is_returned_with_its_usage(
    flaw: Any, stop_reason: str
) -> None:
    script = Script(rules=(Rule(answer=flaw),))
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        answer = await model.ask(REQUEST)
    assert answer.stop_reason == stop_reason
    assert answer.usage == simulator.log.usage
    assert answer.usage.input_tokens > 0
    assert bool(answer.detail) == (flaw == "refusal")


async def test_a_json_document_instead_of_a_stream_is_an_answer() -> None:
    script = Script(rules=(Rule(fault="json_not_stream"),))
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        answer = await model.ask(REQUEST)
    assert answer.usage == simulator.log.usage
    WorkAnswer.model_validate_json(answer.text)


async def test_a_slow_stream_with_pings_does_not_count_as_stalled() -> None:
    script = Script(latency=(0.6, 0.6), ping_seconds=0.05)
    async with Simulator(script) as simulator, claude(simulator.url, stall_seconds=0.3) as model:
        assert (await model.ask(REQUEST)).stop_reason == "end_turn"


async def test_connections_are_used_again() -> None:
    async with Simulator() as simulator, claude(simulator.url) as model:
        for _ in range(5):
            await model.ask(REQUEST)
        # The next call may come before the end of an answer was read.
        assert len(simulator.log.connections) <= 2


async def test_one_instance_serves_one_event_loop_after_another() -> None:
    async with Simulator() as simulator:
        url = simulator.url
    model = Claude(key="scripted", base_url=url, price=price)

    async def once() -> str:
        async with Simulator(port=int(url.rpartition(":")[2])):
            answer = await model.ask(REQUEST)
            await model.aclose()
            return answer.stop_reason

    assert await once() == "end_turn"
    assert await asyncio.to_thread(asyncio.run, once()) == "end_turn"


# ---------------------------------------------------------------- an endpoint of another make


async def test_an_endpoint_that_ignores_schemas_and_counts_nothing_is_understood() -> None:
    said = {
        "status": "complete",
        "result": "tea",
        "confidence": 70,
        "sources": [],
        "reason": "",
        "why": "",
    }
    text = f"Sure! Here it is:\n```json\n{json.dumps(said)}\n```\nAnything else?"
    async with serving(PlainEndpoint(text=text)) as endpoint, claude(endpoint.url) as model:
        capabilities = await find_capabilities("", endpoint.url, "auto", [REQUEST.model])
        answer = await model.ask(replace(REQUEST, capabilities=capabilities))
        counted = await model.count_tokens(replace(REQUEST, capabilities=capabilities))
    assert capabilities == PLAIN
    assert WorkAnswer.model_validate_json(answer.text).result == "tea"
    assert answer.model == REQUEST.model
    (body,) = endpoint.bodies
    assert set(body) == {"model", "max_tokens", "messages", "system", "stream"}
    assert counted >= answer.usage.input_tokens > 0


async def test_usage_that_an_endpoint_does_not_tell_is_estimated_not_zero() -> None:
    told = PlainEndpoint(text='{"answer": "twelve"}')
    async with serving(told) as endpoint, claude(endpoint.url) as model:
        answer = await model.ask(replace(REQUEST, capabilities=PLAIN))
    assert answer.usage.output_tokens == 10
    assert answer.usage.input_tokens * 2 >= len(REQUEST.system + REQUEST.prompt)


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b"data: not json\n\n", "text/event-stream"),
        (b"", "text/event-stream"),
        (b"<html>welcome</html>", "text/html"),
        (b"[1, 2]", "application/json"),
        (b'{"object": "chat.completion"}', "application/json"),
        (b'data: {"error": {"message": "out of memory"}}\n\n', "text/event-stream"),
        (b'data: {"type": "message_start"}\n\ndata: "\xff"\n\n', "text/event-stream"),
        (b'data: {"type": "message_stop"}\n\n', "text/event-stream"),
        (b'{"type": "message", "content": [], "stop_reason": null}', "application/json"),
    ],
)
async def test_what_is_no_message_is_no_answer(raw: bytes, content_type: str) -> None:
    endpoint = PlainEndpoint(raw=raw, content_type=content_type)
    async with serving(endpoint), claude(endpoint.url) as model:
        with pytest.raises(PossiblyBilled):
            await model.ask(replace(REQUEST, capabilities=PLAIN))
    assert len(endpoint.bodies) == 1


# ---------------------------------------------------------------- counting tokens


async def test_tokens_are_counted_by_the_endpoint_where_it_can() -> None:
    async with Simulator() as simulator, claude(simulator.url) as model:
        counted = await model.count_tokens(REQUEST)
        answer = await model.ask(REQUEST)
    used = answer.usage
    assert counted == used.input_tokens
    assert simulator.log.report()["requests"] == 1


async def test_without_token_counting_bytes_bound_the_tokens() -> None:
    blind = replace(REQUEST, capabilities=Capabilities(token_counting=False))
    async with Simulator() as simulator, claude(simulator.url) as model:
        counted = await model.count_tokens(REQUEST)
        bound = await model.count_tokens(blind)
    async with claude(simulator.url) as model:
        assert await model.count_tokens(REQUEST) == bound >= counted
