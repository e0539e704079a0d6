"""A2A 1.0 over the door: a task is a run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from conftest import Runs, seen
from doors import Caller, Door, served
from holdfast.doors.tokens import Scopes
from holdfast.intake.connection import Connection
from steered import report_of, script

pytestmark = pytest.mark.anyio


@pytest.fixture
async def door(connection: Connection) -> AsyncIterator[Door]:
    async with served(connection) as made:
        yield made


def message(text: str, id: str = "m1", **more: object) -> dict[str, object]:
    parts: list[object] = [{"text": text} if text else {"data": {}}]
    return {"message": {"messageId": id, "role": "ROLE_USER", "parts": parts, **more}}


async def sent(caller: Caller, body: dict[str, object]) -> dict[str, object]:
    answer = await caller.post("/message:send", body, A2A_Version="1.0")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/a2a+json"
    task: dict[str, object] = answer.json()["task"]
    return task


async def test_a_task_asks_for_approval_is_approved_and_gives_its_answer(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller("agent")
    # Message and request have metadata, and both count.
    asked = message("Compare three engines", metadata={"dollars": 1})
    asked["metadata"] = {"approval": "always"}
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            task = await sent(caller, asked)
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"  # type: ignore[index]
        run_id = str(task["id"])
        again = await sent(caller, {**asked, "configuration": {"returnImmediately": True}})
        assert again["id"] == run_id, "the same messageId is the same task"
        words = await caller.post("/message:send", message("yes, go", "m2", taskId=run_id))
        assert words.status_code == 400, "a gate for a person takes no free text"
        assert words.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"
        approve = message("", "m3", taskId=run_id, metadata={"order": "approve"})
        done = await sent(caller, approve)
        report = await report_of(connection, run_id)
    assert done["status"] == {"state": "TASK_STATE_COMPLETED"}
    assert done["artifacts"][0]["parts"][0]["text"] == report.answer  # type: ignore[index]
    assert report.orders[0].order.by == "agent"
    got = (await caller.get(f"/tasks/{run_id}")).json()
    assert got == done
    late = await caller.post(f"/tasks/{run_id}:cancel")
    assert late.status_code == 400
    assert late.json()["error"]["details"][0]["reason"] == "TASK_NOT_CANCELABLE"
    over = await caller.post(f"/tasks/{run_id}:subscribe")
    assert over.json()["error"]["details"][0]["reason"] == "UNSUPPORTED_OPERATION"


async def test_a_stream_begins_with_the_task_and_ends_with_its_answer(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    async with runs.worker(script()):
        body = json.dumps(message("Compare three engines", "s1", metadata={"dollars": 1})).encode()
        kind = {"Content-Type": "application/json"}
        async with caller.client.stream(
            "POST", "/message:stream", content=body, headers=kind
        ) as answer:
            lines = [line async for line in answer.aiter_lines() if line.startswith("data: ")]
    told = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [*told[0]] == ["task"]
    assert {key for each in told[1:-2] for key in each} == {"statusUpdate"}
    assert told[-2]["artifactUpdate"]["artifact"]["artifactId"] == "answer"
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_task_is_cancelled_by_who_may_decide(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    gated = {"approval": "always", "dollars": 1}
    asked = message("Compare three engines", "c1", metadata=gated)
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            run_id = str((await sent(caller, asked))["id"])
        await seen(connection.handle(run_id), lambda view: view.waiting)
        reads = await door.caller("reads", Scopes()).post(f"/tasks/{run_id}:cancel")
        assert reads.status_code == 403
        assert (await caller.post(f"/tasks/{run_id}:cancel")).status_code == 200
        with pytest.raises(Exception, match="Workflow execution failed"):
            await connection.handle(run_id).result()
    task = (await caller.get(f"/tasks/{run_id}")).json()
    assert task["status"]["state"] == "TASK_STATE_CANCELED"


async def test_what_is_no_message_is_refused_in_the_words_of_the_protocol(door: Door) -> None:
    caller = door.caller()
    for body, reason in (
        ({}, "INVALID_PARAMS"),
        (message("a", metadata={"dollars": "NaN"}), "INVALID_PARAMS"),
        (message("a", metadata={"colour": "red"}), "INVALID_PARAMS"),
        ({**message("a", metadata={"dollars": 2}), "metadata": {"dollars": 1}}, "INVALID_PARAMS"),
        (message("a", parts=[{"url": "file:///etc/passwd"}]), "INVALID_PARAMS"),
        (message("a", taskId="none", metadata={"order": "approve"}), "TASK_NOT_FOUND"),
    ):
        answer = await caller.post("/message:send", body)
        assert answer.json()["error"]["details"][0]["reason"] == reason, answer.text
        assert answer.json()["error"]["details"][0]["domain"] == "a2a-protocol.org"
    old = await caller.post("/message:send", message("a"), A2A_Version="0.3")
    assert old.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert (await caller.get("/tasks/none")).status_code == 404


async def test_the_card_names_the_binding_and_how_to_be_let_in(door: Door) -> None:
    card = (await door.bearing("").get("/.well-known/agent-card.json")).json()
    assert card["supportedInterfaces"] == [
        {"url": door.address, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    ]
    assert card["securitySchemes"]["token"]["httpAuthSecurityScheme"] == {"scheme": "Bearer"}


async def test_tasks_are_listed_by_state_and_page(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller("agent")
    gated = {"approval": "always", "dollars": 1}
    # The server has the runs of other tests as well.
    since = f"statusTimestampAfter={datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    with runs.env.with_time_skipping_disabled():
        async with runs.worker(script()):
            task = await sent(caller, message("Compare three engines", "l1", metadata=gated))
        async with runs.worker(script()):
            quick = message("Compare four engines", "l2", metadata={"dollars": 1})
            done = await sent(caller, quick)
    open_id = str(task["id"])
    listed = await caller.get(f"/tasks?pageSize=100&{since}")
    assert listed.headers["content-type"] == "application/a2a+json"
    states = {each["id"]: each["status"]["state"] for each in listed.json()["tasks"]}
    assert states[open_id] == "TASK_STATE_INPUT_REQUIRED"
    assert states[str(done["id"])] == "TASK_STATE_COMPLETED"
    assert listed.json()["totalSize"] == len(states) and listed.json()["nextPageToken"] == ""
    ended = (
        await caller.get(f"/tasks?status=TASK_STATE_COMPLETED&includeArtifacts=true&{since}")
    ).json()
    assert done in ended["tasks"] and open_id not in {each["id"] for each in ended["tasks"]}
    asks = (await caller.get(f"/tasks?status=TASK_STATE_INPUT_REQUIRED&{since}")).json()["tasks"]
    assert open_id in {each["id"] for each in asks}
    assert all(each["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" for each in asks)
    one = (await caller.get(f"/tasks?contextId={open_id}")).json()
    assert [each["id"] for each in one["tasks"]] == [open_id]
    pages, token = [], ""
    for _ in range(len(states)):
        page = (await caller.get(f"/tasks?pageSize=1&pageToken={token or 0}&{since}")).json()
        pages += [each["id"] for each in page["tasks"]]
        token = page["nextPageToken"]
    assert sorted(pages) == sorted(states) and token == ""
    future = (await caller.get("/tasks?statusTimestampAfter=2100-01-01T00:00:00Z")).json()
    assert future["tasks"] == []
    for query in ("pageSize=0", "pageSize=101", "pageToken=x", "statusTimestampAfter=soon"):
        wrong = await caller.get(f"/tasks?{query}")
        assert wrong.status_code == 400, query
        assert wrong.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"


async def test_push_notifications_are_refused_as_the_card_says(door: Door) -> None:
    caller = door.caller()
    card = (await caller.get("/.well-known/agent-card.json")).json()
    assert card["capabilities"]["pushNotifications"] is False
    config = {"url": "https://client.example/hook"}
    place = "/tasks/some/pushNotificationConfigs"
    asked = message("a") | {"configuration": {"taskPushNotificationConfig": config}}
    for answer in (
        await caller.post(place, config),
        await caller.get(place),
        await caller.get(f"{place}/1"),
        await caller.client.delete(f"{place}/1"),
        await caller.post("/message:send", asked),
        await caller.post("/message:stream", asked),
    ):
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["details"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"
        assert "`notify`" in error["message"]
