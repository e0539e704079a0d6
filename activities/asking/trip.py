"""One call on its way to an answer: what is sent, under which key, and how far it has come."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

from holdfast.activities.asking.heartbeat import Notes, Past
from holdfast.activities.asking.journal import dump_undated, key_of
from holdfast.contracts import Call, Contract
from holdfast.contracts.policies import CALL_MARGIN_SECONDS, TOOLS_TOKENS
from holdfast.ports import ModelRequest

MARGIN_SECONDS = 5.0
"""How long before its start-to-close timeout a call is cut that waited or was counted for long
before it left, so that it can still say what it used.
"""


@dataclass
class Trip:
    """One call on its way to an answer."""

    key: str
    call: Call
    request: ModelRequest
    past: Past
    notes: Notes
    alone: bool = False
    """True if its attempt makes no other call."""
    left: bool = False
    """True once its first byte may have left and it was not refused."""
    tokens: int = 0
    """Tokens of the prompt, as far as their bound had to be known."""
    likely: int = 0
    """Estimate of these tokens."""
    earlier: bool = False
    """True if the journal knew it before its first attempt: from before the run was reset."""
    held: str = ""
    """The limit of the deployment's own that it waited for, in words; empty: for none."""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        """Seconds for the exchange, should it leave now: all its time, unless little is left to the
        activity.
        """
        most = self.request.deadline_seconds
        spare = CALL_MARGIN_SECONDS - MARGIN_SECONDS - (time.monotonic() - self.began)
        return max(most + min(spare, 0.0), 1.0)


async def byte_bound(request: ModelRequest) -> int:
    """Return as many tokens as bytes: no tokenizer that works on bytes makes more."""
    words = len((request.system + request.prompt).encode()) + len(json.dumps(request.schema))
    if not (request.messages or request.tools):
        return words
    sent = json.dumps([request.messages, request.tools], ensure_ascii=False)
    return words + len(sent.encode("utf-8", "replace")) + TOOLS_TOKENS * bool(request.tools)


def call_key(call: Call, material: Contract) -> str:
    """Return the journal key of a call. A run that was reset asks again under the same key."""
    return key_of(call.model_dump_json() + dump_undated(material), call.run)


def make_request(
    call: Call, schema: Mapping[str, Any], system: str, prompt: str, past: Past
) -> ModelRequest:
    assert call.model is not None
    info = activity.info()
    limit = info.start_to_close_timeout.total_seconds() if info.start_to_close_timeout else 300.0
    return ModelRequest(
        model=call.model.id,
        system=system.strip(),
        prompt=prompt,
        schema=dict(schema),
        max_output=call.max_output,
        effort=call.effort,
        capabilities=call.capabilities,
        deadline_seconds=max(limit - CALL_MARGIN_SECONDS, 1.0),
        attempt=1 + past.throttled,
    )
