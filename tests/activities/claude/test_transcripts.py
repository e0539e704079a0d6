"""An answer as it comes: the object in a text, and the message in a stream."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from calling import price
from holdfast.activities.claude.stream import StreamError, Transcript
from holdfast.activities.claude.wire import extract_json, most_tokens
from holdfast.contracts import Usage

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
