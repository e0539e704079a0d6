"""What a request with a conversation and tools looks like, and what of it an endpoint keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter

from calling import PLAIN, REQUEST
from holdfast.activities.asking.trip import byte_bound
from holdfast.activities.claude.endpoint import FULL
from holdfast.activities.claude.wire import countable, most_tokens, shape
from holdfast.contracts import Capabilities

pytestmark = pytest.mark.anyio

MARK = {"type": "ephemeral"}


def search(words: Annotated[str, Field(max_length=200)], most: int = 10) -> str:
    return f"{most} {words}"


def free(fields: dict[str, int]) -> str:
    return str(fields)


def pair(both: tuple[int, str]) -> str:
    return str(both)


def nothing() -> str:
    return ""


def tool(function: Any, name: str = "", **fields: Any) -> dict[str, Any]:
    schema = TypeAdapter(function).json_schema()
    about = {"name": name or function.__name__, "description": "Finds.", "input_schema": schema}
    return about | fields


TOOLS = (tool(search, strict=True), tool(nothing))


def calls(turn: int, count: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """An assistant's turn with this many calls, and the message with their results."""
    ids = [f"toolu_{turn}_{number}" for number in range(count)]
    asked = [{"type": "tool_use", "id": id, "name": "search", "input": {}} for id in ids]
    found = [{"type": "tool_result", "tool_use_id": id, "content": "found"} for id in ids]
    thought = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    return (
        {"role": "assistant", "content": [thought, *asked]},
        {"role": "user", "content": found},
    )


FIRST = {"role": "user", "content": "Compare the three offers."}
TALK = (FIRST, *calls(1), *calls(2))


def marks(body: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Message and block of each breakpoint in the messages."""
    return [
        (place, number)
        for place, message in enumerate(body["messages"])
        if not isinstance(message["content"], str)
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


# ---------------------------------------------------------------- conversations and tools


def test_a_conversation_stands_in_the_place_of_the_prompt() -> None:
    body = shape(replace(REQUEST, messages=TALK, tools=TOOLS), FULL)
    assert body["messages"] == list(TALK)
    assert [each["name"] for each in body["tools"]] == ["search", "nothing"]
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert "tool_choice" not in body


def test_an_endpoint_without_schemas_gets_the_shape_of_the_end_in_words() -> None:
    body = shape(replace(REQUEST, messages=TALK, tools=TOOLS), PLAIN)
    assert "output_config" not in body
    assert "call them. When you need none any more: answer with one JSON object" in body["system"]
    assert all("strict" not in each for each in body["tools"])
    assert body["tools"][0]["input_schema"] == TOOLS[0]["input_schema"]


def test_tools_and_their_strictness_are_the_same_in_every_turn_of_a_loop() -> None:
    request = replace(REQUEST, tools=TOOLS, cached=True)
    turns = [shape(replace(request, messages=TALK[:count]), FULL) for count in (1, 3, 5)]
    assert turns[0]["tools"] == turns[1]["tools"] == turns[2]["tools"]
    assert turns[0]["system"] == turns[1]["system"] == turns[2]["system"]


def test_a_strict_tool_has_a_schema_that_strict_mode_takes() -> None:
    first, second = shape(replace(REQUEST, tools=TOOLS), FULL)["tools"]
    words = first["input_schema"]["properties"]["words"]
    assert first["strict"] is True
    assert "maxLength" not in words
    assert "200" in words["description"]
    assert second == TOOLS[1]


@pytest.mark.parametrize("function", [free, pair])
def test_a_schema_that_strict_mode_would_change_is_sent_as_it_is(function: Any) -> None:
    asked = tool(function, strict=True)
    (sent,) = shape(replace(REQUEST, tools=(asked,)), FULL)["tools"]
    assert sent == {name: value for name, value in asked.items() if name != "strict"}


def test_a_schema_that_holds_itself_or_is_none_is_not_strict() -> None:
    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"inner": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            }
        },
    }
    odd: tuple[dict[str, Any], ...] = (tree, {"type": "object", "properties": 3}, {"items": {}})
    for schema in odd:
        asked = {"name": "odd", "input_schema": schema, "strict": True}
        assert shape(replace(REQUEST, tools=(asked,)), FULL)["tools"] == [
            {"name": "odd", "input_schema": schema}
        ]


def test_no_more_tools_are_strict_than_an_endpoint_compiles() -> None:
    many = tuple(tool(nothing, f"tool_{number}", strict=True) for number in range(30))
    sent = shape(replace(REQUEST, tools=many), FULL)["tools"]
    assert [each.get("strict", False) for each in sent] == [True] * 20 + [False] * 10
    # `search` has one optional parameter.
    options = tuple(tool(search, f"tool_{number}", strict=True) for number in range(20))
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20)}}
    sent = shape(replace(REQUEST, schema=schema, tools=options), FULL)["tools"]
    assert sum(each.get("strict", False) for each in sent) == 4


def test_a_servers_own_tool_stays_as_it_is() -> None:
    own = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
    assert shape(replace(REQUEST, tools=(own,)), FULL)["tools"] == [own]


# ---------------------------------------------------------------- what is kept in the cache


def test_a_call_that_is_asked_once_marks_its_role_and_never_its_prompt() -> None:
    body = shape(replace(REQUEST, cached=True), FULL)
    assert body["system"] == [{"type": "text", "text": REQUEST.system, "cache_control": MARK}]
    assert body["messages"] == [{"role": "user", "content": REQUEST.prompt}]


def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    body = shape(replace(REQUEST, system="", tools=TOOLS, cached=True), FULL)
    assert ["cache_control" in each for each in body["tools"]] == [False, True]


def test_the_newest_message_and_the_newest_of_a_turn_ago_are_marked() -> None:
    request = replace(REQUEST, tools=TOOLS, cached=True)
    assert marks(shape(replace(request, messages=TALK[:1]), FULL)) == [(0, 0)]
    assert marks(shape(replace(request, messages=TALK[:3]), FULL)) == [(0, 0), (2, 0)]
    assert marks(shape(replace(request, messages=TALK), FULL)) == [(2, 0), (4, 0)]


@pytest.mark.parametrize("count", [1, 12, 60])
def test_what_one_turn_wrote_the_next_finds_without_looking_back(count: int) -> None:
    request = replace(REQUEST, tools=TOOLS, cached=True)
    talk: tuple[Mapping[str, Any], ...] = (FIRST,)
    before = marks(shape(replace(request, messages=talk), FULL))
    for turn in range(1, 6):
        talk = (*talk, *calls(turn, count))
        body = shape(replace(request, messages=talk), FULL)
        # The last mark of the turn before is one of this turn's.
        assert before[-1] in marks(body)
        assert json.dumps(body).count("cache_control") <= 4
        before = marks(body)


def test_a_turn_that_pauses_goes_back_as_it_came() -> None:
    paused = {"role": "assistant", "content": [{"type": "text", "text": "Looking."}]}
    request = replace(REQUEST, messages=(*TALK, paused), tools=TOOLS, cached=True)
    body = shape(request, FULL)
    assert body["messages"][-1] == paused
    assert marks(body) == [(4, 0)]


def test_marks_change_neither_the_request_nor_a_turn_of_the_assistant() -> None:
    request = replace(REQUEST, messages=TALK, tools=TOOLS, cached=True)
    before = json.dumps([request.messages, request.tools])
    body = shape(request, FULL)
    assert json.dumps([request.messages, request.tools]) == before
    for sent, given in zip(body["messages"], TALK, strict=True):
        if given["role"] == "assistant":
            assert sent == given


@pytest.mark.parametrize("capabilities", [PLAIN, Capabilities()])
def test_an_endpoint_that_does_not_say_that_it_caches_gets_no_marks(
    capabilities: Capabilities,
) -> None:
    request = replace(REQUEST, messages=TALK, tools=TOOLS, cached=True)
    assert "cache_control" not in json.dumps(shape(request, capabilities))


# ---------------------------------------------------------------- bounds


async def test_messages_and_tools_are_within_both_bounds() -> None:
    large = ({"role": "user", "content": "\U00010384" * 5_000},)
    asked = replace(REQUEST, prompt="", messages=large, tools=(tool(search, "x" * 64),))
    bare = replace(asked, messages=(), tools=())
    for capabilities in (FULL, PLAIN):
        body = countable(shape(asked, capabilities))
        assert most_tokens(body) - most_tokens(countable(shape(bare, capabilities))) > 20_000
    assert await byte_bound(asked) - await byte_bound(bare) > 20_000 + 600
