"""Schedules over HTTP: what a token may keep, and that each run is held to it, also later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs, seen
from doors import Caller, Door, Json, served
from holdfast import Holdfast
from holdfast.client.schedules import ScheduleView
from holdfast.contracts import Report
from holdfast.deployment.settings import Settings
from holdfast.doors.tokens import Scopes
from holdfast.intake.connection import Connection
from holdfast.intake.requests import RunRequest
from scripted import ScriptedModel, plans, subtask

pytestmark = pytest.mark.anyio
KEEPS = Scopes(schedule=True, dollars=Decimal(2))
REQUEST = {"goal": "Compare", "approval": "always", "dollars": 2}


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "rates.md").write_text("2.0, then 2.5")
    return folder


@pytest.fixture
async def door(connection: Connection, allowed: Path) -> AsyncIterator[Door]:
    settings = Settings(state_dir=connection.settings.state_dir, allowed_roots=(allowed,))
    async with served(Connection(settings, connection.target, connection.client)) as made:
        yield made
    ours = Holdfast.on(connection).schedules
    async for each in ours.all():
        await ours.delete(each.scheduled.name)


def monthly(name: str, **more: Any) -> Json:
    return {"name": name, "request": REQUEST, "every": "300d", **more}


async def last_of(caller: Caller, name: str) -> Json:
    """What became of its only time, once something did."""
    async with asyncio.timeout(60):
        while True:
            (*gone,) = (await caller.get(f"/schedules/{name}")).json()["last"]
            if gone and (gone[0]["status"] or gone[0]["run"]):
                found: Json = gone[0]
                return found
            await asyncio.sleep(0.05)


async def test_a_schedule_is_added_looked_at_changed_paused_and_deleted(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller, name = door.caller("ci", KEEPS), f"h-{runs.queue}"
    path = f"/schedules/{name}"
    made = await caller.post("/schedules", monthly(name, zone="Europe/Berlin", budget=None))
    assert (made.status_code, made.headers["location"]) == (201, path), made.text
    view = ScheduleView.model_validate_json(made.text)
    assert (view.requester, len(view.next), view.paused) == ("ci", 5, False)
    again = await caller.post("/schedules", monthly(name))
    assert (again.status_code, again.json()["code"]) == (409, "schedule_taken")
    change = {"jitter": "5m", "request": {"limits": {"subtasks": 3}, "dollars": 1}}
    edited = (await caller.client.patch(path, json=change)).json()
    assert edited["times"]["zone"] == "Europe/Berlin" and edited["times"]["jitter_seconds"] == 300
    assert edited["request"]["limits"] == {"subtasks": 3} and edited["request"]["dollars"] == "1"
    cap = {"request": {"limits": {"dollars": 2}, "inputs": {"a": "text:b"}}}
    edited = (await caller.client.patch(path, json=cap)).json()["request"]
    assert edited["limits"] == {"subtasks": 3, "dollars": 2} and "dollars" not in edited
    for wrong in ({"inputs": "a"}, {"limits": None}, {"nope": 1}):
        refused = await caller.client.patch(path, json={"request": wrong})
        assert refused.status_code == 422 and refused.json()["detail"].startswith("request: ")
    said = await caller.post(f"{path}/pause", {"why": "holidays"})
    assert said.json() == {"said": "it is paused; an open run of it goes on"}
    async with runs.worker(ScriptedModel({"plan": [plans(subtask("t1"))]})):
        said = await caller.post(f"{path}/trigger")
        assert said.json() == {"said": "it starts a run now, and stays paused"}
        begun = await last_of(caller, name)
        handle = runs.client.get_workflow_handle(begun["run"], result_type=Report)
        runs.handles.append(handle)
        await seen(handle, lambda view: view.phase == "approval")
        open_run = await caller.post(f"{path}/trigger")
        assert open_run.status_code == 422 and "the run before is open" in open_run.text
    (listed,) = (await caller.get("/schedules")).json()["schedules"]
    assert (listed["paused"], listed["note"]) == (True, "holidays")
    assert (await caller.post(f"{path}/resume")).json() == {"said": "it starts runs again"}
    assert (await caller.post(f"{path}/skip")).status_code == 404
    assert (await caller.client.delete(path)).status_code == 204
    gone = await caller.get(path)
    assert (gone.status_code, gone.json()["code"]) == (404, "no_such_schedule")


async def test_a_token_keeps_schedules_by_its_scope_and_no_run_of_them_costs_more_than_it_may(
    runs: Runs, connection: Connection, door: Door
) -> None:
    starts = door.caller("starts", Scopes(decide=True, dollars=Decimal(9)))
    keeps, name = door.caller("keeps", KEEPS), f"d-{runs.queue}"
    mine = Holdfast.on(connection).schedules
    dear = RunRequest.model_validate({**REQUEST, "dollars": 5})
    await mine.add(name, dear, every="300d")
    path, dearer = f"/schedules/{name}", {"request": {"dollars": 3}}
    for refused in (
        await starts.post("/schedules", monthly("other")),
        await starts.client.delete(path),
        await starts.post(f"{path}/pause"),
        await keeps.post("/schedules", monthly("other", request={**REQUEST, "dollars": 3})),
        await keeps.client.patch(path, json=dearer),
        await keeps.post(f"{path}/trigger"),
        await keeps.post(f"{path}/resume"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed"), refused.text
    shown = await mine.show(name)
    assert shown.scheduled.requester != "keeps" and not shown.paused and not shown.last
    assert [each["name"] for each in (await starts.get("/schedules")).json()["schedules"]] == [name]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"every": ""}, "give one of cron, every and once"),
        ({"every": "1s"}, "every '1s': write a number"),
        ({"zone": "Europe/Berln"}, "zone 'Europe/Berln': there is no such time zone (did you"),
        ({"request": {**REQUEST, "id": "mine"}}, "leave out the id"),
        (
            {"request": {**REQUEST, "inputs": {"a": "/etc/hosts"}}},
            "inputs.a: '/etc/hosts' is below no",
        ),
        ({"budget": 1}, "budget 1: one run may cost $2.00"),
        ({"overlap": "both"}, "overlap: input should be 'skip'"),
        ({"name": "a b"}, "a name has up to 60 letters"),
        ({"nope": 1}, "nope: there is no such field"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_the_names_of_the_fields(
    wrong: Json, why: str, door: Door
) -> None:
    refused = await door.caller("ci", KEEPS).post("/schedules", monthly("x") | wrong)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_input")
    assert why in refused.json()["detail"] and "--" not in refused.text


@pytest.mark.long
async def test_a_path_that_leads_elsewhere_when_its_time_comes_is_read_by_no_run(
    runs: Runs, door: Door, allowed: Path, tmp_path: Path
) -> None:
    caller, name = door.caller("ci", KEEPS), f"p-{runs.queue}"
    given = allowed / "rates.md"
    request = {**REQUEST, "inputs": {"rates": str(given)}}
    secret = tmp_path / "secret.md"
    secret.write_text("words")
    # The worker itself may read both places.
    async with runs.worker(ScriptedModel({"plan": [plans(subtask("t1"))]})):
        made = await caller.post("/schedules", monthly(name, request=request))
        assert made.status_code == 201, made.text
        given.unlink()
        given.symlink_to(secret)
        await caller.post(f"/schedules/{name}/trigger")
        outcome = await last_of(caller, name)
    assert (outcome["status"], outcome["run"]) == ("refused", "")
    assert "secret" not in outcome["why"]
