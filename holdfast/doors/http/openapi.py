"""The OpenAPI document of this server, made of the shapes that it reads and answers with."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal

from ag_ui.core.types import RunAgentInput
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from holdfast import __version__
from holdfast.client.listing import Listed
from holdfast.client.schedules import ScheduleView
from holdfast.contracts import Report
from holdfast.contracts.events import AnyEvent
from holdfast.contracts.treasury import Statement
from holdfast.contracts.view import Preview, RunView
from holdfast.doors.http import reports
from holdfast.doors.http.bodies import ORDERS, SCHEDULE_ORDERS, AddSchedule, EditSchedule, Fork
from holdfast.doors.http.problems import MEDIA_TYPE, OF_THE_DOOR, STATUS
from holdfast.intake.requests import RunRequest

Json = dict[str, Any]
_REF = "#/components/schemas/{model}"


class Started(BaseModel):
    """A run that was started, or was there already."""

    id: str
    attached: bool
    """True if a run of this id and request was there."""


class Previewed(BaseModel):
    """A plan and its price, and the run that made them."""

    id: str
    preview: Preview | None
    """None: it is still being planned; look at the run."""


class Said(BaseModel):
    """What came of an order, in a sentence."""

    said: str


class Runs(BaseModel):
    """The runs that people started, newest first."""

    runs: list[Listed]


class AllSchedules(BaseModel):
    """The schedules, by name."""

    schedules: list[ScheduleView]


class ProblemDetails(BaseModel):
    """Why something was not done (RFC 9457)."""

    title: str
    status: int
    code: str
    detail: str


def document(server: str) -> Json:
    """Return the document. `server`: the address by which it was asked for."""
    return {**_document(), "servers": [{"url": server}]}


@functools.cache
def _document() -> Json:
    codes = ", ".join(f"`{each}`" for each in (*STATUS, *OF_THE_DOOR))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "description": f"Start, follow, steer and read runs. Codes of problems: {codes}.",
        },
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _schemas() -> Json:
    read: list[type[BaseModel]] = [
        RunRequest,
        RunAgentInput,
        Fork,
        AddSchedule,
        EditSchedule,
        *dict.fromkeys((*ORDERS.values(), *SCHEDULE_ORDERS.values())),
    ]
    told: list[type[BaseModel]] = [
        *(RunView, Report, Previewed, Started, Said, Runs, Statement),
        *(ScheduleView, AllSchedules, ProblemDetails),
    ]
    modes: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        *((each, "validation") for each in read),
        *((each, "serialization") for each in told),
    ]
    _, made = models_json_schema(modes, by_alias=True, ref_template=_REF)
    event = TypeAdapter(AnyEvent).json_schema(mode="serialization", ref_template=_REF)
    named = {**event.pop("$defs"), **made["$defs"]}
    return {**named, "Event": event}


def _paths() -> Json:
    events = [
        _parameter("Last-Event-ID", "header", "The id of an event, to go on behind it."),
        _parameter("after", "query", "The same, for those who cannot set the header."),
        _parameter("format", "query", "`ag-ui` for the events of AG-UI."),
    ]
    most = _parameter("most", "query", "How many; 100 unless given.", kind="integer")
    key = _parameter("Idempotency-Key", "header", "The same key and body again is the same run.")
    report: Json = {kind: {"content": {media: {}}} for kind, media in reports.KINDS.items()}
    report["json"] = _content("Report")
    forms = {media: {} for media in reports.KINDS.values()} | _content("Report")["content"]
    return {
        "/runs": {
            "get": _operation("Runs", "Runs", parameters=[most]),
            "post": _operation("Start a run", "Started", "RunRequest", parameters=[key], code=201),
        },
        "/budget": {"get": _operation("What may be spent and is, by all workers", "Statement")},
        "/previews": {
            "post": _operation(
                "Plan and price, nothing of it run; planning is paid",
                "Previewed",
                "RunRequest",
                parameters=[key],
            )
        },
        "/ag-ui": {
            "post": _operation(
                "Start or resume a run, and stream it, as AG-UI 1.0 does",
                body="RunAgentInput",
                content={"text/event-stream": {}},
            )
        },
        "/runs/{run_id}": {"get": _operation("The run as it stands now", "RunView", of_run=True)},
        "/runs/{run_id}/report": {
            "get": _operation("The report, by what is accepted", content=forms, of_run=True)
        },
        **{
            f"/runs/{{run_id}}/report.{kind}": {
                "get": _operation(
                    f"The report as {reports.KINDS[kind]}", content=each["content"], of_run=True
                )
            }
            for kind, each in report.items()
        },
        "/runs/{run_id}/events": {
            "get": _operation(
                "What happens in the run, each event with its place in the history",
                content={"text/event-stream": {"schema": {"$ref": _REF.format(model="Event")}}},
                parameters=events,
                of_run=True,
            )
        },
        **{
            f"/runs/{{run_id}}/{name}": {
                "post": _operation(_line(shape), "Said", shape.__name__, of_run=True)
            }
            for name, shape in ORDERS.items()
        },
        "/runs/{run_id}/fork": {
            "post": _operation(_line(Fork), "Started", "Fork", of_run=True, code=201)
        },
        **_schedule_paths(),
        "/hooks/{hook}": {
            "post": _operation(
                "Start the run that the project's file names, by a signed web hook",
                content={},
                parameters=[_parameter("hook", "path", "Its name there.", required=True)],
                public=True,
                code=201,
            )
        },
        "/healthz": {"get": _operation("The server answers", content={}, public=True)},
        "/readyz": {"get": _operation("A worker takes runs", content={}, public=True)},
    }


def _schedule_paths() -> Json:
    name = [_parameter("name", "path", "Its name.", required=True)]

    def of_one(summary: str, answer: str = "ScheduleView", body: str = "", **more: Any) -> Json:
        return _operation(summary, answer, body, parameters=name, **more)

    return {
        "/schedules": {
            "get": _operation("Schedules, with what came of them", "AllSchedules"),
            "post": _operation(_line(AddSchedule), "ScheduleView", "AddSchedule", code=201),
        },
        "/schedules/{name}": {
            "get": of_one("The schedule as it stands"),
            "patch": of_one(_line(EditSchedule), body="EditSchedule"),
            "delete": of_one("Delete it; its runs stay", content={}, code=204),
        },
        **{
            f"/schedules/{{name}}/{order}": {
                "post": of_one(f"{order.capitalize()} the schedule", "Said", shape.__name__)
            }
            for order, shape in SCHEDULE_ORDERS.items()
        },
    }


def _operation(
    summary: str,
    answer: str = "",
    body: str = "",
    *,
    content: Mapping[str, Any] | None = None,
    parameters: list[Json] | None = None,
    of_run: bool = False,
    public: bool = False,
    code: int = 200,
) -> Json:
    given = [_parameter("run_id", "path", "The run's id.", required=True)] if of_run else []
    told = _content(answer)["content"] if content is None else content
    made: Json = {
        "summary": summary,
        "parameters": [*given, *(parameters or [])],
        "responses": {
            str(code): {"description": "done", **({"content": told} if told else {})},
            "default": {
                "description": "refused, or failed",
                "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="ProblemDetails")}}},
            },
        },
    }
    if body:
        made["requestBody"] = _content(body)
    if public:
        made["security"] = []
    return made


def _content(model: str) -> Json:
    return {"content": {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}}


def _parameter(
    name: str, place: str, about: str, *, kind: str = "string", required: bool = False
) -> Json:
    return {
        "name": name,
        "in": place,
        "description": about,
        "required": required,
        "schema": {"type": kind},
    }


def _line(shape: type[BaseModel]) -> str:
    return " ".join((shape.__doc__ or "").split())
