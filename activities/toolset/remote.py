"""A Python sandbox on another machine, which the deployment names.

One request a run: POST of `{code, inputs, seconds, memory}` as JSON, with the key as bearer token.
The answer is status 200 and `{printed, value, error}`, all strings; `value` and `error` may be left
out. Whatever else comes is an error that names neither the address nor the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from holdfast.activities.toolset.tool import Here, ToolError
from holdfast.activities.toolset.web import call_service
from holdfast.untrusted.known_secrets import KnownSecrets

NAME = "the Python sandbox of this deployment"
KEY = "python_sandbox_key"
WAITING_SECONDS = 10.0
"""Extra time, beyond the code's own, for the way there and back and a sandbox's start."""
ANSWER_BYTES = 4 * 1024 * 1024


class Ran(BaseModel):
    """The answer of a sandbox."""

    printed: str = ""
    value: str = ""
    error: str = ""


async def run(here: Here, address: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sandbox's answer to this code. Raise ToolError if there is none: then it is
    unknown what the code did, but there was nothing that it could change.
    """
    key = here.setting(KEY)
    status, content = await call_service(
        "POST",
        address,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        json=dict(wanted),
        most=ANSWER_BYTES,
        seconds=wanted["seconds"] + WAITING_SECONDS,
        named=NAME,
    )
    if status != 200:
        raise ToolError(f"{NAME} refused to run it (status {status}); do without it")
    try:
        said = Ran.model_validate_json(content)
    except (ValidationError, ValueError):
        raise ToolError(f"{NAME} answered something that is not a result; do without it") from None
    # A sandbox may print what it was sent.
    answer = KnownSecrets([key]).blot_all(json.loads(said.model_dump_json()))
    return {name: text for name, text in answer.items() if text or name == "printed"}
