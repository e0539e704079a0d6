"""What is done at each path: each handler is a client of `Holdfast` and `Run`."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.client.events import check_run
from holdfast.client.holdfast import Holdfast, as_preview
from holdfast.client.runs import Run
from holdfast.contracts import Goal
from holdfast.contracts.treasury import Caps
from holdfast.doors.http import openapi, reports
from holdfast.doors.http.bodies import ORDERS, Fork, read_body
from holdfast.doors.http.problems import Problem
from holdfast.doors.http.streams import Streams, events_of
from holdfast.doors.tokens import ALL, Caller
from holdfast.intake.connection import Connection
from holdfast.intake.requests import RunRequest, explain
from holdfast.rendering.treasury import UNCOUNTED
from holdfast.temporal.treasury import Treasurer, Unanswered
from holdfast.workers.pollers import any_alive, find_pollers

KEY_LETTERS = 255
ANSWER_SECONDS = 55.0
"""How long an answer waits for a plan, or for a task to end or to ask."""
READY_SECONDS = 1.0
MOST_LISTED = 1_000
MOST_KEPT = 50
"""Runs of which it is kept what was read: to fold a history anew is most of what a look costs."""


@dataclass
class Door:
    """The handlers, over one connection."""

    connection: Connection
    streams: Streams = field(default_factory=Streams)
    _runs: dict[str, Run] = field(default_factory=dict)
    """Those that were looked at last, the latest at the end."""

    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _looked: float = -math.inf
    _ready: bool = False
    """True if a worker took runs when the server was asked last."""

    @property
    def holdfast(self) -> Holdfast:
        return Holdfast.on(self.connection)

    def run(self, run_id: str) -> Run:
        """Return the run of this id, with what was read of it if it is one of the last."""
        run = self._runs.pop(run_id, None) or Run(self.connection, run_id)
        self._runs[run_id] = run
        if len(self._runs) > MOST_KEPT:
            del self._runs[next(iter(self._runs))]
        return run

    # ------------------------------------------------------------ starting

    async def start(self, request: Request) -> Response:
        wanted = await read_body(request, RunRequest)
        return _started(await self.begin(_keyed(wanted, request), caller_of(request)))

    async def preview(self, request: Request) -> Response:
        """Answer with plan and price, or after a while with where they will be."""
        wanted = as_preview(await read_body(request, RunRequest))
        run = await self.begin(_keyed(wanted, request, "preview "), caller_of(request), True)
        preview = None
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                preview = await run.preview()
        return Response(
            openapi.Previewed(id=run.id, preview=preview).model_dump_json(),
            200 if preview else 202,
            headers={"Location": f"/runs/{run.id}"},
            media_type="application/json",
        )

    async def begin(self, wanted: RunRequest, caller: Caller, plan_only: bool = False) -> Run:
        """Start a run for a caller. Raise Problem where the token does not allow it."""
        check_starts(caller)
        roots = self.connection.settings.allowed_roots
        goal = await self.holdfast.goal_of(wanted, below=roots)
        check_goal(caller, goal)
        goal = goal.model_copy(update={"requester": caller.name, "plan_only": plan_only})
        return await self.holdfast.start_goal(goal, wanted.id, below=roots)

    async def fork(self, request: Request) -> Response:
        run, caller = run_of(self, request), caller_of(request)
        given = await read_body(request, Fork)
        check_starts(caller)

        def check(goal: Goal) -> None:
            check_goal(caller, goal)

        made = await run.fork(
            given.subtask,
            instruction=given.instruction,
            tier=given.tier,
            role=given.role,
            dollars=given.dollars,
            id=given.id,
            by=caller.name,
            check=check,
        )
        return _started(made)

    # ------------------------------------------------------------ looking

    async def list(self, request: Request) -> Response:
        said = request.query_params.get("most", "100")
        if not (re.fullmatch("[1-9][0-9]{0,3}", said) and int(said) <= MOST_LISTED):
            raise Problem("bad_input", f"most: give a number from 1 to {MOST_LISTED}")
        return JSONResponse(
            {"runs": [asdict(each) async for each in self.holdfast.runs(int(said))]}
        )

    async def budget(self, _: Request) -> Response:
        client, queue = self.connection.client, self.connection.target.task_queue
        try:
            found = await Treasurer(lambda: client, queue, Caps()).look()
        except Unanswered as error:
            raise Problem("no_answer", f"the treasurer does not answer: {error}") from error
        if found is None:
            raise Problem("not_found", UNCOUNTED)
        return Response(found.model_dump_json(), media_type="application/json")

    async def look(self, request: Request) -> Response:
        view = await run_of(self, request).look(wait=False)
        return Response(view.model_dump_json(), media_type="application/json")

    async def report(self, request: Request) -> Response:
        run = run_of(self, request)
        return await reports.respond(self.connection, run.id, reports.kind_of(request))

    async def events(self, request: Request) -> Response:
        run = run_of(self, request)
        events = events_of(run, request)
        over = await check_run(self.connection, run.id)
        return await self.streams.respond(request, events, over=over)

    # ------------------------------------------------------------ orders

    async def order(self, request: Request) -> Response:
        name = request.path_params["order"]
        if name not in ORDERS:
            raise Problem("not_found", f"no such order; there are: {', '.join((*ORDERS, 'fork'))}")
        run = run_of(self, request)
        given = await read_body(request, ORDERS[name])
        return JSONResponse({"said": await give(run, name, given, caller_of(request))})

    # ------------------------------------------------------------ health

    async def healthz(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        # Whoever asks needs no token: the server is asked once a second, however many do.
        async with self._looking:
            if time.monotonic() - self._looked > READY_SECONDS:
                target = self.connection.target
                found = await find_pollers(self.connection.client, [target.task_queue])
                self._ready = any_alive(found[target.task_queue])
                self._looked = time.monotonic()
        if not self._ready:
            raise Problem("no_worker", "the server is reachable, and no worker polls its queue")
        return JSONResponse({"status": "ready"})

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(openapi.document(str(request.base_url).rstrip("/")))


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def run_of(door: Door, request: Request) -> Run:
    """Return the run that the path names. Raise NoSuchRun for what is no id."""
    return door.run(request.path_params["run_id"])


async def give(run: Run, name: str, given: BaseModel, caller: Caller) -> str:
    """Give an order of `ORDERS` for a caller, and return what came of it. Raise Problem where the
    token does not allow it.
    """
    check_decides(caller)
    dollars = getattr(given, "dollars", None)
    if dollars is not None:
        check_dollars(caller, dollars)
    fields = {each: getattr(given, each) for each in type(given).model_fields}
    said: str = await getattr(run, name)(**fields, by=caller.name)
    return said


async def give_named(run: Run, name: object, fields: Mapping[str, Any], caller: Caller) -> str:
    """Give the order of this name with these fields, as other protocols carry them."""
    if not isinstance(name, str) or name not in ORDERS:
        raise Problem("bad_input", f"order: say what is to be done, one of {', '.join(ORDERS)}")
    try:
        given = ORDERS[name].model_validate(fields)
    except ValidationError as error:
        raise Problem("bad_input", explain(error)) from None
    return await give(run, name, given, caller)


def check_starts(caller: Caller) -> None:
    if caller.scopes.dollars is None:
        said = "this token starts no runs: it lacks the scope start:DOLLARS"
        raise Problem("not_allowed", said)


def check_decides(caller: Caller) -> None:
    if not caller.scopes.decide:
        raise Problem("not_allowed", "this token gives no orders: it lacks the scope decide")


def check_goal(caller: Caller, goal: Goal) -> None:
    """Raise Problem unless the caller may start this. What asks no model spends nothing."""
    if goal.use_models:
        check_dollars(caller, goal.limits.dollars)
        if goal.unpriced and caller.scopes != ALL:
            raise Problem(
                "not_allowed", "without a known price no cap holds: that is for the server's owner"
            )


def check_dollars(caller: Caller, dollars: Decimal) -> None:
    """Raise Problem unless the caller may let a run spend so much."""
    most = caller.scopes.dollars
    if most is None or dollars > most:
        allowed = "starts no runs" if most is None else f"allows ${most} a run"
        raise Problem("not_allowed", f"a cap of ${dollars} is asked for, and this token {allowed}")


def id_of_key(key: str, caller: Caller) -> str:
    """Return the id of the run of an Idempotency-Key: the same for the same key and token."""
    if len(key) > KEY_LETTERS:
        raise Problem("bad_input", f"Idempotency-Key: at most {KEY_LETTERS} characters")
    seed = f"{caller.name}\0{key}".encode("utf-8", "surrogateescape")
    return f"http-{hashlib.sha256(seed).hexdigest()[:32]}"


def _keyed(wanted: RunRequest, request: Request, kind: str = "") -> RunRequest:
    """Return a request with the id that its Idempotency-Key means, if it has one."""
    key = request.headers.get("idempotency-key", "")
    if not key:
        return wanted
    if wanted.id:
        raise Problem("bad_input", "give an id or an Idempotency-Key, not both")
    return wanted.model_copy(update={"id": id_of_key(kind + key, caller_of(request))})


def _started(run: Run) -> Response:
    return JSONResponse(
        {"id": run.id, "attached": run.attached},
        200 if run.attached else 201,
        headers={"Location": f"/runs/{run.id}"},
    )
