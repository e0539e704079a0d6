"""Find what is wrong with a complete answer whatever its text says. Pure.

A turn of a conversation is worth only what can be sent back, and a call only what is surely what
the model wrote.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.activities.claude.stream import Transcript

HALVES = "the text holds half characters"


def find_flaw(transcript: Transcript, raw: dict[str, Any]) -> str:
    """Return why an answer whose message is kept as `raw` cannot be used; empty if it can."""
    if transcript.stop_reason not in ("tool_use", "pause_turn"):
        return "" if transcript.whole_text else HALVES
    if transcript.unknown:
        return f"the turn holds parts of an unknown type: {transcript.unknown}"
    blocks: list[dict[str, Any]] = raw["content"]
    try:
        # As it will be sent: halves of characters, infinite numbers and endless depth are found.
        json.dumps(blocks, ensure_ascii=False, allow_nan=False).encode()
        altered = _beside_text(blocks) != _beside_text(transcript.raw["content"])
    except (ValueError, RecursionError):
        return "the turn cannot be sent back: it holds what JSON cannot say"
    if altered:
        return "a call or thought of the turn repeats a secret, or is nested too deep to be kept"
    return _find_wrong_call(blocks) if transcript.stop_reason == "tool_use" else ""


def _beside_text(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block.get("type") != "text"]


def _find_wrong_call(blocks: list[dict[str, Any]]) -> str:
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    if not calls:
        return "the model stopped for a tool and called none"
    for call in calls:
        if not all(isinstance(call.get(name), str) and call[name] for name in ("id", "name")):
            return "a tool call has no id or no name"
        if not isinstance(call.get("input"), dict):
            return f"the arguments of the call of {call['name'][:64]!r} are not a JSON object"
    if len({call["id"] for call in calls}) < len(calls):
        return "two tool calls have one id"
    return ""
