"""The scripted server: which fate a request meets, and how its answer leaves."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from holdfast.replaying.cassette import Cassette
from holdfast.simulator.asked import Asked, asked_by
from holdfast.simulator.batch_routes import BatchRoutes
from holdfast.simulator.batch_script import Step
from holdfast.simulator.batches import BatchStore
from holdfast.simulator.counting import prefix_tokens
from holdfast.simulator.limiter import Limiter
from holdfast.simulator.log import Body, RequestLog
from holdfast.simulator.player import Player
from holdfast.simulator.playing import play, with_models
from holdfast.simulator.replies import (
    LIMITS,
    REQUEST_ID,
    STATUS_TYPES,
    Reply,
    headers_of,
    hour_of,
    refuse,
    send,
    usage_of,
)
from holdfast.simulator.script import Rule, Script

LARGEST_BODY = 32 * 2**20
MODEL_LISTING_TOKENS = {"max_input_tokens": 1_000_000, "max_tokens": 128_000}
MAY_HAVE_GENERATED = (408, 502, 504, 520, 522, 524)
"""Statuses of a gateway that lost the answer: this server charges them, which is the worst case."""


class Simulator:
    """`async with Simulator(script) as simulator:` serves until the block ends, on 127.0.0.1
    or the `host` that it is given.

    `url` is the value for ANTHROPIC_BASE_URL; `log` says what was asked; `batches` releases those
    that are held; `script` may be replaced while it runs; `requests` is a file that gets the body
    of each request for a message, a line of JSON each. With a `cassette` it answers from that, and
    refuses what is not recorded.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        memory: Path | None = None,
        requests: Path | None = None,
        cassette: Cassette | None = None,
    ) -> None:
        self.script = with_models(script or Script(), cassette)
        self.cassette = cassette
        self.url = ""
        self._host, self._port = host, port
        self._requests = requests
        self._runner: web.AppRunner | None = None
        self.log = RequestLog(memory)
        self._start_afresh()

    def reset(self, script: Script | None = None) -> None:
        """Forget everything that was asked: log, counts of rules, caches, the rate's past. Go on
        with this script, if there is one.
        """
        self.batches.close()
        if script is not None:
            self.script = with_models(script, self.cassette)
        if self.cassette is not None:
            self.cassette.rewind()
        self.log.forget()
        self.log = RequestLog(self.log.memory)
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._limiters: defaultdict[str, Limiter] = defaultdict(Limiter)
        self._answering: Counter[str] = Counter()
        self._player = Player()
        self._ids = itertools.count(1)
        self.batches = BatchStore(
            lambda: self.script, self.log, self._player, self._keep, self.cassette
        )
        self._batch_routes = BatchRoutes(lambda: self.script, self.log, self.batches)

    async def __aenter__(self) -> Self:
        self.log.know(self.script.models)
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._marked])
        app.add_routes(
            [
                web.post("/v1/messages", self._messages),
                web.post("/v1/messages/count_tokens", self._count_tokens),
                web.get("/v1/models", self._models),
                web.post("/v1/messages/batches", self._batch_step("create")),
                web.get("/v1/messages/batches", self._batch_step("list")),
                web.get("/v1/messages/batches/{id}", self._batch_step("retrieve")),
                web.delete("/v1/messages/batches/{id}", self._batch_step("delete")),
                web.post("/v1/messages/batches/{id}/cancel", self._batch_step("cancel")),
                web.get("/v1/messages/batches/{id}/results", self._batch_step("results")),
                web.post("/simulator/release", self._release),
                web.get("/simulator/log", self._log),
                web.post("/simulator/reset", self._reset),
            ]
        )
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=0.1,
            # Longer than any client keeps an idle connection, so that none meets a closing one.
            keepalive_timeout=75,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=4096)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.batches.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _marked(self, request: web.Request, handler: Any) -> web.StreamResponse:
        request[REQUEST_ID] = f"req_scripted{next(self._ids):08d}"
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPRequestEntityTooLarge:
            response = refuse(413, "request_too_large", "Request exceeds the maximum size", request)
        except web.HTTPException as error:
            response = refuse(error.status, "not_found_error", error.reason, request)
        return response

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        asked, refusal = asked_by(request, raw, self.script, ours=self.cassette is None)
        if asked is None:
            self.log.statuses[refusal.status] += 1
            return refusal
        self._keep([asked.body])
        record = self.log.received(asked.digest, asked.call, str(asked.body["model"]), asked.mark)
        self.log.began()
        if request.transport is not None:
            self.log.connections.add(request.transport.get_extra_info("peername"))
        try:
            return await self._meet(request, asked, record)
        finally:
            self.log.ended()

    def _keep(self, bodies: list[dict[str, Any]]) -> None:
        if self._requests is not None:
            with self._requests.open("a") as kept:
                kept.writelines(json.dumps(body) + "\n" for body in bodies)

    async def _meet(self, request: web.Request, asked: Asked, record: Body) -> web.StreamResponse:
        """The fate of a well-formed request: the first rule that applies, the rate, an answer."""
        chance = random.Random(f"{self.script.seed} {asked.digest} {record.count}")
        rule = self._player.rule(self.script, asked, chance)
        if self.cassette is not None and not (rule and rule.fails):
            return await play(self.cassette, request, asked, self.log, record)
        if rule and rule.status and rule.status not in MAY_HAVE_GENERATED:
            self.log.refused(record, rule.status)
            return _scripted_status(rule, request)
        limiter = self._limiters[asked.body["model"]]
        wait = limiter.admit(self.script.rate, self.script.burst, time.monotonic())
        if self.script.limits and self.script.rate:
            request[LIMITS] = limiter.said(self.script.rate, self.script.burst, datetime.now(UTC))
        if wait:
            self.log.refused(record, 429)
            text = "This request would exceed your rate limit."
            headers = {"retry-after": str(wait)}
            return refuse(429, "rate_limit_error", text, request, headers=headers)
        model, most = str(asked.body["model"]), self.script.in_flight
        if most and self._answering[model] >= most:
            self.log.refused(record, self.script.refusal)
            return _beyond(self.script.refusal, request)
        self._answering[model] += 1
        began = time.monotonic()
        try:
            reply = self._reply(request, asked, rule, chance)
            usage, hour = usage_of(reply.message), hour_of(reply.message)
            self.log.charged(asked.digest, usage, hour=hour)
            if rule and rule.status:
                return _scripted_status(rule, request)
            response = await send(request, reply)
        finally:
            self._answering[model] -= 1
            record.seconds += time.monotonic() - began
        if reply.arrives:
            self.log.delivered(asked.digest)
        return response

    def _reply(
        self, request: web.Request, asked: Asked, rule: Rule | None, chance: random.Random
    ) -> Reply:
        latency = chance.uniform(*self.script.latency_of(asked.call, rule))
        id = request[REQUEST_ID].replace("req_", "msg_")
        message = self._player.message(id, self.script, asked, rule, latency=latency)
        return Reply(
            message=message,
            stream=asked.body.get("stream") is True,
            fault=rule.fault if rule else None,
            error_type=(rule.type if rule else "") or "overloaded_error",
            fault_seconds=rule.seconds if rule else 0.0,
            latency=latency,
            tokens_per_second=self.script.tokens_per_second,
            ping_seconds=self.script.ping_seconds,
            cut=message["stop_reason"] == "max_tokens"
            or (rule is not None and rule.answer == "malformed"),
        )

    async def _count_tokens(self, request: web.Request) -> web.Response:
        asked, refusal = asked_by(request, await request.read(), self.script, counting=True)
        if asked is None:
            return refusal
        counted = prefix_tokens(asked.body, asked.schema, asked.blocks)[-1]
        return web.json_response({"input_tokens": counted}, headers=headers_of(request))

    def _batch_step(self, step: Step) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            return await self._batch_routes.serve(step, request)

        return serve

    async def _release(self, request: web.Request) -> web.Response:
        self.batches.release(request.query.get("id", ""))
        return web.json_response({}, headers=headers_of(request))

    async def _models(self, request: web.Request) -> web.Response:
        yes, batch = {"supported": True}, {"supported": self.script.batches.offered}
        effort = {**yes, **dict.fromkeys(("low", "medium", "high", "max"), yes)}
        data = [
            {
                "id": model,
                "type": "model",
                "display_name": f"{model} (scripted)",
                "created_at": "2026-10-14T00:00:00Z",
                "lifecycle": "active",
                **MODEL_LISTING_TOKENS,
                "capabilities": {"batch": batch, "structured_outputs": yes, "effort": effort},
            }
            for model in self.script.models
        ]
        listing = {"data": data, "has_more": False, "first_id": data[0]["id"] if data else None}
        last = data[-1]["id"] if data else None
        return web.json_response({**listing, "last_id": last}, headers=headers_of(request))

    async def _log(self, request: web.Request) -> web.Response:
        unheard = self.cassette.unheard if self.cassette else []
        said = self.log.report() | {"unheard": unheard}
        return web.json_response(said, headers=headers_of(request))

    async def _reset(self, request: web.Request) -> web.Response:
        """With a body: that script from here on."""
        given = await request.read()
        self.reset(Script.model_validate_json(given) if given else None)
        return web.json_response({}, headers=headers_of(request))


def _beyond(status: int, request: web.Request) -> web.Response:
    """The refusal of a call for which there is no room."""
    text = "Too many requests are being answered at once."
    return refuse(status, STATUS_TYPES[status], text, request, headers={"retry-after": "1"})


def _scripted_status(rule: Rule, request: web.Request) -> web.Response:
    return refuse(
        rule.status,
        rule.type or STATUS_TYPES.get(rule.status, "api_error"),
        rule.message or "scripted failure",
        request,
        error_code=rule.error_code,
        headers=rule.headers,
    )
