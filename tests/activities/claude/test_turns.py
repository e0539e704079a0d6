"""A turn that calls tools, or pauses: what of it can be sent back, and what is never a call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from calling import KEY, PLAIN, REQUEST, claude
from holdfast.activities.asking.replies import dump_answer, load_answer
from holdfast.ports import ModelAnswer
from holdfast.storage.directory import DirectoryStore
from plain_endpoint import PlainEndpoint, serving

pytestmark = pytest.mark.anyio

THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}
ARGUMENTS = (
    '{"z": {"b": 1, "a": [true, null]}, "count": 123456789012345678901234567890, "half": 0.5}'
)


def starts(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def adds(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def call(index: int, arguments: str = "{}", **fields: Any) -> list[dict[str, Any]]:
    about = {"type": "tool_use", "id": f"toolu_{index}", "name": "search", "input": {}}
    middle = len(arguments) // 2
    return [
        starts(index, about | {"caller": {"type": "direct"}} | fields),
        adds(index, type="input_json_delta", partial_json=""),
        adds(index, type="input_json_delta", partial_json=arguments[:middle]),
        adds(index, type="input_json_delta", partial_json=arguments[middle:]),
    ]


def stream(*events: dict[str, Any], stop: str = "tool_use") -> bytes:
    """A message of these events. What is no ASCII is escaped, so that a half can be in it."""
    message = {"role": "assistant", "model": REQUEST.model, "usage": {"input_tokens": 9}}
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}
    every = ({"type": "message_start", "message": message}, *events, end, {"type": "message_stop"})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in every).encode()


async def answered(raw: bytes) -> ModelAnswer:
    async with serving(PlainEndpoint(raw=raw)) as endpoint, claude(endpoint.url) as model:
        return await model.ask(replace(REQUEST, capabilities=PLAIN))


async def sent_back(answer: ModelAnswer) -> Any:
    """What an endpoint receives of an answer's content in the next request, as the body has it."""
    messages = (
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": list(answer.content)},
        {"role": "user", "content": "on"},
    )
    async with serving(PlainEndpoint(text="{}")) as endpoint, claude(endpoint.url) as model:
        await model.ask(replace(REQUEST, capabilities=PLAIN, messages=messages))
    return endpoint.bodies[0]["messages"][1]["content"]


WHOLE_TURN = (
    starts(0, THOUGHT),
    adds(0, type="thinking_delta", thinking="Let me \u2026 see"),
    adds(0, type="signature_delta", signature="c2ln+/=="),
    starts(1, {"type": "redacted_thinking", "data": "b3BhcXVl"}),
    starts(2, {"type": "text", "text": "", "citations": None}),
    adds(2, type="text_delta", text="I "),
    adds(2, type="text_delta", text="look."),
    adds(2, type="citations_delta", citation={"type": "web_search_result_location", "url": "u"}),
    starts(3, {"type": "hologram", "beams": [1, {"deep": {"x": None}}], "text": "unlike any"}),
    *call(4, ARGUMENTS),
    *call(5, "{}", name="list_files", later="unknown field"),
)
BLOCKS = [
    {"type": "thinking", "thinking": "Let me \u2026 see", "signature": "c2ln+/=="},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {
        "type": "text",
        "text": "I look.",
        "citations": [{"type": "web_search_result_location", "url": "u"}],
    },
    {"type": "hologram", "beams": [1, {"deep": {"x": None}}], "text": "unlike any"},
    {
        "type": "tool_use",
        "id": "toolu_4",
        "name": "search",
        "input": json.loads(ARGUMENTS),
        "caller": {"type": "direct"},
    },
    {
        "type": "tool_use",
        "id": "toolu_5",
        "name": "list_files",
        "input": {},
        "caller": {"type": "direct"},
        "later": "unknown field",
    },
]


# ---------------------------------------------------------------- what survives


async def test_a_turn_goes_back_as_it_came_through_journal_and_store(tmp_path: Path) -> None:
    answer = await answered(stream(*WHOLE_TURN))
    assert not answer.flaw
    kept = load_answer(dump_answer(answer))
    assert kept == answer
    store = DirectoryStore(tmp_path)
    digest = await store.put(json.dumps(kept.content).encode())
    stored = json.loads(await store.get(digest))
    received = await sent_back(replace(kept, raw={"content": stored}))
    # Key order is part of what a cache, or a signature, may have been made of.
    assert json.dumps(received) == json.dumps(BLOCKS)
    assert [each["name"] for each in kept.calls] == ["search", "list_files"]


async def test_a_turn_that_came_as_one_document_is_the_same_as_one_that_came_in_parts() -> None:
    document = {"type": "message", "content": BLOCKS, "stop_reason": "tool_use", "usage": {}}
    endpoint = PlainEndpoint(raw=json.dumps(document).encode(), content_type="application/json")
    async with serving(endpoint), claude(endpoint.url) as model:
        answer = await model.ask(replace(REQUEST, capabilities=PLAIN))
    assert json.dumps(answer.content) == json.dumps(BLOCKS)


async def test_numbers_keep_their_value_and_from_then_on_their_spelling() -> None:
    answer = await answered(stream(*call(0, '{"a": 1e2, "b": 1.10, "c": -0, "d": 5E-324}')))
    (spelt,) = answer.calls
    assert json.dumps(spelt["input"]) == '{"a": 100.0, "b": 1.1, "c": 0, "d": 5e-324}'
    (received,) = await sent_back(load_answer(dump_answer(answer)))
    assert json.dumps(received) == json.dumps(spelt)


async def test_halves_of_a_character_in_two_parts_are_one_character() -> None:
    text = (
        starts(0, {"type": "text", "text": ""}),
        adds(0, type="text_delta", text="a\ud83d"),
        adds(0, type="text_delta", text="\ude00b"),
    )
    answer = await answered(stream(*text, *call(1, '{"a": "\\ud83d\\ude00"}')))
    assert answer.content[0]["text"] == "a\U0001f600b"
    assert answer.calls[0]["input"] == {"a": "\U0001f600"}


async def test_a_half_that_is_left_does_not_make_the_next_request_unreadable() -> None:
    text = (
        starts(0, {"type": "text", "text": ""}),
        adds(0, type="text_delta", text="a\ud83d"),
    )
    answer = await answered(stream(*text, *call(1, '{"a\\ude00": "\\ud83d"}')))
    assert not answer.flaw
    received = await sent_back(answer)
    assert received[0]["text"] == "a\ufffd"
    assert received[1]["input"] == {"a\ufffd": "\ufffd"}


async def test_text_of_nothing_does_not_go_back_because_it_would_be_refused() -> None:
    empty = [starts(0, {"type": "text", "text": ""}), adds(0, type="text_delta", text=" \n")]
    answer = await answered(stream(*empty, *call(1)))
    assert [each["type"] for each in answer.content] == ["tool_use"]
    assert len(answer.raw["content"]) == 2


async def test_a_pause_is_handed_on_with_what_the_server_did() -> None:
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"u": 1}]}
    events = (
        starts(0, asked),
        adds(0, type="input_json_delta", partial_json='{"query": "tea"}'),
        starts(1, found),
    )
    answer = await answered(stream(*events, stop="pause_turn"))
    assert (answer.stop_reason, answer.flaw, answer.calls) == ("pause_turn", "", ())
    assert await sent_back(answer) == [asked | {"input": {"query": "tea"}}, found]


# ---------------------------------------------------------------- what is never a call


@pytest.mark.parametrize("stop", ["max_tokens", "end_turn", "refusal", "pause_turn"])
async def test_a_turn_that_did_not_stop_for_tools_calls_none(stop: str) -> None:
    answer = await answered(stream(*call(0, '{"a": [1, 2, 3]}'), stop=stop))
    assert answer.stop_reason == stop
    assert answer.calls == ()


async def test_a_call_that_was_cut_is_none_and_its_arguments_stay_text() -> None:
    answer = await answered(stream(*call(0, '{"a": [1, 2, 3], "b": "un'), stop="max_tokens"))
    assert answer.calls == ()
    assert answer.content[0]["input"] == '{"a": [1, 2, 3], "b": "un'


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (call(0, '{"a": [1, 2'), "not a JSON object"),
        (call(0, "[1, 2]"), "not a JSON object"),
        (call(0, '"words"'), "not a JSON object"),
        (call(0, "9" * 5_000), "not a JSON object"),
        (call(0, '{"a": 1e999}'), "cannot be sent back"),
        (call(0, '{"a": NaN}'), "cannot be sent back"),
        (call(0, '{"a":' * 60 + "1" + "}" * 60), "too deep"),
        (call(0, '{"a":' * 900 + "1" + "}" * 900), "too deep"),
        (call(0, json.dumps({"key": KEY})), "repeats a secret"),
        (call(0, id=""), "no id"),
        (call(0, name=None), "no name"),
        ([*call(0), *call(1, id="toolu_0")], "one id"),
        ([starts(0, {"type": "text", "text": "Now I call."})], "called none"),
        ([starts(0, THOUGHT | {"thinking": "\ud83d"}), *call(1)], "cannot be sent back"),
        ([starts(0, THOUGHT), adds(0, type="dream_delta", dream="x"), *call(1)], "dream_delta"),
    ],
)
async def test_a_turn_with_an_odd_call_calls_nothing_and_says_why(
    events: list[dict[str, Any]], said: str
) -> None:
    answer = await answered(stream(*events))
    assert said in answer.flaw
    assert answer.calls == ()
    assert load_answer(dump_answer(answer)).calls == ()
    assert KEY not in dump_answer(answer)


async def test_a_text_with_a_half_character_is_as_wrong_as_before() -> None:
    half = starts(0, {"type": "text", "text": "\ud83d"})
    assert (await answered(stream(half, stop="end_turn"))).flaw == "the text holds half characters"


SPELT = '{"a": 1e2, "b": 1.0, "c": -0, "d": 1.10, "e": 0.12345678901234567890, "f": 12345678901}'


async def test_numbers_go_back_as_the_endpoints_own_sdk_would_send_them() -> None:
    """Neither keeps their spelling; an endpoint that minded would refuse its own clients."""
    ours = (await answered(stream(*call(0, SPELT)))).content[0]["input"]
    start = {"type": "message", "id": "m", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 7}
    events: tuple[dict[str, Any], ...] = (
        {"type": "message_start", "message": {**start, "usage": usage}},
        *call(0, SPELT),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    )
    sent = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    serve = httpx2.MockTransport(
        lambda _: httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=sent.encode()
        )
    )
    async with anthropic.AsyncAnthropic(
        api_key=KEY, http_client=httpx2.AsyncClient(transport=serve)
    ) as client:
        asking = client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}]
        )
        async with asking as arriving:
            (block,) = (await arriving.get_final_message()).content
    # Of the same values the same encoder, which is the SDK's, makes the same bytes.
    assert block.type == "tool_use" and repr(block.input) == repr(ours)
    assert repr(ours).startswith("{'a': 100.0, 'b': 1.0, 'c': 0, 'd': 1.1,")
