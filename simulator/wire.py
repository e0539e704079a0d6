"""The Messages API's wire format: what a request must be, and messages as JSON and as events."""

from __future__ import annotations

import json
from typing import Any

from holdfast.simulator import conversation

KNOWN_FIELDS = frozenset(
    {
        "model", "max_tokens", "messages", "system", "stream", "tools", "tool_choice", "thinking",
        "output_config", "metadata", "stop_sequences", "service_tier", "cache_control",
        "container", "diagnostics", "inference_geo", "speed",
    }
)  # fmt: skip
COUNT_FIELDS = KNOWN_FIELDS - {"max_tokens", "stream", "metadata", "stop_sequences", "service_tier"}
UNSUPPORTED = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
        "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties",
        "patternProperties",
    }
)  # fmt: skip
"""What structured outputs refuse in a schema."""
BYTES_PER_TOKEN = 4
MIN_CACHED_TOKENS = 512
MOST_OUTPUT = 128_000
EFFORTS = ("low", "medium", "high", "xhigh", "max")
DELTAS = 8
"""A block's text leaves in at most this many deltas, where it is not paced."""

Json = dict[str, Any]


def mistake(body: Json, models: tuple[str, ...], *, counting: bool = False) -> tuple[int, str]:
    """Status and message of the first thing that is wrong with a request; (0, "") if nothing is."""
    if not counting and "max_tokens" not in body:
        return 400, "max_tokens: Field required"
    for name in ("model", "messages"):
        if name not in body:
            return 400, f"{name}: Field required"
    for name in body:
        if name not in (COUNT_FIELDS if counting else KNOWN_FIELDS):
            return 400, f"{name}: Extra inputs are not permitted"
    if body["model"] not in models:
        return 404, f"model: {body['model']}"
    wrong = (
        _wrong_limits(body)
        or _wrong_messages(body["messages"])
        or _wrong_system(body.get("system"))
        or _wrong_output(body.get("output_config"))
        or _wrong_tools(body)
        or conversation.wrong_turns(body["messages"])
        or conversation.wrong_marks(body)
    )
    return (400, wrong) if wrong else (0, "")


def _wrong_limits(body: Json) -> str:
    tokens = body.get("max_tokens", 1)
    if not isinstance(tokens, int) or tokens < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    if tokens > MOST_OUTPUT:
        return f"max_tokens: {tokens} > {MOST_OUTPUT}, which is the maximum allowed"
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        return "tool_choice: forced tool use is not supported by this model"
    return ""


def _wrong_messages(messages: Any) -> str:
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            return f"messages.{index}.role: Input should be 'user' or 'assistant'"
        content = message.get("content")
        if isinstance(content, list) and len(_blocks(content)) < len(content):
            return f"messages.{index}.content: Input should be a list of objects"
        if _has_empty_text(content):
            return f"messages.{index}: text content blocks must be non-empty"
    if messages[-1]["role"] != "user" and not conversation.pending(messages[-1]):
        return (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    return ""


def _blocks(content: Any, kind: str = "") -> list[Json]:
    blocks = content if isinstance(content, list) else []
    return [
        block for block in blocks if isinstance(block, dict) and kind in ("", block.get("type"))
    ]


def _has_empty_text(content: Any) -> bool:
    if isinstance(content, list):
        return not content or any(
            not str(block.get("text", "")).strip() for block in _blocks(content, "text")
        )
    return not isinstance(content, str) or not content.strip()


def _wrong_system(system: Any) -> str:
    if isinstance(system, list) and system and _has_empty_text(system):
        return "system: text content blocks must be non-empty"
    if system is not None and not isinstance(system, str | list):
        return "system: Input should be a valid string or list"
    return ""


def _wrong_tools(body: Json) -> str:
    tools = body.get("tools", [])
    if wrong := conversation.wrong_tools(tools):
        return wrong
    strict = [tool for tool in tools if tool.get("strict") is True]
    schemas = [tool["input_schema"] for tool in strict if "input_schema" in tool]
    return _wrong_schema(schemas, "tools.custom.input_schema")


def _wrong_output(output: Any) -> str:
    if output is None:
        return ""
    if not isinstance(output, dict):
        return "output_config: Input should be an object"
    if output.get("effort", "medium") not in EFFORTS:
        return f"output_config.effort: Input should be one of {', '.join(EFFORTS)}"
    form = output.get("format")
    if form is None:
        return ""
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return "output_config.format.type: Input should be 'json_schema'"
    if not isinstance(form.get("schema"), dict):
        return "output_config.format.schema: Field required"
    return _wrong_schema(form["schema"])


def _wrong_schema(schema: Any, place: str = "output_config.format.schema") -> str:
    """What structured outputs refuse of a schema: open objects and constraints on values."""
    if isinstance(schema, list):
        return next((wrong for each in schema if (wrong := _wrong_schema(each, place))), "")
    if not isinstance(schema, dict):
        return ""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return f"{place}: For 'object' type, 'additionalProperties' must be explicitly set to false"
    if isinstance(schema.get("type"), str) and (found := sorted(UNSUPPORTED & set(schema))):
        return f"{place}: For '{schema['type']}' type, properties {found} are not supported"
    return next((wrong for each in schema.values() if (wrong := _wrong_schema(each, place))), "")


def blocks(content: Any) -> list[Json]:
    """The blocks of a system prompt or of a message's content; a string is one of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content)


def text_of(content: Any) -> str:
    """The text of a system prompt or of a message's content, results of tools included."""
    return "\n".join(
        str(block.get("text", "")) if "text" in block else text_of(block.get("content"))
        for block in blocks(content)
    )


def written(content: list[Json]) -> str:
    """All that a model wrote of a message: text, thoughts, and calls with their arguments."""
    return "".join(
        json.dumps(block["input"])
        if "input" in block
        else str(block.get("text", block.get("thinking", "")))
        for block in content
    )


def tokens_of(text: str) -> int:
    """Tokens of a text, as this server counts them: UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def error(type: str, message: str, request_id: str, error_code: str = "") -> Json:
    """The body of an error status, and the data of an error event."""
    said: Json = {"type": type, "message": message}
    if error_code:
        said["details"] = {"error_code": error_code}
    return {"type": "error", "error": said, "request_id": request_id}


def message(id: str, model: str, content: list[Json], stop_reason: str, usage: Json) -> Json:
    """A complete message."""
    refused = stop_reason == "refusal"
    details = {"category": "general_harms", "explanation": "(scripted) refused"}
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "stop_details": details if refused else None,
        "container": None,
        "diagnostics": None,
        "usage": usage,
    }


def opening(complete: Json) -> bytes:
    """The events that a stream begins with, before there is any text."""
    usage = complete["usage"]
    # A count that arrived is never taken back.
    first = min(1, usage["output_tokens"])
    start = {
        **complete,
        "content": [],
        "stop_reason": None,
        "stop_details": None,
        "usage": {**usage, "output_tokens": first} | _nothing_searched(usage),
    }
    return event({"type": "message_start", "message": start}) + event({"type": "ping"})


def _nothing_searched(usage: Json) -> Json:
    """The counts of a message that has searched, before it has."""
    if "server_tool_use" not in usage:
        return {}
    return {"input_tokens": 1, "server_tool_use": {"web_search_requests": 0}}


def deltas(complete: Json, cut: bool = False, most: int = DELTAS) -> list[bytes]:
    """The events of the blocks, in order. `cut`: the arguments of the last call break off. `most`:
    deltas of a block.
    """
    blocks = complete["content"]
    return [
        each
        for index, block in enumerate(blocks)
        for each in _block_events(index, block, cut and index == len(blocks) - 1, most)
    ]


def _block_events(index: int, block: Json, cut: bool, most: int) -> list[bytes]:
    bare, parts = _parts(block, cut, most)
    first = event({"type": "content_block_start", "index": index, "content_block": bare})
    events = [
        event({"type": "content_block_delta", "index": index, "delta": part}) for part in parts
    ]
    last = event({"type": "content_block_stop", "index": index})
    if not events:
        return [first + last]
    events[0] = first + events[0]
    events[-1] += last
    return events


def _parts(block: Json, cut: bool, most: int) -> tuple[Json, list[Json]]:
    """A block as it begins, and what is added to it."""
    match block["type"]:
        case "text":
            said = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], most)]
            return {**block, "text": ""}, said
        case "thinking":
            thought = [
                {"type": "thinking_delta", "thinking": piece}
                for piece in _pieces(block["thinking"], most)
            ]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*thought, signed]
        case "tool_use" | "server_tool_use":
            whole = json.dumps(block["input"])
            pieces = ["", *_pieces(whole[: len(whole) // 2] if cut else whole, most)]
            asked = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            return {**block, "input": {}}, asked
    # What a server's own tool found comes at once.
    return block, []


def closing(complete: Json) -> bytes:
    """The events that make a message complete."""
    delta = {name: complete[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    whole = complete["usage"]
    usage = {"output_tokens": whole["output_tokens"]}
    if "server_tool_use" in whole:
        # What it cost to read the prompt again is known at the end alone.
        usage |= {name: whole[name] for name in ("input_tokens", "server_tool_use")}
    return event({"type": "message_delta", "delta": delta, "usage": usage}) + event(
        {"type": "message_stop"}
    )


def event(data: Json) -> bytes:
    """One server-sent event, named as its data's type."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def _pieces(text: str, most: int) -> list[str]:
    """A text in at most so many pieces, all but the last of one length."""
    size = max(1, -(-len(text) // most))
    return [text[start : start + size] for start in range(0, len(text), size)]
