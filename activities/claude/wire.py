"""Build requests for the wire, and find the JSON of an answer. Pure.

Only what every current model takes is ever sent: no sampling parameters, no prefill, no forced
tool, no `thinking` (each is refused by some of today's models); what an endpoint may not understand
depends on its capabilities.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anthropic import transform_schema

from holdfast.activities.claude.caching import mark_cached, mark_shared
from holdfast.activities.claude.tools import offer_tools
from holdfast.contracts import Capabilities
from holdfast.contracts.policies import TOOLS_TOKENS
from holdfast.ports import ModelRequest

SCHEMA_INSTRUCTION = (
    "Answer with one JSON object and nothing else: no prose before or after it, no code fence. "
    "It must match this JSON schema:\n"
)
WITH_TOOLS = "As long as you need tools, call them. When you need none any more: "
DECODE_TRIES = 100
"""Opening braces of a text that are tried: a hostile one could hold millions."""


def shape(request: ModelRequest, capabilities: Capabilities) -> dict[str, Any]:
    """Return the body of `POST /v1/messages`, as far as this endpoint understands it."""
    schema = transform_schema(request.schema)
    native = capabilities.schema_mode == "native"
    system = request.system if native else _add_schema(request, schema)
    one_shot: list[Mapping[str, Any]] = [{"role": "user", "content": request.prompt}]
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output,
        "messages": list(request.messages) or one_shot,
        "stream": True,
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = offer_tools(request.tools, schema if native else None)
    output: dict[str, Any] = {}
    if capabilities.effort:
        output["effort"] = request.effort
    if native:
        output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        body["output_config"] = output
    if request.shared and capabilities.caching:
        return mark_shared(body, request.common, hour=request.shared == "1h")
    if not (request.cached and capabilities.caching):
        return body
    # A prompt that is asked once would pay for an entry that nobody reads.
    return mark_cached(body, conversation=bool(request.messages))


def countable(body: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a body that token counting takes, which is also all that counts as
    input.
    """
    return {name: value for name, value in body.items() if name not in ("max_tokens", "stream")}


def most_tokens(body: dict[str, Any]) -> int:
    """Return no fewer tokens than the countable part of a body has: as many as UTF-8 bytes, because
    a tokenizer that works on bytes makes no more of them, and what tools add.
    """
    written = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return written + TOOLS_TOKENS * bool(body.get("tools"))


def extract_json(text: str) -> str:
    """Return the JSON object that a text answer holds, among fences, prose or thoughts; the text
    itself if it holds none, so that validation can say what is wrong with it.
    """
    said = text.rsplit("</think>", 1)[-1].strip()
    found = [said[start:end] for start, end in _objects(said)]
    return max(found, key=len, default=text)


def _objects(text: str) -> list[tuple[int, int]]:
    """Return the places of the outermost JSON objects, as (start, end)."""
    places: list[tuple[int, int]] = []
    start = text.find("{")
    for _ in range(DECODE_TRIES):
        if start < 0:
            break
        try:
            end = json.JSONDecoder().raw_decode(text, start)[1]
            places.append((start, end))
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
    return places


def _add_schema(request: ModelRequest, schema: dict[str, Any]) -> str:
    instruction = SCHEMA_INSTRUCTION + json.dumps(schema, ensure_ascii=False)
    if request.tools:
        instruction = WITH_TOOLS + instruction[:1].lower() + instruction[1:]
    return f"{request.system}\n\n{instruction}" if request.system else instruction
