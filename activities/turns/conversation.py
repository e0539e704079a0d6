"""An agent's conversation in the store: a blob per message of the model, and a list of them all.

What the model said goes back to it exactly as it came. What it was told is made anew, the same each
time, from the results that the list names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.calls.envelopes import defang, envelope
from holdfast.calls.turn import ToolResult
from holdfast.contracts import Contract
from holdfast.contracts.errors import CallRefused
from holdfast.ports import Store


class Told(Contract):
    """Text that the agent is given before a message of its own."""

    results: tuple[ToolResult, ...] = ()
    said: str = ""


class Spoken(Contract):
    """One exchange: what the agent was told, and the digest of its answer."""

    told: Told
    message: str


class Spoke(Contract):
    """All exchanges."""

    exchanges: tuple[Spoken, ...] = ()


async def load(store: Store, transcript: str) -> Spoke:
    """Return the list under this digest; an empty one if nothing was said yet."""
    return Spoke.model_validate_json(await store.get(transcript)) if transcript else Spoke()


async def build_messages(
    store: Store, spoke: Spoke, first: str, now: Told
) -> tuple[Mapping[str, Any], ...]:
    """Return the conversation as an endpoint takes it. `first` is the first user turn; `now` is
    what the agent is told at its end.
    """
    made: list[Mapping[str, Any]] = [_user([{"type": "text", "text": first}])]
    paused = False
    names: dict[str, str] = {}
    for place, exchange in enumerate(spoke.exchanges):
        if place and (told := await _to_blocks(store, exchange.told, names, paused)):
            made.append(_user(told))
        content = json.loads(await store.get(exchange.message))
        names |= {each["id"]: each["name"] for each in find_calls(content)}
        made.append({"role": "assistant", "content": content})
        paused = is_paused(content)
    if spoke.exchanges:
        if told := await _to_blocks(store, now, names, paused):
            made.append(_user(told))
    elif now.said:
        made[0] = _user([{"type": "text", "text": first}, _said(now)])
    return tuple(made)


async def append(store: Store, spoke: Spoke, told: Told, content: Sequence[Any]) -> str:
    """Keep one more exchange, and return the digest of the longer list."""
    message = await store.put(json.dumps(list(content)).encode())
    longer = Spoke(exchanges=(*spoke.exchanges, Spoken(told=told, message=message)))
    return await store.put(longer.model_dump_json().encode())


async def find_arguments(store: Store, transcript: str, use_id: str) -> Mapping[str, Any]:
    """Return the arguments of a call in the last message. Raise CallRefused if there is none."""
    spoke = await load(store, transcript)
    content = json.loads(await store.get(spoke.exchanges[-1].message)) if spoke.exchanges else []
    for block in find_calls(content):
        if block["id"] == use_id:
            return dict(block["input"])
    raise CallRefused(f"the transcript holds no call {use_id!r}")


def find_calls(content: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the calls of tools in a message whose arguments are an object."""
    blocks = [each for each in content if isinstance(each, dict) and each.get("type") == "tool_use"]
    return [each for each in blocks if isinstance(each.get("input"), dict)]


def _user(content: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {"role": "user", "content": content}


def is_paused(content: Sequence[Any]) -> bool:
    """True if the endpoint is still at work with a tool of its own: it goes on by itself, and words
    would end that, or are refused.
    """
    blocks = [each for each in content if isinstance(each, dict)]
    found = {each.get("tool_use_id") for each in blocks}
    own = [each.get("id") for each in blocks if each.get("type") == "server_tool_use"]
    return any(each not in found for each in own)


async def _to_blocks(
    store: Store, told: Told, names: Mapping[str, str], paused: bool
) -> list[dict[str, Any]]:
    """Return all results first, in one message, as endpoints want them, then what is said."""
    blocks: list[dict[str, Any]] = []
    for result in told.results:
        text = result.text
        if result.digest:
            text = (await store.get(result.digest)).decode("utf-8", "replace")
        name = names.get(result.use_id, "a tool")
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.use_id,
            "content": envelope(f"result of {name}", text),
        }
        blocks.append({**block, "is_error": True} if result.is_error else block)
    return [*blocks, _said(told)] if told.said and not paused else blocks


def _said(told: Told) -> dict[str, Any]:
    """Return what we say, which may quote what a model wrote, as a block of text."""
    return {"type": "text", "text": defang(told.said)}
