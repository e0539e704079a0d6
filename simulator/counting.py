"""Tokens of a request, as the Messages API counts them, its prompt cache included."""

from __future__ import annotations

import json
from typing import Any

from simulator import wire


def prompt_tokens(system: str, schema: dict[str, Any], prompt: str) -> int:
    """All input tokens of a request; the schema is part of what the model reads."""
    return wire.tokens_of(f"{system}{json.dumps(schema)}{prompt}")


class PromptCache:
    """Which prefixes have been written. A prefix can be read only after the first answer that wrote
    it has begun, so a fan-out that starts all at once pays for every write.
    """

    def __init__(self) -> None:
        self._readable_from: dict[str, float] = {}

    def count(
        self, model: str, system: str, schema: dict[str, Any], now: float, begins: float
    ) -> tuple[int, int]:
        """Tokens written to the cache and read from it by a request with a marked system prompt
        that arrives `now` and whose answer `begins` later; seconds of one clock.
        """
        prefix = f"{system}{json.dumps(schema)}"
        tokens = wire.tokens_of(prefix)
        if tokens < wire.MIN_CACHED_TOKENS:
            return 0, 0
        entry = f"{model} {prefix}"
        if entry in self._readable_from and self._readable_from[entry] <= now:
            return 0, tokens
        self._readable_from.setdefault(entry, begins)
        return tokens, 0
