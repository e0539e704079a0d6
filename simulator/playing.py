"""A cassette in place of a script: requests are answered as a model answered them once."""

from __future__ import annotations

import logging
from typing import Any

from aiohttp import web

from holdfast.replaying.cassette import Cassette
from holdfast.simulator import wire
from holdfast.simulator.asked import Asked
from holdfast.simulator.log import Body, RequestLog
from holdfast.simulator.replies import REQUEST_ID, Reply, hour_of, refuse, send, usage_of
from holdfast.simulator.script import Script

NO_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
SAID_LETTERS = 200
"""Characters of a changed line in the refusal; the whole difference stands in the cassette."""

logger = logging.getLogger(__name__)


def with_models(script: Script, cassette: Cassette | None) -> Script:
    """Return the script of a server that has the models of the cassette, too."""
    if cassette is None:
        return script
    models = dict.fromkeys((*script.models, *cassette.models))
    return script.model_copy(update={"models": tuple(models)})


def recorded(cassette: Cassette, id: str, asked: Asked) -> tuple[dict[str, Any] | None, str]:
    """Return the message that is recorded, or None and what is said of a request that is not."""
    found = cassette.answer(asked.body)
    if found is None:
        difference = cassette.unheard[-1]
        logger.warning("not on the cassette: %s\n%s", asked.call or "a request", difference)
        return None, _shorten(difference)
    usage = NO_USAGE | found["usage"]
    return wire.message(id, found["model"], found["content"], found["stop_reason"], usage), ""


async def play(
    cassette: Cassette, request: web.Request, asked: Asked, log: RequestLog, record: Body
) -> web.StreamResponse:
    """Answer as it is recorded, at once; refuse what is not, for good, and say what differs."""
    message, wrong = recorded(cassette, request[REQUEST_ID].replace("req_", "msg_"), asked)
    if message is None:
        log.refused(record, 400)
        return refuse(400, "invalid_request_error", wrong, request)
    log.charged(asked.digest, usage_of(message), hour=hour_of(message))
    reply = Reply(
        message=message,
        stream=asked.body.get("stream") is True,
        fault=None,
        error_type="",
        fault_seconds=0.0,
        latency=0.0,
        tokens_per_second=0.0,
        ping_seconds=10.0,
    )
    response = await send(request, reply)
    log.delivered(asked.digest)
    return response


def _shorten(difference: str) -> str:
    """Return the first line that went and the first that came."""
    lines = difference.splitlines()
    went = next((line for line in lines if line[:1] == "-" and line[:3] != "---"), "")
    came = next((line for line in lines if line[:1] == "+" and line[:3] != "+++"), "")
    changed = " | ".join(line[:SAID_LETTERS] for line in (went, came) if line)
    return f"not on the cassette: {changed or lines[0]}"
