"""What the Messages API refuses of a conversation with tools, in its words as far as known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from typing import Any

Json = dict[str, Any]
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TOOL_FIELDS = frozenset(
    {
        "type", "name", "description", "input_schema", "strict", "cache_control", "input_examples",
        "defer_loading", "allowed_callers", "eager_input_streaming",
    }
)  # fmt: skip
MOST_MARKS = 4
MOST_STRICT = 20
SERVERS_OWN = "server_tool_use"


def wrong_tools(tools: Any) -> str:
    """What is wrong with the tools of a request; empty: nothing."""
    if not isinstance(tools, list):
        return "tools: Input should be a valid list"
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"tools.{index}: Input should be an object"
        if wrong := _wrong_tool(tool):
            return f"tools.{index}.custom.{wrong}"
    names = [str(tool.get("name")) for tool in tools]
    if len(set(names)) < len(names):
        return "tools: Tool names must be unique."
    if sum(tool.get("strict") is True for tool in tools) > MOST_STRICT:
        return f"tools: at most {MOST_STRICT} tools may be strict. Schema is too complex"
    return ""


def _wrong_tool(tool: Json) -> str:
    if not (isinstance(tool.get("name"), str) and NAME.fullmatch(tool["name"])):
        return "name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
    if tool.get("type", "custom") != "custom":
        return ""
    for name in tool:
        if name not in TOOL_FIELDS:
            return f"{name}: Extra inputs are not permitted"
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        return "input_schema: Field required"
    if schema.get("type") != "object":
        return "input_schema.type: Input should be 'object'"
    return ""


def wrong_turns(messages: list[Json]) -> str:
    """What is wrong with calls, results and thoughts of messages; empty: nothing."""
    ids = Counter[str]()
    for index, message in enumerate(messages):
        for number, block in enumerate(_blocks(message)):
            if wrong := _wrong_block(block):
                return f"messages.{index}.content.{number}.{wrong}"
            ids[str(block.get("id"))] += block.get("type") == "tool_use"
            if block.get("type") == "tool_use" and ids[str(block.get("id"))] > 1:
                return f"messages.{index}.content.{number}: `tool_use` ids must be unique"
        wrong = _unexpected(messages, index) or _unanswered(messages, index)
        if wrong or (wrong := _interrupted(messages, index)):
            return wrong
    return ""


def wrong_marks(body: Json) -> str:
    """Too many marks of the cache, or one where none may be; empty: neither."""
    marks = [block["cache_control"] for block in _every_block(body) if "cache_control" in block]
    count = len(marks) + ("cache_control" in body)
    if count > MOST_MARKS:
        return (
            f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {count}."
        )
    lives = [mark.get("ttl", "5m") if isinstance(mark, dict) else "5m" for mark in marks]
    if any(life not in ("5m", "1h") for life in lives):
        return "cache_control.ttl: Input should be '5m' or '1h'"
    if "1h" in dropwhile(lambda life: life == "1h", lives):
        return (
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
            "cache_control block."
        )
    return ""


def pending(message: Json) -> bool:
    """True if a message is a turn that paused while a server's own tool was at work: it goes on
    when it comes back as it is.
    """
    found = {str(block.get("tool_use_id")) for block in _blocks(message)}
    calls = _blocks(message, SERVERS_OWN) if message.get("role") == "assistant" else []
    return any(str(call.get("id")) not in found for call in calls)


def _wrong_block(block: Json) -> str:
    match block.get("type"):
        case "tool_use":
            if not (isinstance(block.get("name"), str) and NAME.fullmatch(block["name"])):
                return "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
            if not isinstance(block.get("input"), dict):
                return "tool_use.input: Input should be an object"
            if not (isinstance(block.get("id"), str) and re.fullmatch(r"[\w-]+", block["id"])):
                return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        case "tool_result":
            if not isinstance(block.get("content", ""), str | list):
                return "tool_result.content: Input should be a valid string or list"
            if block.get("is_error") is True and not block.get("content"):
                return "tool_result: content cannot be empty if `is_error` is true"
        case "thinking" | "redacted_thinking" as kind if "cache_control" in block:
            return f"{kind}.cache_control: Extra inputs are not permitted"
    return ""


def _unanswered(messages: list[Json], index: int) -> str:
    """Calls of a message need their results at the beginning of the next one."""
    asked = {str(each.get("id")) for each in _blocks(messages[index], "tool_use")}
    following = messages[index + 1] if index + 1 < len(messages) else {}
    first = takewhile(lambda block: block.get("type") == "tool_result", _blocks(following))
    missing = sorted(asked - {str(each.get("tool_use_id")) for each in first})
    if not missing:
        return ""
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


def _interrupted(messages: list[Json], index: int) -> str:
    """A server's own tool that is at work allows results in the next message, and no words."""
    following = messages[index + 1] if index + 1 < len(messages) else {}
    if following.get("role") != "user" or not pending(messages[index]):
        return ""
    if all(block.get("type") == "tool_result" for block in _blocks(following)) and not isinstance(
        following.get("content"), str
    ):
        return ""
    return (
        f"messages.{index + 1}: a `server_tool_use` of the message before has no result yet: send "
        "that message back as the last one, or with `tool_result` blocks alone."
    )


def _unexpected(messages: list[Json], index: int) -> str:
    """Results need their calls in the message before, and a call has one."""
    before = messages[index - 1] if index else {}
    asked = Counter(str(each.get("id")) for each in _blocks(before, "tool_use"))
    for number, block in enumerate(_blocks(messages[index])):
        if block.get("type") != "tool_result":
            continue
        id, place = str(block.get("tool_use_id")), f"messages.{index}.content.{number}"
        if id not in asked:
            return (
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        asked[id] -= 1
        if asked[id] < 0:
            return (
                f"{place}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {id}"
            )
    return ""


def _every_block(body: Json) -> Iterator[Json]:
    for content in (body.get("tools"), body.get("system")):
        yield from _blocks({"content": content})
    for message in body["messages"]:
        yield from _blocks(message)


def _blocks(message: Json, kind: str = "") -> list[Json]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [
        block for block in blocks if isinstance(block, dict) and kind in ("", block.get("type"))
    ]
