"""Scripted turns with tool calls: as strict as the API about what comes back, and as forgetful."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.simulator.counting import (
    HOUR_SECONDS,
    LIFE_SECONDS,
    Counted,
    PromptCache,
    prefix_tokens,
)
from holdfast.simulator.prefix import Block, blocks_of
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.simulator.turns import altered
from holdfast.simulator.wire import mistake

pytestmark = pytest.mark.anyio

MODEL = "claude-haiku-5-5"
HEADERS = {"Authorization": "Bearer scripted"}
MARK = {"cache_control": {"type": "ephemeral"}}
FORM = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["complete"]},
        "result": {"type": "string"},
    },
    "required": ["status", "result"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"words": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": "Finds things. " * 40, "input_schema": OPEN}
    for name in ("search", "list_files")
]
SEARCH = {"name": "search", "input": {"z": [1, {"deep": None}], "a": 1e2, "words": "tea \u2026"}}
LIST = {"name": "list_files", "input": {}}


@dataclass
class Loop:
    """A conversation as a client keeps it: what came is sent back."""

    session: aiohttp.ClientSession
    body: dict[str, Any]

    async def post(self) -> tuple[int, Any]:
        async with self.session.post("/v1/messages", json=self.body) as response:
            return response.status, await response.json()

    async def turn(self, result: str = "found") -> dict[str, Any]:
        """Ask, take the answer into the conversation, and run its calls."""
        status, message = await self.post()
        assert status == 200, message
        self.body["messages"].append({"role": "assistant", "content": message["content"]})
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        if calls:
            found = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": result}
                for call in calls
            ]
            self.body["messages"].append({"role": "user", "content": found})
        return dict(message)


@asynccontextmanager
async def looping(
    *rules: dict[str, Any], script: Script | None = None, **fields: Any
) -> AsyncIterator[tuple[Simulator, Loop]]:
    script = script or Script.model_validate({"rules": rules})
    body = {
        "model": MODEL,
        "max_tokens": 2_000,
        "system": "You search.",
        "tools": deepcopy(TOOLS),
        "messages": [{"role": "user", "content": "Find tea."}],
        "output_config": {"format": {"type": "json_schema", "schema": FORM}},
        **fields,
    }
    async with (
        Simulator(script) as simulator,
        aiohttp.ClientSession(simulator.url, headers=HEADERS) as session,
    ):
        yield simulator, Loop(session, body)


def turns(*calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rules for one turn after the other."""
    return [
        {"call": "take_turn", "turn": number, "tools": tools}
        for number, tools in enumerate(calls, 1)
    ]


# ---------------------------------------------------------------- what is played


async def test_a_script_plays_turns_one_after_the_other_and_then_answers() -> None:
    async with looping(*turns([SEARCH], [SEARCH, LIST])) as (simulator, loop):
        first, second, last = await loop.turn(), await loop.turn(), await loop.turn()
    kinds = [[block["type"] for block in message["content"]] for message in (first, second, last)]
    assert kinds == [["thinking", "tool_use"], ["thinking", "tool_use", "tool_use"], ["text"]]
    assert [each["stop_reason"] for each in (first, second, last)] == [
        "tool_use",
        "tool_use",
        "end_turn",
    ]
    assert first["content"][1]["input"] == SEARCH["input"]
    assert json.loads(last["content"][0]["text"])["status"] == "complete"
    assert {body.call for body in simulator.log.bodies.values()} == {"take_turn"}
    assert simulator.log.report()["calls"]["take_turn"] == simulator.log.usage.model_dump()


async def test_without_a_script_a_request_with_tools_gets_an_answer() -> None:
    async with looping() as (_, loop):
        message = await loop.turn()
    assert (message["stop_reason"], len(message["content"])) == ("end_turn", 1)


async def test_a_stream_carries_the_same_turn_as_a_document() -> None:
    rule = {**turns([SEARCH, LIST])[0], "result": "I look."}
    async with looping(rule) as (_, loop):
        _, document = await loop.post()
        loop.body["stream"] = True
        async with loop.session.post("/v1/messages", json=loop.body) as response:
            lines = (await response.text()).splitlines()
    blocks: dict[int, dict[str, Any]] = {}
    for event in (json.loads(line[6:]) for line in lines if line.startswith("data: ")):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"] | {"json": ""}
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            name = {"input_json_delta": "json"}.get(delta["type"], delta["type"][:-6])
            block[name] += delta["partial_json"] if name == "json" else delta[name]
    for block in blocks.values():
        arguments = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(arguments)
    assert list(blocks.values()) == document["content"]
    assert [each["type"] for each in document["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]


@pytest.mark.parametrize(("flaw", "stop"), [("truncated", "max_tokens"), ("malformed", "tool_use")])
async def test_a_turn_can_be_cut_in_the_middle_of_its_last_call(flaw: str, stop: str) -> None:
    async with (
        looping(turns([SEARCH])[0] | {"answer": flaw}, stream=True) as (_, loop),
        loop.session.post("/v1/messages", json=loop.body) as response,
    ):
        text = await response.text()
    assert f'"stop_reason": "{stop}"' in text
    pieces = [
        json.loads(line[6:])["delta"]["partial_json"]
        for line in text.splitlines()
        if "input_json_delta" in line
    ]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(pieces))


async def test_a_turn_can_fail_and_the_next_try_of_it_goes_on() -> None:
    fault = {"call": "take_turn", "turn": 2, "first": 1, "status": 529}
    async with looping(fault, *turns([SEARCH], [LIST])) as (simulator, loop):
        await loop.turn()
        assert (await loop.post())[0] == 529
        assert (await loop.turn())["content"][1]["name"] == "list_files"
    assert simulator.log.report()["statuses"] == {"200": 2, "529": 1}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_can_pause_and_goes_on_when_it_comes_back(stream: bool) -> None:
    rules = [{"call": "take_turn", "turn": 1, "pause": True}, *turns([], [SEARCH])[1:]]
    async with looping(*rules) as (_, loop):
        paused = await loop.turn()
        assert paused["stop_reason"] == "pause_turn"
        assert [block["type"] for block in paused["content"]] == [
            "thinking",
            "server_tool_use",
        ]
        plain, loop.body = loop.body, deepcopy(loop.body)
        loop.body["messages"].append({"role": "user", "content": "Go on."})
        status, error = await loop.post()
        assert status == 400
        assert "has no result yet" in error["error"]["message"]
        loop.body = plain
        loop.body["stream"] = stream
        async with loop.session.post("/v1/messages", json=loop.body) as response:
            text = await response.text()
        assert '"stop_reason": "tool_use"' in text
        assert "web_search_tool_result" in text


def test_a_scripted_call_has_a_name_that_could_come_back() -> None:
    with pytest.raises(ValidationError, match="name"):
        Script.model_validate({"rules": turns([{"name": "no spaces"}])})


# ---------------------------------------------------------------- what is refused


def drop_result(body: dict[str, Any]) -> None:
    body["messages"][2]["content"].pop()


def drop_results(body: dict[str, Any]) -> None:
    body["messages"].pop()
    body["messages"].append({"role": "user", "content": "Never mind."})


def text_first(body: dict[str, Any]) -> None:
    body["messages"][2]["content"].insert(0, {"type": "text", "text": "Here:"})


def strange_id(body: dict[str, Any]) -> None:
    stray = {**body["messages"][2]["content"][0], "tool_use_id": "toolu_other"}
    body["messages"][2]["content"].append(stray)


def second_result(body: dict[str, Any]) -> None:
    body["messages"][2]["content"].append(body["messages"][2]["content"][0])


def late_result(body: dict[str, Any]) -> None:
    body["messages"] += [{"role": "assistant", "content": "Well."}, body["messages"][2]]


def empty_error(body: dict[str, Any]) -> None:
    body["messages"][2]["content"][0] |= {"is_error": True, "content": ""}


def touch_thought(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][0]["thinking"] += " "


def touch_signature(body: dict[str, Any]) -> None:
    signature = body["messages"][1]["content"][0]["signature"]
    body["messages"][1]["content"][0]["signature"] = signature[:-1] + "?"


def drop_thought(body: dict[str, Any]) -> None:
    body["messages"][1]["content"].pop(0)


def touch_input(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][1]["input"]["words"] = "coffee"


def sort_fields(body: dict[str, Any]) -> None:
    block = body["messages"][1]["content"][1]
    block["input"] = dict(sorted(block["input"].items()))


def change_tools(body: dict[str, Any]) -> None:
    body["tools"].pop()


def change_system(body: dict[str, Any]) -> None:
    body["system"] = "You search well."


def change_question(body: dict[str, Any]) -> None:
    body["messages"][0]["content"] = "Find coffee."


def odd_name(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][1]["name"] = "mcp.server.search"


def odd_tool(body: dict[str, Any]) -> None:
    body["tools"][0]["name"] = "x" * 65


def two_tools(body: dict[str, Any]) -> None:
    body["tools"][0]["name"] = body["tools"][1]["name"]


def no_schema(body: dict[str, Any]) -> None:
    del body["tools"][0]["input_schema"]


def text_input(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][1]["input"] = '{"cut": '


def strict_and_open(body: dict[str, Any]) -> None:
    body["tools"][0]["strict"] = True


def five_marks(body: dict[str, Any]) -> None:
    body["messages"][0]["content"] = [{"type": "text", "text": "x", **MARK}] * 5


def marked_thought(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][0] |= MARK


def half_character(body: dict[str, Any]) -> None:
    body["messages"][2]["content"][0]["content"] = "\ud83d"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop_result, "`tool_use` ids were found without `tool_result` blocks"),
        (drop_results, "`tool_use` ids were found without `tool_result` blocks"),
        (text_first, "`tool_use` ids were found without `tool_result` blocks immediately after"),
        (strange_id, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_other"),
        (second_result, "each tool_use must have a single result"),
        (late_result, "messages.4.content.0: unexpected `tool_use_id`"),
        (empty_error, "content cannot be empty if `is_error` is true"),
        (touch_thought, "cannot be modified"),
        (touch_signature, "cannot be modified"),
        (drop_thought, "cannot be modified"),
        (touch_input, "cannot be modified"),
        (sort_fields, "cannot be modified"),
        (change_tools, "`tools`, `system` or a message before this turn"),
        (change_system, "`tools`, `system` or a message before this turn"),
        (change_question, "`tools`, `system` or a message before this turn"),
        (odd_name, "tool_use.name: String should match pattern"),
        (odd_tool, "tools.0.custom.name: String should match pattern"),
        (two_tools, "Tool names must be unique"),
        (no_schema, "tools.0.custom.input_schema: Field required"),
        (text_input, "tool_use.input: Input should be an object"),
        (strict_and_open, "'additionalProperties' must be explicitly set to false"),
        (five_marks, "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (marked_thought, "thinking.cache_control"),
        (half_character, "no low surrogate in string"),
    ],
)
async def test_what_the_api_refuses_of_a_loop_is_refused(
    change: Callable[[dict[str, Any]], None], said: str
) -> None:
    async with looping(*turns([SEARCH, LIST])) as (simulator, loop):
        await loop.turn()
        good, loop.body = loop.body, deepcopy(loop.body)
        change(loop.body)
        status, error = await loop.post()
        assert (status, error["error"]["type"]) == (400, "invalid_request_error")
        assert said in error["error"]["message"]
        loop.body = good
        assert (await loop.post())[0] == 200
    assert simulator.log.report()["admitted"] == 2


async def test_a_turn_without_a_thought_may_not_be_altered_either() -> None:
    async with looping(turns([SEARCH])[0] | {"thinking": False}) as (_, loop):
        message = await loop.turn()
        assert [block["type"] for block in message["content"]] == ["tool_use"]
        touched = deepcopy(loop.body)
        touched["messages"][1]["content"][0]["input"] = {}
        assert (await loop.post())[0] == 200
        loop.body = touched
        assert (await loop.post())[0] == 400


async def test_a_server_that_was_started_again_knows_its_turns() -> None:
    async with looping(*turns([SEARCH])) as (_, loop):
        await loop.turn()
        body = loop.body
    async with looping(**body) as (_, loop):
        assert (await loop.post())[0] == 200
        loop.body["messages"][1]["content"][0]["thinking"] = ""
        assert (await loop.post())[0] == 400


async def test_a_turn_that_a_server_paused_may_be_the_last_message() -> None:
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    async with looping() as (_, loop):
        loop.body["messages"].append({"role": "assistant", "content": [asked]})
        assert (await loop.post())[0] == 200


async def test_marks_are_no_part_of_what_a_turn_is_bound_to() -> None:
    async with looping(*turns([SEARCH])) as (_, loop):
        await loop.turn()
        loop.body["system"] = [{"type": "text", "text": loop.body["system"], **MARK}]
        loop.body["messages"][0]["content"] = [{"type": "text", "text": "Find tea.", **MARK}]
        loop.body["tools"][-1] |= MARK
        assert (await loop.post())[0] == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"])
BLOCK = st.fixed_dictionaries(
    {"type": KINDS},
    optional={
        name: JSON for name in ("id", "name", "input", "tool_use_id", "content", "cache_control")
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(BLOCK | JSON, max_size=3)}
)
TOOL = st.dictionaries(
    st.sampled_from(["name", "type", "input_schema", "strict"]), JSON | st.just("a"), max_size=4
)


@given(st.lists(MESSAGE, max_size=4), JSON | st.lists(TOOL | JSON, max_size=3))
def test_no_conversation_breaks_the_validation(messages: list[Any], tools: Any) -> None:
    body = {"model": MODEL, "max_tokens": 9, "messages": messages, "tools": tools}
    status, said = mistake(body, (MODEL,))
    assert (status == 0) == (said == "")
    if not status:
        blocks = blocks_of(body)
        assert prefix_tokens(body, {}, blocks)
        assert altered(body, blocks) == ""


# ---------------------------------------------------------------- the cache


def marked(body: dict[str, Any]) -> dict[str, Any]:
    """A body with a mark on the system prompt and one on its newest message."""
    body = deepcopy(body)
    body["system"] = [{"type": "text", "text": body["system"], **MARK}]
    newest = body["messages"][-1]
    if isinstance(newest["content"], str):
        newest["content"] = [{"type": "text", "text": newest["content"]}]
    newest["content"][-1] |= MARK
    return body


async def usages(loop: Loop, count: int, result: str) -> list[dict[str, int]]:
    used = []
    for _ in range(count):
        plain = loop.body
        loop.body = marked(plain)
        _, message = await loop.post()
        used.append(message["usage"])
        loop.body = plain
        await loop.turn(result)
    return used


async def test_each_turn_reads_what_the_one_before_it_wrote() -> None:
    async with looping(*turns([SEARCH], [SEARCH], [SEARCH]), system="Search. " * 400) as (_, loop):
        first, second, third, last = await usages(loop, 4, "found " * 1_000)
    total = [
        each["input_tokens"] + each["cache_read_input_tokens"] + each["cache_creation_input_tokens"]
        for each in (first, second, third, last)
    ]
    assert first["cache_read_input_tokens"] == 0
    # Each mark is on the very last block, so all is written or read.
    assert [each["input_tokens"] for each in (first, second, third, last)] == [0] * 4
    reads = [each["cache_read_input_tokens"] for each in (second, third, last)]
    assert reads == total[:-1]


async def test_more_blocks_than_a_mark_looks_back_over_are_written_again() -> None:
    many = [SEARCH] * 25
    async with looping(*turns(many, many), system="Search. " * 400) as (_, loop):
        first, second, _ = await usages(loop, 3, "found")
    # 26 blocks of the assistant and 25 results: only the system prompt is found.
    assert 0 < second["cache_read_input_tokens"] < first["cache_creation_input_tokens"]


def row(count: int, *marks: int) -> list[Block]:
    return [Block(0, 4_000, f"digest {place}", place in marks) for place in range(count)]


def count(
    cache: PromptCache, blocks: list[Block], now: float, begins: float | None = None
) -> tuple[int, int]:
    tokens = [1_000 * (place + 1) for place in range(len(blocks))]
    return cache.count("model", blocks, tokens, now, now if begins is None else begins)[:2]


def test_an_entry_is_found_at_a_mark_and_at_nineteen_places_before_it() -> None:
    cache = PromptCache()
    assert count(cache, row(10, 9), 0) == (10_000, 0)
    assert count(cache, row(29, 28), 1) == (19_000, 10_000)
    assert count(PromptCache(), row(30, 29), 1) == (30_000, 0)
    cache = PromptCache()
    count(cache, row(10, 9), 0)
    assert count(cache, row(30, 29), 1) == (30_000, 0)


def test_only_what_was_marked_is_kept() -> None:
    cache = PromptCache()
    count(cache, row(10, 9), 0)
    assert count(cache, row(5, 4), 1) == (5_000, 0)
    assert count(cache, row(12), 2) == (0, 0)


def test_an_entry_lives_five_minutes_after_its_last_use() -> None:
    cache = PromptCache()
    count(cache, row(10, 9), 0)
    assert count(cache, row(10, 9), LIFE_SECONDS - 1) == (0, 10_000)
    assert count(cache, row(10, 9), 2 * LIFE_SECONDS - 2) == (0, 10_000)
    assert count(cache, row(10, 9), 4 * LIFE_SECONDS) == (10_000, 0)


def test_an_entry_can_be_read_when_the_answer_that_wrote_it_has_begun() -> None:
    cache = PromptCache()
    assert count(cache, row(10, 9), 0, begins=5) == (10_000, 0)
    assert count(cache, row(10, 9), 1, begins=6) == (10_000, 0)
    assert count(cache, row(10, 9), 5) == (0, 10_000)


def test_what_is_too_short_is_not_kept() -> None:
    cache = PromptCache()
    for _ in range(2):
        assert cache.count("model", row(1, 0), [511], 0, 0) == Counted()


def test_a_mark_of_an_hour_keeps_what_is_before_it_for_that_long() -> None:
    blocks = [Block(0, 4_000, "shared", True, hour=True), Block(0, 4_000, "own", True)]
    cache = PromptCache()
    assert cache.count("model", blocks, [1_000, 3_000], 0, 0) == Counted(3_000, 0, hour=1_000)
    later = LIFE_SECONDS + 1
    assert cache.count("model", blocks, [1_000, 3_000], later, later) == Counted(2_000, 1_000)
    missed = cache.count("model", blocks, [1_000, 3_000], later, later, found=False)
    assert missed == Counted(3_000, 0, hour=1_000)
    later += HOUR_SECONDS + 1
    assert cache.count("model", blocks, [1_000, 3_000], later, later) == Counted(3_000, 0, 1_000)


async def test_a_script_can_let_agents_look_at_their_files_before_they_answer() -> None:
    async with looping(script=Script(looks=True)) as (_, loop):
        first, last = await loop.turn(), await loop.turn()
    assert [each.get("name") for each in first["content"]] == [None, "list_files"]
    assert (first["stop_reason"], last["stop_reason"]) == ("tool_use", "end_turn")
    told = (
        "- papers (a folder, 9 bytes): list_files shows its files\n"
        "- terms (a document, 5 bytes): read reads it"
    )
    tools = [{**TOOLS[0], "name": name} for name in ("list_files", "search_files", "read")]
    given = {"tools": tools, "messages": [{"role": "user", "content": f"By name:\n{told}\n\nGo."}]}
    async with looping(script=Script(looks=True), **given) as (_, loop):
        calls = [each for each in (await loop.turn())["content"] if each["type"] == "tool_use"]
    assert [(each["name"], each["input"]) for each in calls] == [
        ("list_files", {}),
        ("search_files", {"pattern": ".", "path": "papers", "head_limit": 1}),
        ("read", {"file_path": "terms"}),
    ]
    async with looping(script=Script(looks=True), tools=TOOLS[:1]) as (_, loop):
        assert (await loop.turn())["stop_reason"] == "end_turn", "it has no list_files"


async def test_what_cannot_search_a_folder_reads_its_first_file_after_the_list() -> None:
    tools = [{**TOOLS[0], "name": name} for name in ("list_files", "read_document")]
    told = "- papers (a folder, 9 bytes): list_files shows its files\n\nGo."
    given = {"tools": tools, "messages": [{"role": "user", "content": told}]}
    async with looping(script=Script(looks=True), **given) as (_, loop):
        said = [await loop.turn("papers/a.md  3\npapers/b.md  6") for _ in range(3)]
    blocks = [each for message in said for each in message["content"]]
    calls = [each for each in blocks if each["type"] == "tool_use"]
    assert [(each["name"], each["input"]) for each in calls] == [
        ("list_files", {}),
        ("read_document", {"file_path": "papers/a.md"}),
    ]
    assert said[-1]["stop_reason"] == "end_turn"
