"""The adapter against two servers: the simulator, and a plain one of another make."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from activities.claude import Claude
from activities.claude_endpoint import find_capabilities
from activities.claude_stream import StreamError, Transcript
from activities.claude_wire import extract_json, most_tokens, shape
from activities.pricing import Prices
from activities.seam import ModelRequest
from orchestrator.answers import PlanAnswer, SynthesisAnswer, WorkAnswer
from orchestrator.contracts import Bill, Capabilities, Unreached, Usage
from orchestrator.errors import (
    AuthenticationRefused,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)
from orchestrator.settings import Settings
from plain_endpoint import PlainEndpoint, serving
from simulator import Rule, Script, Simulator

pytestmark = pytest.mark.anyio

KEY = "sk-ant-0123456789"
SPEND_TEXT = "You have reached your specified API usage limits."
PLAIN = Capabilities(schema_mode="prompt", effort=False, token_counting=False)
REQUEST = ModelRequest(
    model="claude-sonnet-5-5",
    system="You are an analyst. " + "You weigh evidence. " * 150,
    prompt="<instruction>\nCompare the three offers.\n</instruction>",
    schema=WorkAnswer.model_json_schema(),
    max_output=4_000,
    deadline_seconds=30.0,
)
price = Prices.of(Settings(_env_file=None)).price


@asynccontextmanager
async def claude(url: str, **options: Any) -> AsyncIterator[Claude]:
    model = Claude(key=KEY, base_url=url, price=price, **options)
    try:
        yield model
    finally:
        await model.aclose()


async def failure(
    rule: Rule, request: ModelRequest = REQUEST, **options: Any
) -> tuple[OrchestrationError, Simulator]:
    """The error of one call to a simulator with this rule, and the simulator, stopped."""
    script = Script(rules=(rule,), ping_seconds=0.05)
    async with Simulator(script) as simulator, claude(simulator.url, **options) as model:
        with pytest.raises(OrchestrationError) as raised:
            await model.ask(request)
    return raised.value, simulator


def bill_of(error: OrchestrationError) -> Bill:
    bill = error.details[0]
    assert isinstance(bill, Bill)
    return bill


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
    root = Path(__file__).parent.parent
    folders = ("activities", "cli", "orchestrator", "simulator", "workflows")
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
        "message": "",
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


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("rule", "error", "wait"),
    [
        (Rule(status=400), CallRefused, None),
        (Rule(status=400, message=SPEND_TEXT), SpendLimitReached, None),
        (Rule(status=400, error_code="request_body_timeout"), NotBilled, 2.0),
        (Rule(status=401), AuthenticationRefused, None),
        (Rule(status=402), SpendLimitReached, None),
        (Rule(status=404), CallRefused, None),
        (Rule(status=413), CallRefused, None),
        (Rule(status=429, headers={"retry-after": "7"}), NotBilled, 7.0),
        (Rule(status=429, headers={"retry-after-ms": "1500"}), NotBilled, 1.5),
        (Rule(status=429, error_code="enforced_spend_limit_reached"), SpendLimitReached, None),
        (Rule(status=500), NotBilled, None),
        (Rule(status=503, headers={"retry-after": "3"}), NotBilled, 3.0),
        (Rule(status=529), NotBilled, 15.0),
    ],
)  # fmt: skip
async def test_a_refusal_before_the_first_event_costs_nothing_and_is_sent_once(
    rule: Rule, error: type[OrchestrationError], wait: float | None
) -> None:
    raised, simulator = await failure(rule)
    assert type(raised) is error
    assert (raised.next_retry_delay.total_seconds() if raised.next_retry_delay else None) == wait
    assert raised.details == ()
    assert simulator.log.report()["requests"] == 1
    assert simulator.log.dollars == 0


@pytest.mark.parametrize(
    "rule",
    [
        Rule(status=408), Rule(status=409), Rule(status=504), Rule(status=524),
        Rule(fault="html_502"), Rule(fault="drop_before_headers"), Rule(fault="drop_mid_headers"),
        Rule(fault="hang"), Rule(fault="html_200"),
    ],
    ids=lambda rule: rule.fault or str(rule.status),
)  # fmt: skip
async def test_an_answer_lost_before_it_began_may_be_billed_and_its_usage_is_unknown(
    rule: Rule,
) -> None:
    raised, simulator = await failure(rule, stall_seconds=0.3)
    assert type(raised) is PossiblyBilled
    assert (bill_of(raised).calls, bill_of(raised).usage) == (1, Usage())
    assert simulator.log.report()["requests"] == 1


@pytest.mark.parametrize(
    "fault",
    [
        "drop_mid_stream",
        "end_mid_stream",
        "error_mid_stream",
        "stall_mid_stream",
        "bad_json",
        "slow_pings",
    ],
)
async def test_an_answer_lost_in_its_middle_says_what_was_seen_and_not_the_price(
    fault: Any,
) -> None:
    request = replace(REQUEST, deadline_seconds=1.0)
    raised, simulator = await failure(Rule(fault=fault), request, stall_seconds=0.3)
    assert type(raised) is PossiblyBilled
    bill = bill_of(raised)
    charged = simulator.log.usage
    assert bill.calls == 1
    assert bill.usage.input_tokens == charged.input_tokens > 0
    assert 0 < bill.usage.output_tokens < REQUEST.max_output
    assert (bill.dollars, bill.final) == (None, False)
    assert simulator.log.report()["requests"] == 1


async def test_an_overload_reported_inside_a_stream_is_named_in_the_error() -> None:
    raised, _ = await failure(Rule(fault="error_mid_stream"))
    assert "overloaded_error" in str(raised)


async def test_a_connection_that_cannot_be_made_was_not_billed() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with claude(url) as model:
        with pytest.raises(EndpointUnreachable) as raised:
            await model.ask(REQUEST)
    assert raised.value.unreached == Unreached(address=url, why="Connection refused")
    assert raised.value.non_retryable


async def test_waiting_for_a_free_connection_in_vain_was_not_billed() -> None:
    script = Script(rules=(Rule(fault="hang"),))
    options = {"connections": 1, "pool_seconds": 0.1}
    async with Simulator(script) as simulator, claude(simulator.url, **options) as model:
        first = asyncio.create_task(model.ask(REQUEST))
        await until(lambda: simulator.log.now == 1)
        with pytest.raises(NotBilled):
            await model.ask(REQUEST)
        first.cancel()
        with pytest.raises(PossiblyBilled):
            await first


async def test_an_address_that_is_none_is_refused_for_good() -> None:
    async with claude("ftp://127.0.0.1") as model:
        with pytest.raises(CallRefused):
            await model.ask(REQUEST)


async def test_an_error_tells_what_to_do_and_never_the_key() -> None:
    raised, _ = await failure(Rule(status=401, message=f"invalid key {KEY}"))
    assert "ANTHROPIC_API_KEY" in str(raised)
    assert "invalid key [redacted]" in str(raised)
    assert KEY not in str(raised)
    assert raised.__cause__ is None


async def test_the_wait_is_what_the_server_asks() -> None:
    raised, _ = await failure(Rule(status=429, headers={"retry-after": "8"}))
    assert isinstance(raised, NotBilled) and raised.throttled
    assert raised.next_retry_delay is not None
    assert raised.next_retry_delay.total_seconds() == 8.0


async def test_a_wait_of_days_is_cut_and_said() -> None:
    raised, _ = await failure(Rule(status=429, headers={"retry-after": "604800"}))
    assert raised.next_retry_delay is not None
    assert raised.next_retry_delay.total_seconds() == 300.0
    assert "(asked to wait 604800 s; tried again after 300 s)" in str(raised)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is awaited is in the server
        await asyncio.sleep(0.01)


async def test_a_cancelled_call_closes_its_connection_and_returns_the_usage_so_far() -> None:
    script = Script(rules=(Rule(fault="slow_pings"),), ping_seconds=0.02)
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        call = asyncio.create_task(model.ask(REQUEST))
        await until(lambda: simulator.log.now == 1)
        # The first events are on their way; nothing tells when this side has read them.
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(PossiblyBilled, match="cancellation") as raised:
            await call
        await until(lambda: simulator.log.now == 0)
    assert bill_of(raised.value).usage.input_tokens > 0


async def test_the_deadline_ends_a_stream_that_never_stalls() -> None:
    request = replace(REQUEST, deadline_seconds=0.4)
    raised, _ = await failure(Rule(fault="slow_pings"), request)
    assert "deadline of 0.4 s" in str(raised)


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


# ---------------------------------------------------------------- capabilities


async def test_the_official_host_understands_everything_and_is_not_probed() -> None:
    assert await find_capabilities("", "", "auto", ["claude-haiku-5-5"]) == Capabilities()


async def test_an_endpoint_is_asked_what_its_models_understand_without_paying() -> None:
    async with Simulator() as simulator:
        found = await find_capabilities("k", simulator.url, "auto", ["claude-haiku-5-5"])
        unknown = await find_capabilities("k", simulator.url, "auto", ["claude-haiku-5-5", "x"])
    assert found == Capabilities()
    assert unknown == PLAIN.model_copy(update={"token_counting": True})
    assert simulator.log.report()["requests"] == 0


async def test_an_endpoint_that_does_not_answer_understands_text() -> None:
    assert await find_capabilities("", "http://127.0.0.1:9", "auto", ["m"]) == PLAIN


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("full", Capabilities()),
        ("none", PLAIN),
        ("effort,counting", PLAIN.model_copy(update={"effort": True, "token_counting": True})),
        ("schemas", Capabilities(effort=False, token_counting=False)),
    ],
)
async def test_capabilities_can_be_configured(configured: str, expected: Capabilities) -> None:
    assert await find_capabilities("", "http://127.0.0.1:9", configured, []) == expected


async def test_a_misspelt_capability_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"\['schema'\].*schemas"):
        await find_capabilities("", "", "schema,effort", [])


# ---------------------------------------------------------------- finding JSON in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": {"b": "```"}}\n```', '{"a": {"b": "```"}}'),
        ('The set {x} gives {"a": 1}. Done {}.', '{"a": 1}'),
        ('<think>maybe {"draft": "long, long, long"}</think>{"a": 1}', '{"a": 1}'),
        ('{"a": "cut o', '{"a": "cut o'),
        ("no object at all", "no object at all"),
        ("{" * 200_000, "{" * 200_000),
        ('{"a":' * 100_000, '{"a":' * 100_000),
        ("", ""),
    ],
)
def test_the_object_in_a_text_is_found(text: str, found: str) -> None:
    assert extract_json(text) == found


# ---------------------------------------------------------------- transcripts


def events(*contents: dict[str, Any]) -> Transcript:
    transcript = Transcript()
    for content in contents:
        transcript.feed(None, json.dumps(content))
    return transcript


USED = {"input_tokens": 7, "output_tokens": 1}
START = {"type": "message_start", "message": {"model": "m", "usage": USED}}
STOP = {"type": "message_stop"}


def starts(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def adds(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ends(reason: str, **usage: int | None) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def test_a_message_without_its_end_is_not_complete() -> None:
    assert not events(START, ends("end_turn")).complete
    assert not events(START, STOP).complete
    assert events(START, ends("end_turn"), STOP).complete


def test_usage_is_cumulative_and_null_changes_nothing() -> None:
    transcript = events(START, ends("end_turn", input_tokens=None, output_tokens=40), STOP)
    assert transcript.usage(prompt_tokens=99, max_output=500) == Usage(
        input_tokens=7, output_tokens=40
    )


def test_output_cut_off_in_hidden_thinking_counts_as_all_that_was_allowed() -> None:
    cut = events(START, starts(0, {"type": "thinking", "thinking": "", "signature": ""}))
    assert cut.usage(99, 500) == Usage(input_tokens=7, output_tokens=500)


def test_thinking_is_kept_byte_exact_and_is_no_part_of_the_text() -> None:
    transcript = events(
        START,
        starts(0, {"type": "thinking", "thinking": "", "signature": ""}),
        adds(0, {"type": "signature_delta", "signature": "c2ln"}),
        starts(1, {"type": "text", "text": ""}),
        adds(1, {"type": "text_delta", "text": "tea"}),
        ends("end_turn", output_tokens=3),
        STOP,
    )
    assert transcript.text == "tea"
    assert transcript.raw["content"][0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}


def test_an_error_event_is_an_error_whatever_carries_it() -> None:
    for name, data in (
        ("error", '{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}'),
        (None, '{"error": {"type": "overloaded_error", "message": "busy"}}'),
    ):
        with pytest.raises(StreamError, match="busy") as raised:
            Transcript().feed(name, data)
        assert raised.value.type == "overloaded_error"


def test_a_bill_of_nothing_known_has_no_tokens() -> None:
    assert Transcript().usage(prompt_tokens=99, max_output=500) == Usage()
    assert price("claude-sonnet-5-5", Usage()) == Decimal(0)


@pytest.mark.parametrize(
    "text", ["plain words " * 50, "\U00010384\U000131be" * 300, "§±¶" * 400, "#!%?*" * 300]
)
def test_no_script_has_more_tokens_than_the_bound_of_its_bytes(text: str) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    # A tokenizer that knows no word of it makes a token of each byte.
    assert most_tokens(body) >= len(text.encode())
