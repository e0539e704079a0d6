"""Schedules over HTTP: who has the scope `schedule` keeps them, and each run is held to what the
token may start.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.client.schedules import Asker, Schedules, Shown, request_of, view_of
from holdfast.doors.http.bodies import (
    SCHEDULE_ORDERS,
    AddSchedule,
    EditSchedule,
    PauseSchedule,
    read_body,
)
from holdfast.doors.http.handlers import Door, caller_of, check_goal, check_starts
from holdfast.doors.http.problems import Problem
from holdfast.doors.tokens import Caller
from holdfast.intake.fields import naming_fields
from holdfast.intake.requests import read_request
from holdfast.intake.scheduled import merged
from holdfast.intake.times import times_of


@dataclass(frozen=True)
class ScheduleDoor:
    """The handlers, over one door."""

    door: Door

    def routes(self) -> list[Route]:
        return [
            Route("/schedules", self.list, methods=["GET"]),
            Route("/schedules", self.add, methods=["POST"]),
            Route("/schedules/{name}", self.look, methods=["GET"]),
            Route("/schedules/{name}", self.edit, methods=["PATCH"]),
            Route("/schedules/{name}", self.delete, methods=["DELETE"]),
            Route("/schedules/{name}/{order}", self.order, methods=["POST"]),
        ]

    @property
    def schedules(self) -> Schedules:
        return self.door.holdfast.schedules

    async def list(self, _: Request) -> Response:
        found = [view_of(each).model_dump(mode="json") async for each in self.schedules.all()]
        return JSONResponse({"schedules": found})

    async def look(self, request: Request) -> Response:
        return _answer(await self.schedules.show(request.path_params["name"]))

    async def add(self, request: Request) -> Response:
        caller = _keeper(request)
        given = await read_body(request, AddSchedule)
        with naming_fields():
            shown = await self.schedules.add_at(
                given.name,
                given.request,
                times_of(given.typed),
                budget=given.budget,
                by=self._asker(caller),
            )
        return _answer(shown, 201)

    async def edit(self, request: Request) -> Response:
        caller, name = _keeper(request), request.path_params["name"]
        given = await read_body(request, EditSchedule)
        before = (await self.schedules.show(name)).scheduled
        named = "budget" in given.model_fields_set
        with naming_fields():
            shown = await self.schedules.edit(
                name,
                read_request(merged(before.request, given.request), "request"),
                times_of(given.typed, before.times),
                budget=given.budget if named else before.budget,
                by=self._asker(caller),
            )
        return _answer(shown)

    async def delete(self, request: Request) -> Response:
        _keeper(request)
        await self.schedules.delete(request.path_params["name"])
        return Response(status_code=204)

    async def order(self, request: Request) -> Response:
        caller, name = _keeper(request), request.path_params["name"]
        order = request.path_params["order"]
        if order not in SCHEDULE_ORDERS:
            raise Problem("not_found", f"no such order; there are: {', '.join(SCHEDULE_ORDERS)}")
        given = await read_body(request, SCHEDULE_ORDERS[order])
        if isinstance(given, PauseSchedule):
            await self.schedules.pause(name, given.why)
            return _said("it is paused; an open run of it goes on")
        await self._check_may_run(name, caller)
        if order == "resume":
            await self.schedules.resume(name)
            return _said("it starts runs again")
        paused = await self.schedules.trigger(name)
        return _said(f"it starts a run now{', and stays paused' * paused}")

    async def _check_may_run(self, name: str, caller: Caller) -> None:
        """Raise Problem where the caller could not start such a run; another may have added it."""
        scheduled = (await self.schedules.show(name)).scheduled
        check_goal(caller, await self.door.holdfast.goal_of(request_of(scheduled)))

    def _asker(self, caller: Caller) -> Asker:
        roots = self.door.connection.settings.allowed_roots
        return Asker(caller.name, roots, lambda goal: check_goal(caller, goal))


def _keeper(request: Request) -> Caller:
    """Return who asks. Raise Problem where the token keeps no schedules."""
    caller = caller_of(request)
    if not caller.scopes.schedule:
        said = "this token keeps no schedules: it lacks the scope schedule"
        raise Problem("not_allowed", said)
    check_starts(caller)
    return caller


def _said(said: str) -> Response:
    return JSONResponse({"said": said})


def _answer(shown: Shown, status: int = 200) -> Response:
    headers = {"Location": f"/schedules/{shown.scheduled.name}"} if status == 201 else {}
    return Response(
        view_of(shown).model_dump_json(), status, headers=headers, media_type="application/json"
    )
