"""A message as it arrives, event by event: tolerant of what compatible endpoints leave out.

Endpoints differ: some name no events, leave out usage or send it as null, end with `[DONE]`, send
events of their own, or answer a request for a stream with one JSON document. What never varies is
when a message counts: when its end was announced and a stop reason was given.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.contracts import Usage
from holdfast.contracts.policies import RESERVED_BYTES_PER_TOKEN
from holdfast.text import visible

USAGE_FIELDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
FOR_AN_HOUR = "ephemeral_1h_input_tokens"
"""Name of the count of tokens that are kept for an hour, in `cache_creation`."""
SEARCHES = "web_search_requests"
"""Name of the count of the endpoint's own searches, in `server_tool_use`."""
DELTA_FIELDS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""Type of a delta → type of its block, and the name of its text in delta and block."""
SIGNED = ("thinking", "redacted_thinking")
"""Blocks that an endpoint takes back only as it made them."""
MOST_TOKENS = 20_000_000
"""Twice the largest context of any model: no call can have used more."""
MOST_BYTES_PER_TOKEN = 8
"""Text of this many bytes is at least one token, whatever the endpoint counted."""
LONGEST_NAME = 200
"""Characters kept of a model's id or a stop reason."""


DEEPEST = 60
"""Levels of nesting of a message; what is deeper stays as it is, and is not kept anyway."""


class StreamError(Exception):
    """The endpoint reported an error inside an answer, or sent what is not an answer."""

    def __init__(self, type: str, message: str, error_code: str = "") -> None:
        super().__init__(message)
        self.type = type
        self.error_code = error_code


class Transcript:
    """Collects one message. Everything fed to it is untrusted."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, int] = {}
        self.seen_bytes = 0
        """Bytes of the model's visible output."""
        self._output_is_final = False
        self._absurd = False
        self._ended = False
        self.unknown = ""
        """The type of a part that nobody knows how to put into its block."""

    @property
    def begun(self) -> bool:
        """True once any part of a message has arrived."""
        return bool(self._message or self._blocks)

    @property
    def writing(self) -> bool:
        """True once the model's own output has begun, be it a thought."""
        return bool(self._blocks)

    @property
    def complete(self) -> bool:
        """True once the end was announced and a stop reason given; anything else is not an
        answer.
        """
        return self._ended and bool(self.stop_reason)

    @property
    def counted(self) -> bool:
        """True if the endpoint's last count arrived, and no count was absurd."""
        return self._output_is_final and not self._absurd

    @property
    def absurd(self) -> bool:
        """True if the endpoint counted what cannot be: not a number, or more than any model
        takes.
        """
        return self._absurd

    @property
    def stop_reason(self) -> str:
        return visible(_text(self._message.get("stop_reason"))[:LONGEST_NAME])

    @property
    def model(self) -> str:
        """The id of the model that served; empty if the endpoint does not say."""
        return visible(_text(self._message.get("model"))[:LONGEST_NAME])

    @property
    def text(self) -> str:
        """All text blocks in order; an answer may begin with thinking. Halves of a character that
        arrived in two deltas are joined; `whole_text` says whether a half is left.
        """
        return self._joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @property
    def whole_text(self) -> bool:
        """True if the text is Unicode: endpoints that count in UTF-16 can cut a character."""
        try:
            self._joined.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            return False
        return True

    @property
    def _joined(self) -> str:
        return "".join(
            _text(block.get("text")) for block in self._content() if block.get("type") == "text"
        )

    @property
    def detail(self) -> str:
        """Return what the endpoint says of a refusal."""
        details = _mapping(self._message.get("stop_details"))
        parts = (_text(details.get("category")), _text(details.get("explanation")))
        return visible(": ".join(part for part in parts if part)[:2_000])

    @property
    def raw(self) -> dict[str, Any]:
        """The message as it came, blocks in order, tool arguments as text if they are not JSON.

        Halves of a character are joined across deltas. One that is left would make every request
        that carries it unreadable, so it is replaced, but in thoughts, which are signed.
        """
        content = [join_halves(block, block.get("type") in SIGNED) for block in self._content()]
        return {**self._message, "content": content, "usage": dict(self._usage)}

    def usage(self, prompt_tokens: int, max_output: int) -> Usage:
        """Return the tokens so far; zero if no part of a message has arrived.

        What the endpoint did not count is never understated: a prompt counts as `prompt_tokens`,
        visible output by its bytes, and output with thinking, which may be hidden, as `max_output`.
        What it counted twice counts at the larger number.
        """
        if not self.begun:
            return Usage()
        counted = {
            ours: self._usage[theirs]
            for theirs, ours in USAGE_FIELDS.items()
            if theirs in self._usage
        }
        # No prompt is empty: an endpoint that says 0 of every kind has not counted it.
        if not any(value for name, value in counted.items() if name != "output_tokens"):
            counted["input_tokens"] = prompt_tokens
        if not self._output_is_final or not counted.get("output_tokens"):
            seen = -(-self.seen_bytes // RESERVED_BYTES_PER_TOKEN)
            hidden = any(block.get("type") == "thinking" for block in self._blocks.values())
            counted["output_tokens"] = max(
                counted.get("output_tokens", 0), max_output if hidden else seen
            )
        counted["searches"] = max(self._usage.get(SEARCHES, 0), self._searched)
        hour, all_written = self._usage.get(FOR_AN_HOUR, 0), counted.get("cache_write_tokens", 0)
        counted["cache_hour_tokens"] = min(hour, all_written)
        least = -(-self.seen_bytes // MOST_BYTES_PER_TOKEN)
        counted["output_tokens"] = max(counted["output_tokens"], least)
        return Usage(**counted)

    @property
    def _searched(self) -> int:
        """Searches that were seen to begin, where the endpoint has not counted them."""
        if SEARCHES in self._usage and self._output_is_final:
            return 0
        own = [each for each in self._blocks.values() if each.get("type") == "server_tool_use"]
        return sum(each.get("name") == "web_search" for each in own)

    @property
    def searched_itself(self) -> bool:
        """True if the endpoint used tools of its own: then text may stand before its answer."""
        return any(each.get("type") == "server_tool_use" for each in self._blocks.values())

    def feed(self, event: str | None, data: str) -> None:
        """Take one server-sent event. Raise StreamError if it reports an error or is not JSON."""
        if not data.strip() or data.strip() == "[DONE]":
            return
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            raise StreamError("", "an event of the stream is not JSON") from None
        if not isinstance(content, dict):
            return
        kind = _text(content.get("type")) or event or ("error" if "error" in content else "")
        match kind:
            case "error":
                raise _make_error(content)
            case "message_start":
                self._start(_mapping(content.get("message")))
            case "content_block_start":
                self._blocks[_index(content)] = dict(_mapping(content.get("content_block")))
            case "content_block_delta":
                self._delta(_index(content), _mapping(content.get("delta")))
            case "message_delta":
                self._message |= _mapping(content.get("delta"))
                self._count(content.get("usage"), final=True)
            case "message_stop":
                self._ended = True

    def load(self, document: str) -> None:
        """Take a whole message as one JSON document. Raise StreamError if it is not one."""
        try:
            content = json.loads(document)
        except (ValueError, RecursionError):
            raise StreamError("", "the answer is not JSON") from None
        if not isinstance(content, dict) or content.get("type") != "message":
            raise _make_error(_mapping(content))
        self._start(content)
        self._count(content.get("usage"), final=True)
        self.seen_bytes = len(self._joined.encode("utf-8", "replace"))
        self._ended = True

    def _start(self, message: dict[str, Any]) -> None:
        self._message = {
            name: value for name, value in message.items() if name not in ("content", "usage")
        }
        self._message.setdefault("type", "message")
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._blocks[index] = dict(_mapping(block))
        self._count(message.get("usage"), final=False)

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = _text(delta.get("type"))
        if kind == "citations_delta":
            block = self._blocks.setdefault(index, {"type": "text", "text": ""})
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            return
        block_type, name = DELTA_FIELDS.get(kind, ("", ""))
        if not name:
            self.unknown = visible(kind[:LONGEST_NAME]) or "none"
            return
        block = self._blocks.setdefault(index, {"type": block_type})
        piece = _text(delta.get(name))
        block[name] = _text(block.get(name)) + piece
        if name != "signature":
            self.seen_bytes += len(piece.encode("utf-8", "replace"))

    def _count(self, usage: Any, *, final: bool) -> None:
        counts = _mapping(usage)
        counts = counts | _mapping(counts.get("cache_creation"))
        counts = counts | _mapping(counts.get("server_tool_use"))
        for name in (*USAGE_FIELDS, FOR_AN_HOUR, SEARCHES):
            value = counts.get(name)
            if value is None:
                continue
            # Not isinstance: true is not a number of tokens.
            if type(value) is not int or not 0 <= value <= MOST_TOKENS:
                self._absurd = True
                continue
            self._usage[name] = max(value, self._usage.get(name, 0))
            # The first count is sent before the output is written, so it covers none of it.
            self._output_is_final |= final and name == "output_tokens"

    def _content(self) -> list[dict[str, Any]]:
        return [_parse_arguments(self._blocks[index]) for index in sorted(self._blocks)]


def _parse_arguments(block: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call's block with its collected arguments; what is not a JSON object stays
    text.
    """
    if "partial_json" not in block:
        return block
    collected = _text(block["partial_json"])
    rest = {name: value for name, value in block.items() if name != "partial_json"}
    if not collected and isinstance(rest.get("input"), dict):
        return rest
    try:
        arguments = json.loads(collected or "{}")
    except (ValueError, RecursionError):
        arguments = None
    return {**rest, "input": arguments if isinstance(arguments, dict) else collected}


def _make_error(content: dict[str, Any]) -> StreamError:
    error = _mapping(content.get("error"))
    return StreamError(
        _text(error.get("type")),
        _text(error.get("message")) or "the answer is not a message",
        _text(_mapping(error.get("details")).get("error_code")),
    )


def _index(content: dict[str, Any]) -> int:
    index = content.get("index")
    return index if type(index) is int else 0


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def join_halves(value: Any, keep: bool = False, depth: int = 0) -> Any:
    """Return a JSON document in whose texts two halves of a character that meet are one: endpoints
    that count in UTF-16 can cut a character in two. A half that is left over becomes a replacement
    character, or stays if `keep`.
    """
    if depth > DEEPEST:
        return value
    if isinstance(value, str):
        if value.isascii():
            return value
        left = "surrogatepass" if keep else "replace"
        return value.encode("utf-16", "surrogatepass").decode("utf-16", left)
    if isinstance(value, dict):
        return {
            join_halves(name, keep): join_halves(inner, keep, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [join_halves(inner, keep, depth + 1) for inner in value]
    return value
