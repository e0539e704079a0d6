"""Place the marks of a request for the prompt cache. Pure.

An entry covers everything before its mark, in the order tools, system prompt, messages, and is
found again where the next request has a mark, or up to 20 blocks before one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def mark_shared(body: Mapping[str, Any], common: int, *, hour: bool) -> dict[str, Any]:
    """Return the body with a mark after what other calls begin with, too: of its only message the
    first `common` characters, or else the system prompt.
    """
    mark = HOUR_MARK if hour else MARK
    result = dict(body)
    first, *others = body["messages"]
    if common and not others and isinstance(first["content"], str):
        shared, own = first["content"][:common], first["content"][common:]
        blocks = [{"type": "text", "text": shared, **mark}, {"type": "text", "text": own}]
        # No block may be empty.
        result["messages"] = [{**first, "content": blocks if own.strip() else blocks[:1]}]
    elif body.get("system"):
        result["system"] = _mark_last(body["system"], mark)
    return result


def mark_cached(body: Mapping[str, Any], *, conversation: bool) -> dict[str, Any]:
    """Return the body with at most 3 of the 4 marks that a request may have: after what is the same
    for all requests of a role, and in a conversation after its newest message and after the one
    that was newest a turn ago, which is found whatever number of blocks came since.
    """
    result = dict(body)
    if body.get("system"):
        result["system"] = _mark_last(body["system"])
    elif body.get("tools"):
        result["tools"] = [*body["tools"][:-1], body["tools"][-1] | MARK]
    if conversation:
        messages = list(body["messages"])
        for index in _ends(messages):
            message = messages[index]
            messages[index] = {**message, "content": _mark_last(message["content"])}
        result["messages"] = messages
    return result


def _ends(messages: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the places of the last user message and of the last one before the newest assistant
    turn. Turns of the assistant go back as they came, so they get no mark; thoughts could not even
    have one.
    """
    roles = [message["role"] for message in messages]
    asked = [index for index, role in enumerate(roles) if role == "user"]
    answered = [index for index, role in enumerate(roles) if role == "assistant"]
    before = [index for index in asked if answered and index < answered[-1]]
    yield from sorted({*asked[-1:], *before[-1:]})


def _mark_last(
    content: str | Sequence[Mapping[str, Any]], mark: Mapping[str, Any] = MARK
) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*(dict(block) for block in blocks[:-1]), {**blocks[-1], **mark}]
