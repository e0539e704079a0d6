"""A request as it is understood: what is asked, or why it is refused."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from holdfast.simulator import wire
from holdfast.simulator.answers import call_of, schema_of
from holdfast.simulator.prefix import Block, blocks_of
from holdfast.simulator.replies import STATUS_TYPES, refuse
from holdfast.simulator.script import TURN, Script
from holdfast.simulator.turns import altered

ROW = ("tools", "system", "messages")
"""Fields of a request that its row of blocks is made of."""


@dataclass(frozen=True)
class Asked:
    """A request as far as the script cares."""

    body: dict[str, Any]
    digest: str
    system: str
    prompt: str
    schema: dict[str, Any]
    call: str
    mark: str
    blocks: list[Block]

    @property
    def turn(self) -> int:
        """Return which answer of the conversation is asked for, from 1."""
        roles = [message["role"] for message in self.body["messages"]]
        return 1 + roles.count("assistant")


def key_of(request: web.Request) -> str:
    """Return the key that a request comes with; empty if none."""
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return bearer or request.headers.get("X-Api-Key", "")


def unknown_key(request: web.Request, script: Script) -> web.Response | None:
    """Return the refusal of a request whose key is not accepted; None if it is."""
    key = key_of(request)
    if not key or (script.key and key != script.key):
        return refuse(401, "authentication_error", "invalid x-api-key", request)
    return None


def asked_by(
    request: web.Request,
    raw: bytes,
    script: Script,
    *,
    counting: bool = False,
    ours: bool = True,
) -> tuple[Asked | None, web.Response]:
    """What is asked, or why it is refused. `ours`: this server made the turns that come back."""
    if refusal := unknown_key(request, script):
        return None, refusal
    body, text = read_body(raw)
    if body is None:
        return None, refuse(400, "invalid_request_error", text, request)
    asked, status, wrong = understand(body, raw, script, counting=counting, ours=ours)
    if asked is None:
        return None, refuse(status, STATUS_TYPES[status], wrong, request)
    return asked, web.Response()


def understand(
    body: dict[str, Any],
    raw: bytes | None,
    script: Script,
    *,
    counting: bool = False,
    ours: bool = True,
) -> tuple[Asked | None, int, str]:
    """Return what a body asks, or None with the status and the words of its refusal. Without `raw`,
    the bytes that it came as, its digest is that of what it says.
    """
    status, wrong = wire.mistake(body, script.models, counting=counting)
    if status:
        return None, status, wrong
    blocks = blocks_of(body)
    if ours and (wrong := altered(body, blocks)):
        return None, 400, wrong
    system = wire.text_of(body.get("system"))
    prompt = "\n".join(wire.text_of(each.get("content")) for each in body["messages"])
    schema = schema_of(body, system)
    digest = hashlib.sha256(_said(body, blocks) if raw is None else raw).hexdigest()
    found = re.search(script.mark, prompt) if script.mark else None
    mark = found.group() if found else ""
    call = TURN if body.get("tools") else call_of(schema)
    return Asked(body, digest, system, prompt, schema, call, mark, blocks), 0, ""


def _said(body: dict[str, Any], blocks: list[Block]) -> bytes:
    rest = {name: value for name, value in body.items() if name not in ROW}
    return f"{blocks[-1].digest} {json.dumps(rest)}".encode()


def read_body(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """The body of a request, or what is said of one that is none."""
    invalid = "The request body is not valid JSON"
    try:
        body = json.loads(raw)
        if b"\\ud" in raw.lower():
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return None, f"{invalid}: no low surrogate in string"
    except (ValueError, RecursionError):
        return None, invalid
    return (body, "") if isinstance(body, dict) else (None, invalid)
