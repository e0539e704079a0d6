"""What a script makes of a request, whichever way it came: the rule that applies, the answer."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import Any, Literal

from holdfast.simulator import wire
from holdfast.simulator.answers import answer
from holdfast.simulator.asked import Asked
from holdfast.simulator.counting import PromptCache, prefix_tokens
from holdfast.simulator.script import TURN, Rule, Script
from holdfast.simulator.turns import bill_searches, look, resumed, searched, turn_of

Lane = Literal["now", "batch"]


class Player:
    """Counts what the rules of a script have met, and keeps the prompt cache of one server."""

    def __init__(self) -> None:
        self._met: Counter[tuple[int, str]] = Counter()
        self._cache = PromptCache()

    def rule(
        self, script: Script, asked: Asked, chance: random.Random, lane: Lane = "now"
    ) -> Rule | None:
        """Return the first rule that applies to a request."""
        for number, rule in enumerate(script.rules):
            if rule.lane not in ("", lane):
                continue
            if rule.call not in ("", asked.call) or rule.model not in ("", asked.body["model"]):
                continue
            if rule.turn not in (0, asked.turn):
                continue
            if rule.text and rule.text not in asked.system and rule.text not in asked.prompt:
                continue
            counter = (number, asked.digest if rule.per_body else "")
            self._met[counter] += 1
            met = self._met[counter]
            if (rule.first and met > rule.first) or (rule.nth and met not in rule.nth):
                continue
            if chance.random() < rule.probability:
                return rule
        return look(asked.body) if script.looks else None

    def message(
        self,
        id: str,
        script: Script,
        asked: Asked,
        rule: Rule | None,
        *,
        latency: float = 0.0,
        lane: Lane = "now",
        found: bool = True,
    ) -> dict[str, Any]:
        """Return a complete answer. `found`: the cache finds a marked prefix that it has."""
        content, stop = _content(script, asked, rule)
        usage = self._usage(asked, wire.tokens_of(wire.written(content)), latency, found)
        usage["service_tier"] = "batch" if lane == "batch" else "standard"
        bill_searches(usage, content)
        return wire.message(id, asked.body["model"], content, stop, usage)

    def _usage(self, asked: Asked, output: int, latency: float, found: bool) -> dict[str, Any]:
        """Return the usage of a message; marked prefixes take part in the cache."""
        now, effort = time.monotonic(), (asked.body.get("output_config") or {}).get("effort")
        tokens = prefix_tokens(asked.body, asked.schema, asked.blocks)
        kind = f"{asked.body['model']} {effort} {json.dumps(asked.schema)}"
        cached = self._cache.count(kind, asked.blocks, tokens, now, now + latency, found=found)
        return {
            "input_tokens": tokens[-1] - cached.read - cached.written,
            "cache_creation_input_tokens": cached.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": cached.written - cached.hour,
                "ephemeral_1h_input_tokens": cached.hour,
            },
            "cache_read_input_tokens": cached.read,
            "output_tokens": min(output, asked.body["max_tokens"]),
        }


def _content(script: Script, asked: Asked, rule: Rule | None) -> tuple[list[dict[str, Any]], str]:
    """Return the blocks of an answer and its stop reason."""
    flaw = rule.answer if rule else None
    if flaw in ("refusal", "empty"):
        return [], "refusal" if flaw == "refusal" else "end_turn"
    limit: int = asked.body["max_tokens"]
    if rule and (rule.tools or rule.pause) and asked.call == TURN:
        turn = turn_of(rule, asked.body, asked.blocks)
        cut = flaw == "truncated" or wire.tokens_of(wire.written(turn)) > limit
        return turn, "max_tokens" if cut else "pause_turn" if rule.pause else "tool_use"
    value = answer(asked.schema, asked.prompt, script, rule)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    stop = "end_turn"
    if flaw == "malformed":
        text = text.replace("{", "<", 1)
    elif flaw == "truncated" or wire.tokens_of(text) > limit:
        text, stop = text[: min(len(text) // 2, limit * wire.BYTES_PER_TOKEN)], "max_tokens"
    said = [{"type": "text", "text": text}] if text else []
    return [*resumed(asked.body), *searched(rule, asked.body), *said], stop
