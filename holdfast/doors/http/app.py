"""The application: which handler takes which path."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.doors.hooks import Hooks
from holdfast.doors.http import a2a
from holdfast.doors.http.agents import Agent
from holdfast.doors.http.handlers import Door
from holdfast.doors.http.pages import Pages, Sessions
from holdfast.doors.http.problems import Problem, problem_of
from holdfast.doors.http.schedules import ScheduleDoor
from holdfast.intake.connection import Connection


def make_app(connection: Connection, sessions: Sessions | None = None) -> Starlette:
    """Return the application without what guards it."""
    door = Door(connection)
    pages = Pages(door, sessions or Sessions())
    routes = [
        Route("/healthz", door.healthz),
        Route("/readyz", door.readyz),
        Route("/openapi.json", door.openapi),
        Route("/runs", door.list, methods=["GET"]),
        Route("/runs", door.start, methods=["POST"]),
        Route("/budget", door.budget),
        Route("/previews", door.preview, methods=["POST"]),
        Route("/ag-ui", Agent(door).run, methods=["POST"]),
        Route("/runs/{run_id}", door.look),
        Route("/runs/{run_id}/report", door.report),
        Route("/runs/{run_id}/report.{kind}", door.report),
        Route("/runs/{run_id}/events", door.events),
        Route("/login", pages.ask, methods=["GET"]),
        Route("/login", pages.login, methods=["POST"]),
        Route("/runs/{run_id}/live/", pages.show),
        Route("/runs/{run_id}/live/order", pages.take, methods=["POST"]),
        Route("/runs/{run_id}/fork", door.fork, methods=["POST"]),
        Route("/runs/{run_id}/{order}", door.order, methods=["POST"]),
        *ScheduleDoor(door).routes(),
        *a2a.routes(door),
        *Hooks.of(connection).routes(),
    ]
    app = Starlette(routes=routes)
    handlers: dict[Any, Any] = {HTTPException: _of_http, Exception: _of_any}
    # In place of Starlette's own stack, which answers unknown errors in plain text.
    app.middleware_stack = ExceptionMiddleware(app.router, handlers)
    return app


async def _of_any(_: Request, error: Exception) -> Response:
    return problem_of(error).response()


async def _of_http(_: Request, error: HTTPException) -> Response:
    code = {404: "not_found", 405: "no_such_method"}.get(error.status_code, "bad_input")
    detail = {404: "there is nothing here", 405: "this path does not take that method"}
    said = detail.get(error.status_code, error.detail)
    answer = Problem(code, said).response()
    answer.headers.update(error.headers or {})
    return answer
