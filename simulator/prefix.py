"""A request as a row of blocks, as the API reads it: tools, system prompt, messages.

What a cache finds again, and what a thought is bound to, is a prefix of that row; marks of the
cache are no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.simulator import wire

Json = dict[str, Any]
BEFORE_MESSAGES = -1


@dataclass(frozen=True)
class Block:
    """One block of a request, with all before it."""

    message: int
    """Index of its message; BEFORE_MESSAGES: none."""
    size: int
    """Bytes of its own."""
    digest: str
    """Digest of the row up to its end."""
    marked: bool
    """True if the cache is asked to keep the row up to here."""
    hour: bool = False
    """True if it is asked to keep it for an hour."""


def blocks_of(body: Json) -> list[Block]:
    """The row of a request that is well-formed."""
    running = hashlib.sha256()
    found = []
    for message, place, block in _units(body):
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        written = json.dumps([place, plain])
        running.update(written.encode())
        text = str(plain.get("text")) if plain.get("type") == "text" else json.dumps(plain)
        size = len(text.encode("utf-8", "replace"))
        mark = block.get("cache_control")
        hour = isinstance(mark, dict) and mark.get("ttl") == "1h"
        found.append(Block(message, size, running.copy().hexdigest(), mark is not None, hour))
    return found


def digest_before(blocks: list[Block], message: int) -> str:
    """Return the digest of everything before a message."""
    return next((each.digest for each in reversed(blocks) if each.message < message), "")


def _units(body: Json) -> Iterator[tuple[int, str, Json]]:
    for tool in body.get("tools") or ():
        yield BEFORE_MESSAGES, "tool", tool
    for block in wire.blocks(body.get("system")):
        yield BEFORE_MESSAGES, "system", block
    for index, message in enumerate(body["messages"]):
        for block in wire.blocks(message.get("content")):
            yield index, message["role"], block
