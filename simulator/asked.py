"""A request as it is understood: what is asked, or why it is refused."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from simulator import wire
from simulator.answers import call_of, schema_of
from simulator.replies import STATUS_TYPES, refuse
from simulator.script import Script


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


def asked_by(
    request: web.Request, raw: bytes, script: Script, *, counting: bool = False
) -> tuple[Asked | None, web.Response]:
    """What is asked, or why it is refused."""
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    key = bearer or request.headers.get("X-Api-Key", "")
    if not key or (script.key and key != script.key):
        return None, refuse(401, "authentication_error", "invalid x-api-key", request)
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        text = "The request body is not valid JSON"
        return None, refuse(400, "invalid_request_error", text, request)
    status, wrong = wire.mistake(body, script.models, counting=counting)
    if status:
        return None, refuse(status, STATUS_TYPES[status], wrong, request)
    system = wire.text_of(body.get("system"))
    prompt = "\n".join(wire.text_of(each.get("content")) for each in body["messages"])
    schema = schema_of(body, system)
    digest = hashlib.sha256(raw).hexdigest()
    found = re.search(script.mark, prompt) if script.mark else None
    mark = found.group() if found else ""
    return Asked(body, digest, system, prompt, schema, call_of(schema), mark), web.Response()
