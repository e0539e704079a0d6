"""A2A 1.0's HTTP+JSON binding: a task is a run, its id the run's.

The shapes are those of the protocol's `a2a.proto` in protobuf's JSON, written down here: the
official SDK would bring 20 MB of packages for them. What starts a run stands in the message's text,
and the other fields of a request in its metadata; an order for a task that waits, too: a gate for a
person takes no free text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast import __version__
from holdfast.client.events import check_run
from holdfast.client.listing import Listed
from holdfast.client.runs import Run
from holdfast.contracts import Report
from holdfast.contracts.events import AnyEvent, RunEnded
from holdfast.contracts.view import RunView
from holdfast.doors.http.bodies import read_body
from holdfast.doors.http.handlers import (
    ANSWER_SECONDS,
    Door,
    caller_of,
    check_decides,
    give_named,
    id_of_key,
    run_of,
)
from holdfast.doors.http.problems import Problem, problem_of
from holdfast.doors.http.streams import Sent
from holdfast.errors import HoldfastError, NoSuchRun, RunFailed, RunOver
from holdfast.intake.requests import explain, read_request

VERSION = "1.0"
MEDIA_TYPE = "application/a2a+json"
MOST_LISTED = 1_000
"""Newest tasks among which a list looks."""
MOST_OF_A_PAGE = 100
AT_ONCE = 16
"""Open tasks that lists look into at once."""
Json = dict[str, Any]
PUSH = "/tasks/{run_id}/pushNotificationConfigs"
STATES = {
    "complete": "COMPLETED",
    "complete_with_gaps": "COMPLETED",
    "budget_stopped": "COMPLETED",
    "deadline_partial": "COMPLETED",
    "declined": "REJECTED",
    "cancelled": "CANCELED",
    "failed": "FAILED",
}
ENDED = {f"TASK_STATE_{each}" for each in STATES.values()}
_REASONS = {
    404: ("NOT_FOUND", "TASK_NOT_FOUND"),
    400: ("INVALID_ARGUMENT", "INVALID_REQUEST"),
    403: ("PERMISSION_DENIED", "PERMISSION_DENIED"),
    409: ("FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    413: ("INVALID_ARGUMENT", "INVALID_REQUEST"),
    415: ("INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    422: ("INVALID_ARGUMENT", "INVALID_PARAMS"),
    429: ("RESOURCE_EXHAUSTED", "INVALID_REQUEST"),
}


class _Given(BaseModel):
    # A later 1.x may add fields, which proto's JSON lets pass.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Part(_Given):
    text: str | None = None
    data: JsonValue = None
    raw: str | None = None
    url: str | None = None


class Message(_Given):
    message_id: str = Field(alias="messageId", min_length=1, max_length=200)
    task_id: str = Field("", alias="taskId", max_length=300)
    context_id: str = Field("", alias="contextId", max_length=300)
    role: str = "ROLE_USER"
    parts: tuple[Part, ...] = Field(min_length=1, max_length=100)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class Configuration(_Given):
    return_immediately: bool = Field(False, alias="returnImmediately")
    push: JsonValue = Field(None, alias="taskPushNotificationConfig")


class Wanted(_Given):
    """What a list is asked for."""

    context_id: str = Field("", alias="contextId")
    status: str = ""
    page_size: int = Field(50, alias="pageSize", ge=1, le=MOST_OF_A_PAGE)
    page_token: int = Field(0, alias="pageToken", ge=0, le=MOST_LISTED)
    """How many tasks came before."""
    after: AwareDatetime | None = Field(None, alias="statusTimestampAfter")
    include_artifacts: bool = Field(False, alias="includeArtifacts")


class SendMessageRequest(_Given):
    message: Message
    configuration: Configuration = Configuration()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def fields(self) -> Json:
        """What metadata and data say beside the text. Raise Problem if they contradict each
        other.
        """
        found: Json = {}
        parts = [each.data for each in self.message.parts if isinstance(each.data, dict)]
        for given in (self.metadata, self.message.metadata, *parts):
            for name, value in given.items():
                # A name with an address is an extension's.
                if "://" not in name and found.setdefault(name, value) != value:
                    raise Problem("bad_input", f"{name}: given twice, and not the same")
        return found


class Tasks:
    """The handlers, over the same door."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.looking = asyncio.Semaphore(AT_ONCE)

    async def send(self, request: Request) -> Response:
        given = await read_body(request, SendMessageRequest)
        if given.configuration.push is not None:
            return no_push()
        run = await self._run_of(given, request)
        if not given.configuration.return_immediately:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await _until_asked(run)
        return _json({"task": await task_of(run)})

    async def stream(self, request: Request) -> Response:
        given = await read_body(request, SendMessageRequest)
        if given.configuration.push is not None:
            return no_push()
        run = await self._run_of(given, request)
        return await self.door.streams.respond(request, _updates(run), over=False)

    async def get(self, request: Request) -> Response:
        return _json(await task_of(run_of(self.door, request)))

    async def list_tasks(self, request: Request) -> Response:
        """Answer with a page of the tasks, those first that changed last: what is open, then what
        ended last.
        """
        try:
            wanted = Wanted.model_validate(dict(request.query_params))
        except ValidationError as error:
            raise Problem("bad_input", explain(error)) from None
        found = [
            each
            async for each in self.door.holdfast.runs(MOST_LISTED)
            if wanted.context_id in ("", each.id)
            and (wanted.after is None or _changed(each) > wanted.after)
        ]
        if wanted.status:
            found = await self._in_state(found, wanted.status)
        end = wanted.page_token + wanted.page_size
        page = found[wanted.page_token : end]
        tasks = await asyncio.gather(
            *(self._listed(each, wanted.include_artifacts) for each in page)
        )
        more = str(end) if end < len(found) else ""
        sizes = {"pageSize": wanted.page_size, "totalSize": len(found)}
        return _json({"tasks": tasks, "nextPageToken": more, **sizes})

    async def _in_state(self, runs: list[Listed], state: str) -> list[Listed]:
        """Return those in this state; what an open one waits for it says itself, as not every
        server knows that of its list.
        """
        if state in ENDED:
            return [each for each in runs if f"TASK_STATE_{_state_of(each)}" == state]
        open_ones = [each for each in runs if _state_of(each) == "WORKING"]
        tasks = await asyncio.gather(*(self._listed(each, False) for each in open_ones))
        pairs = zip(open_ones, tasks, strict=True)
        return [run for run, task in pairs if task["status"]["state"] == state]

    async def _listed(self, run: Listed, artifacts: bool) -> Json:
        state = _state_of(run)
        if state != "WORKING" and not artifacts:
            return _task(run.id, _status(state))
        async with self.looking:
            task = await task_of(self.door.run(run.id))
        return task if artifacts else {name: task[name] for name in task if name != "artifacts"}

    async def push(self, _: Request) -> Response:
        return no_push()

    async def cancel(self, request: Request) -> Response:
        run, caller = run_of(self.door, request), caller_of(request)
        check_decides(caller)
        await run.cancel(by=caller.name)
        return _json(await task_of(run))

    async def subscribe(self, request: Request) -> Response:
        run = run_of(self.door, request)
        if await check_run(self.door.connection, run.id):
            raise RunOver(f"task {run.id} is over; get it instead")
        return await self.door.streams.respond(request, _updates(run), over=False)

    async def card(self, request: Request) -> Response:
        return JSONResponse(agent_card(str(request.base_url).rstrip("/")))

    async def _run_of(self, asked: SendMessageRequest, request: Request) -> Run:
        """Return the run that a message starts, or gives an order to."""
        message, caller = asked.message, caller_of(request)
        if any(each.text is None and each.data is None for each in message.parts):
            raise Problem("bad_input", "parts: text and data are read, no raw bytes and no urls")
        text = "\n\n".join(each.text for each in message.parts if each.text)
        fields = asked.fields
        if message.task_id:
            request.path_params["run_id"] = message.task_id
            run = run_of(self.door, request)
            await self._order(run, text, fields, request)
            return run
        wanted = read_request({"goal": text, **fields}, "message")
        if not wanted.id:
            id = id_of_key(f"a2a {message.message_id}", caller)
            wanted = wanted.model_copy(update={"id": id})
        return await self.door.begin(wanted, caller)

    async def _order(self, run: Run, text: str, fields: Json, request: Request) -> None:
        """Give the order that a message for a task names in its metadata."""
        name = fields.pop("order", "")
        if text and name in ("answer", "supply"):
            fields.setdefault("text", text)
        await give_named(run, name, fields, caller_of(request))


async def task_of(run: Run) -> Json:
    """Return the Task of a run as it stands now."""
    try:
        view = await run.look(wait=False)
    except RunFailed as error:
        return _task(run.id, _status("FAILED", str(error)))
    report = await _report_of(run, view)
    return _task(run.id, _status_of(view, report), _artifacts(report), _metadata(view))


async def _report_of(run: Run, view: RunView) -> Report | None:
    over = view.phase == "closed" and await check_run(run._connection, run.id)
    if not over:
        return None
    with suppress(HoldfastError):
        return await run.report()
    return None


def _status_of(view: RunView, report: Report | None) -> Json:
    if report is not None:
        gaps = "; ".join(f"{each.title}: {each.why}" for each in report.gaps[:20])
        said = "" if report.status == "complete" else f"{report.status}. {gaps}".strip()
        return _status(STATES[report.status], said)
    if view.waiting:
        words = "\n".join(each.text or f"the {each.kind} waits" for each in view.waiting)
        return _status("INPUT_REQUIRED", words)
    return _status("SUBMITTED" if view.phase == "preparing" else "WORKING", "; ".join(view.notes))


def _status(state: str, said: str = "") -> Json:
    made: Json = {"state": f"TASK_STATE_{state}"}
    if said:
        parts = [{"text": said}]
        made["message"] = {"messageId": "status", "role": "ROLE_AGENT", "parts": parts}
    return made


def _state_of(run: Listed) -> str:
    """Return how a run in the list ended, in the protocol's words; WORKING for one that is open."""
    if run.status in STATES:
        return STATES[run.status]
    if run.status in ("dry run", "completed"):
        return "REJECTED" if run.status == "dry run" else "COMPLETED"
    return "FAILED" if run.status in ("timed_out", "terminated") else "WORKING"


def _changed(run: Listed) -> datetime:
    """Return when a run ended; now for one that is open."""
    return datetime.fromisoformat(run.started) + timedelta(seconds=run.seconds)


def _task(
    run_id: str, status: Json, artifacts: list[Json] | None = None, metadata: Json | None = None
) -> Json:
    made: Json = {"id": run_id, "contextId": run_id, "status": status}
    return made | {
        name: each for name, each in (("artifacts", artifacts), ("metadata", metadata)) if each
    }


def _artifacts(report: Report | None) -> list[Json]:
    if report is None or not report.answer:
        return []
    parts: list[Json] = [{"text": report.answer, "mediaType": "text/markdown"}]
    if report.document is not None:
        parts.append({"data": report.document, "mediaType": "application/json"})
    return [{"artifactId": "answer", "name": "The answer", "parts": parts}]


def _metadata(view: RunView) -> Json:
    spent = None if view.dollars_spent is None else str(view.dollars_spent)
    return {"phase": view.phase, "dollars": spent, "dollarsCap": str(view.dollars_cap)}


async def _until_asked(run: Run) -> None:
    """Return once the run has ended, or waits for a person."""
    async for event in run.events():
        if isinstance(event, RunEnded):
            return
        if event.kind in ("plan_waits", "call_waits", "question_asked", "budget_reached"):
            view = await run.look(wait=False)
            if view.waiting:
                return


async def _updates(run: Run) -> AsyncIterator[ServerSentEvent]:
    """Yield the task as it is now, and then each change of its status."""
    yield _sent({"task": await task_of(run)})
    async for event in run.events():
        for each in await _update(run, event):
            yield _sent(each, event.id)


async def _update(run: Run, event: AnyEvent) -> list[Json]:
    if not isinstance(event, RunEnded):
        status = _status("WORKING", event.kind)
        if event.kind in ("plan_waits", "call_waits", "question_asked", "budget_reached"):
            status = _status("INPUT_REQUIRED", getattr(event, "text", "") or event.kind)
        told = event.model_dump(mode="json")
        return [{"statusUpdate": _of(run) | {"status": status, "metadata": {"event": told}}}]
    task = await task_of(run)
    artifacts: list[Json] = task.get("artifacts", [])
    made = [
        {"artifactUpdate": _of(run) | {"artifact": each, "lastChunk": True}} for each in artifacts
    ]
    return [*made, {"statusUpdate": _of(run) | {"status": task["status"]}}]


def _of(run: Run) -> Json:
    return {"taskId": run.id, "contextId": run.id}


def _sent(value: Json, id: str | None = None) -> ServerSentEvent:
    return Sent(json.dumps(value), id=id)


def _json(value: Json) -> Response:
    return JSONResponse(value, media_type=MEDIA_TYPE)


def agent_card(server: str) -> Json:
    """Return what other agents are told of this one."""
    return {
        "name": "Holdfast",
        "description": (
            "Takes a goal, plans it, shows the price, works on it with agents under a hard cap of"
            " dollars, and survives any crash."
        ),
        "version": __version__,
        "supportedInterfaces": [
            {"url": server, "protocolBinding": "HTTP+JSON", "protocolVersion": VERSION}
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/markdown", "application/json"],
        "skills": [
            {
                "id": "run",
                "name": "Run a goal",
                "description": (
                    "The message's text is the goal; its metadata may have the other fields of a"
                    " request: playbook, inputs, dollars, approval, and so on."
                ),
                "tags": ["orchestration", "research", "code review"],
            }
        ],
    }


def routes(door: Door) -> list[Route]:
    """Return the routes of the binding."""
    tasks = Tasks(door)
    post = ["POST"]
    return [
        Route("/.well-known/agent-card.json", tasks.card),
        Route("/message:send", _answering(tasks.send), methods=post),
        Route("/message:stream", _answering(tasks.stream), methods=post),
        Route("/tasks/{run_id}:cancel", _answering(tasks.cancel), methods=post),
        Route("/tasks/{run_id}:subscribe", _answering(tasks.subscribe), methods=["GET", *post]),
        Route("/tasks/{run_id}", _answering(tasks.get)),
        Route("/tasks", _answering(tasks.list_tasks)),
        *(
            Route(path, _answering(tasks.push), methods=["GET", "DELETE", *post])
            for path in (PUSH, f"{PUSH}/{{config}}")
        ),
    ]


Handler = Callable[[Request], Awaitable[Response]]


def _answering(handler: Handler) -> Handler:
    """Return the handler with its refusals in the form that the binding wants."""

    async def answered(request: Request) -> Response:
        try:
            version = request.headers.get("a2a-version", VERSION)
            if version.partition(".")[0] != VERSION.partition(".")[0]:
                said = f"A2A-Version {version!r:.20} is not spoken here, {VERSION} is"
                return _refusal(400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED", said)
            return await handler(request)
        except (Problem, HoldfastError) as error:
            problem = problem_of(error)
            status, reason = _REASONS.get(problem.status, ("UNAVAILABLE", "INTERNAL_ERROR"))
            if isinstance(error, NoSuchRun):
                status, reason = "NOT_FOUND", "TASK_NOT_FOUND"
            elif isinstance(error, RunOver) and request.url.path.endswith(":cancel"):
                reason = "TASK_NOT_CANCELABLE"
            code = 400 if problem.status in (409, 422) else problem.status
            return _refusal(code, status, reason, problem.detail, problem.code)

    answered.__name__ = getattr(handler, "__name__", "a2a")
    return answered


def no_push() -> Response:
    said = (
        "A2A's push notifications are not sent; for signed web hooks give `notify`, a list of"
        " addresses, in the metadata of the message that starts the task"
    )
    return _refusal(400, "UNIMPLEMENTED", "PUSH_NOTIFICATION_NOT_SUPPORTED", said)


def _refusal(code: int, status: str, reason: str, message: str, kind: str = "") -> Response:
    info: Json = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": {"code": kind} if kind else {},
    }
    error = {"code": code, "status": status, "message": message, "details": [info]}
    return JSONResponse({"error": error}, code)
