"""Tokens of a request, as the Messages API counts them, its prompt cache included."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from holdfast.simulator import wire
from holdfast.simulator.prefix import Block

LOOKBACK = 20
"""At how many places a mark is looked for: its own and those before it."""
LIFE_SECONDS, HOUR_SECONDS = 300.0, 3_600.0
"""How long an entry lives after its last use: as a rule, and if the mark asks for an hour."""
TOOLS_TOKENS = 286
"""What explains the use of tools to a model."""


def prefix_tokens(body: dict[str, Any], schema: dict[str, Any], blocks: list[Block]) -> list[int]:
    """Tokens of a request up to the end of each block; the schema is part of what is read first."""
    first = len(json.dumps(schema)) + TOOLS_TOKENS * wire.BYTES_PER_TOKEN * bool(body.get("tools"))
    sizes = accumulate((each.size for each in blocks), initial=first)
    return [-(-size // wire.BYTES_PER_TOKEN) for size in list(sizes)[1:]]


class Counted(NamedTuple):
    """Tokens that a request wrote to the cache and read from it."""

    written: int = 0
    read: int = 0
    hour: int = 0
    """Those of the written that are kept for an hour."""


@dataclass
class _Entry:
    readable_from: float
    used: float
    life: float


class PromptCache:
    """The prefixes that have been written. A prefix can be read only after the first answer that
    wrote it has begun, so a fan-out that starts all at once pays for every write.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def count(
        self,
        kind: str,
        blocks: list[Block],
        tokens: list[int],
        now: float,
        begins: float,
        *,
        found: bool = True,
    ) -> Counted:
        """Count a request that arrives `now` and whose answer `begins` later; seconds of one clock.
        `kind`: what else must be the same; `found`: False where the cache does not find what it
        has, so that it is paid again.
        """
        marks = [
            place
            for place, block in enumerate(blocks)
            if block.marked and tokens[place] >= wire.MIN_CACHED_TOKENS
        ]
        if not marks:
            return Counted()
        keys = [f"{kind} {block.digest}" for block in blocks]
        looked = {place for mark in marks for place in range(mark, mark - LOOKBACK, -1)}
        places = [
            place for place in looked if found and place >= 0 and self._readable(keys[place], now)
        ]
        read = max((tokens[place] for place in places), default=0)
        for place in places:
            self._entries[keys[place]].used = now
        for place in marks:
            if not self._readable(keys[place], now):
                life = HOUR_SECONDS if blocks[place].hour else LIFE_SECONDS
                self._write(keys[place], now, begins, life)
        hour = max((tokens[place] for place in marks if blocks[place].hour), default=0)
        return Counted(max(0, tokens[marks[-1]] - read), read, max(0, hour - read))

    def _readable(self, key: str, now: float) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.readable_from <= now <= entry.used + entry.life

    def _write(self, key: str, now: float, begins: float, life: float) -> None:
        entry = self._entries.get(key)
        if entry is None or now > entry.used + entry.life:
            self._entries[key] = _Entry(begins, begins, life)
