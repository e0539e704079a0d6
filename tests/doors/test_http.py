"""The door over HTTP: what it does for those who may, and what it refuses."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
from ag_ui.core.events import Event
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from starlette.routing import Route

from conftest import Runs, seen
from doors import Caller, Door, Json, served
from holdfast.cli.commands.care import budget
from holdfast.contracts import Report
from holdfast.contracts.treasury import Caps
from holdfast.contracts.view import RunView
from holdfast.doors.http import agents, handlers
from holdfast.doors.http.app import make_app
from holdfast.doors.http.bodies import ORDERS, SCHEDULE_ORDERS
from holdfast.doors.http.reports import KINDS
from holdfast.doors.tokens import Scopes
from holdfast.intake.connection import Connection
from holdfast.temporal.treasury import Treasurer, Unanswered
from scripted import plans, subtask, works
from steered import report_of, script

pytestmark = pytest.mark.anyio
OURS = ("/runs", "/budget", "/previews", "/schedules", "/ag-ui", "/hooks", "/healthz", "/readyz")
THREAD = b"ui\0ag-ui t1"
"""What the id of the run of a thread is made of: who asks, and the thread."""
GOAL = {"goal": "Compare three engines", "approval": "always", "dollars": 2}


@pytest.fixture
async def door(connection: Connection) -> AsyncIterator[Door]:
    async with served(connection) as made:
        yield made


async def started(caller: Caller, **more: object) -> str:
    answer = await caller.post("/runs", {**GOAL, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_run_is_started_looked_at_approved_and_read(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller("deploy")
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            run_id = await started(caller)
        await seen(connection.handle(run_id), lambda view: view.waiting)
        early = await caller.get(f"/runs/{run_id}/report")
        assert (early.status_code, early.json()["code"]) == (409, "run_open")
        view = RunView.model_validate_json((await caller.get(f"/runs/{run_id}")).text)
        assert view.phase == "approval" and view.preview
        said = await caller.post(f"/runs/{run_id}/approve", {})
        assert said.status_code == 200 and "approved" in said.json()["said"]
        await report_of(connection, run_id)
    report = Report.model_validate_json((await caller.get(f"/runs/{run_id}/report")).text)
    assert report.status == "complete"
    assert [(each.command, each.order.by) for each in report.orders] == [("approve", "deploy")]
    listed = (await caller.get("/runs?most=1000")).json()["runs"]
    assert run_id in [each["id"] for each in listed]
    page = await caller.get(f"/runs/{run_id}/report.html")
    assert "<!doctype html>" in page.text.lower()
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = await caller.get(f"/runs/{run_id}/report", Accept="text/markdown")
    assert text.headers["content-type"].startswith("text/markdown") and "Both" in text.text
    none = await caller.get(f"/runs/{run_id}/report.sarif")
    assert (none.status_code, none.json()["code"]) == (406, "not_acceptable")
    over = await caller.post(f"/runs/{run_id}/pause")
    assert (over.status_code, over.json()["code"]) == (409, "run_over")
    over = await caller.post(f"/runs/{run_id}/cancel")
    assert (over.status_code, over.json()["code"]) == (409, "run_over")


async def test_a_preview_has_plan_and_price_and_starts_nothing_and_its_plan_is_not_paid_again(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    model = script()
    async with runs.worker(model):
        told = await caller.post("/previews", GOAL, Idempotency_Key="p 1")
        assert told.status_code == 200, told.text
        again = await caller.post("/previews", GOAL, Idempotency_Key="p 1")
        assert again.json() == told.json()
        preview, priced = told.json()["preview"], told.json()["id"]
        assert [each["kind"] for each in preview["rows"]].count("subtask") == 2
        assert preview["expected"]
        report = await report_of(connection, priced)
        assert (report.status, report.findings, report.model_calls) == ("declined", (), 1)
        done = await started(caller, plan=preview["plan"], approval="auto")
        assert (await report_of(connection, done)).status == "complete"
        named = await caller.post("/previews", {**GOAL, "id": "mine"})
        assert (named.status_code, named.json()["code"]) == (422, "bad_input")
        reads = await door.caller("reads", Scopes()).post("/previews", GOAL)
        assert reads.status_code == 403
    assert model.heard.count("plan") == 1


async def test_what_is_spent_is_told_as_the_command_tells_it(
    runs: Runs,
    connection: Connection,
    door: Door,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caller = door.caller("reads", Scopes())
    none = await caller.get("/budget")
    assert (none.status_code, none.json()["code"]) == (404, "not_found")
    assert "nothing is counted: set HOLDFAST_MOST_DOLLARS_DAY" in none.json()["detail"]
    async with runs.worker(script(), treasurer=True):
        await Treasurer(lambda: runs.client, runs.queue, Caps(day=Decimal(5))).tell()
        told = await caller.get("/budget")
        capsys.readouterr()
        await budget.run(connection, {}, "", as_json=True)
    assert told.json() == json.loads(capsys.readouterr().out)
    assert told.json()["caps"]["day"] == "5"

    async def silent(_: Treasurer) -> None:
        raise Unanswered("no worker answers for it")

    monkeypatch.setattr(Treasurer, "look", silent)
    away = await caller.get("/budget")
    assert (away.status_code, away.json()["code"]) == (504, "no_answer")
    assert away.json()["detail"] == "the treasurer does not answer: no worker answers for it"


def asked_of_agent(text: str, thread: str = "t1", run: str = "r1", **more: object) -> Json:
    messages = [{"id": "m1", "role": "user", "content": text}]
    return {"threadId": thread, "runId": run, "messages": messages, **more}


async def test_an_agui_agent_starts_a_run_asks_is_resumed_and_finishes(
    runs: Runs, connection: Connection, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "FIND_SECONDS", 0.5)
    caller = door.caller("ui")
    props = {"holdfast": {"approval": "always", "dollars": 2}}
    context = [{"description": "where we are", "value": "Berlin"}]
    first = asked_of_agent("Compare three engines", forwardedProps=props, context=context)
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            told = await caller.streamed("/ag-ui", first)
            assert [told[0]["type"], told[-1]["type"]] == ["RUN_STARTED", "RUN_FINISHED"]
            assert told[-1]["outcome"]["type"] == "interrupt"
            (interrupt,) = told[-1]["outcome"]["interrupts"]
            again = await caller.streamed("/ag-ui", first)
            assert again == told, "the same input is the same run"
            entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": "yes"}
            words = asked_of_agent("", run="r2", resume=[entry])
            refused = await caller.post("/ag-ui", words)
            assert (refused.status_code, refused.json()["code"]) == (422, "bad_input")
        entry["payload"] = {"order": "approve"}
        for other in ("1", "999999"):
            unknown = asked_of_agent("", resume=[{**entry, "interruptId": other}])
            refused = await caller.post("/ag-ui", unknown)
            assert refused.status_code == 422 and f"no interrupt '{other}'" in refused.text
        rest = await caller.streamed("/ag-ui", words)
    assert {(each["threadId"], each["runId"]) for each in (rest[0], rest[-1])} == {("t1", "r2")}
    assert rest[0]["type"] == "RUN_STARTED" and rest[-1]["outcome"] == {"type": "success"}
    kinds = [each["type"] for each in rest]
    assert kinds.count("STEP_STARTED") == kinds.count("STEP_FINISHED") == 2
    for each in (*told, *rest):
        TypeAdapter[object](Event).validate_python(each)
    report = await report_of(connection, f"http-{hashlib.sha256(THREAD).hexdigest()[:32]}")
    assert [(each.command, each.order.by) for each in report.orders] == [("approve", "ui")]
    assert [each.name for each in report.inputs] == ["context"]
    (said,) = (each["delta"] for each in rest if each["type"] == "TEXT_MESSAGE_CONTENT")
    assert said == report.answer
    second = await caller.post("/ag-ui", asked_of_agent("And now?", run="r3", context=context))
    assert second.status_code == 409 and "another goal needs another thread" in second.text


@pytest.mark.long
async def test_an_agui_plan_that_is_not_wanted_is_rejected(runs: Runs, door: Door) -> None:
    caller = door.caller("ui")
    props = {"holdfast": {"approval": "always", "dollars": 2}}
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            told = await caller.streamed(
                "/ag-ui", asked_of_agent("Compare", "t2", forwardedProps=props)
            )
        (interrupt,) = told[-1]["outcome"]["interrupts"]
        entry = {"interruptId": interrupt["id"], "status": "cancelled"}
        rest = await caller.streamed("/ag-ui", asked_of_agent("", "t2", "r2", resume=[entry]))
    assert rest[-1]["outcome"] == {"type": "cancelled"}


async def test_what_is_no_input_of_an_agent_is_refused(door: Door) -> None:
    caller = door.caller("ui")
    picture = [{"type": "image", "source": {"type": "url", "value": "https://x.example/a.png"}}]
    for body in (
        {},
        asked_of_agent("a") | {"messages": []},
        asked_of_agent("a", forwardedProps={"holdfast": {"colour": "red"}}),
        asked_of_agent("a", forwardedProps={"holdfast": []}),
        asked_of_agent("a", forwardedProps={"holdfast": {"id": "mine"}}),
        asked_of_agent("a") | {"messages": [{"id": "1", "role": "user", "content": picture}]},
        asked_of_agent("a", resume=[{"interruptId": "none", "status": "resolved"}]),
    ):
        answer = await caller.post("/ag-ui", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input"), answer.text
    reads = door.caller("reads", Scopes())
    assert (await reads.post("/ag-ui", asked_of_agent("a"))).status_code == 403


def test_a_door_keeps_what_was_read_of_the_runs_that_were_looked_at_last(
    connection: Connection,
) -> None:
    door = handlers.Door(connection)
    first = door.run("run-0")
    others = [door.run(f"run-{number}") for number in range(1, handlers.MOST_KEPT)]
    assert door.run("run-0") is first
    door.run("one-more")
    assert door.run("run-0") is first and door.run("run-1") is not others[0]


async def test_equal_posts_start_one_run_and_another_body_under_the_key_is_refused(
    runs: Runs, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = door.caller()
    async with runs.worker(script()):
        first = await caller.post("/runs", GOAL, Idempotency_Key="k 1")
        with monkeypatch.context() as idle:
            # For a run that is there nothing is prepared, and no role is parsed anew.
            idle.setattr("holdfast.intake.launch.prepare_start", None)
            idle.setattr("holdfast.activities.catalogue.files.from_yaml", None)
            again = await caller.post("/runs", GOAL, Idempotency_Key="k 1")
        other = await caller.post("/runs", {**GOAL, "goal": "Else"}, Idempotency_Key="k 1")
        gate = await caller.post("/runs", {**GOAL, "approval": "auto"}, Idempotency_Key="k 1")
        foreign = await door.caller("else").post("/runs", GOAL, Idempotency_Key="k 1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"] and again.json()["attached"]
    for each in (other, gate):
        assert (each.status_code, each.json()["code"]) == (409, "id_taken")
    assert foreign.status_code == 201 and foreign.json()["id"] != first.json()["id"]


@pytest.mark.long
async def test_a_stream_that_is_cut_at_each_event_loses_and_doubles_none(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    async with runs.worker(script()):
        run_id = await started(caller, approval="auto")
        await report_of(connection, run_id)
    for query in ("", "?format=ag-ui"):
        path = f"/runs/{run_id}/events{query}"
        whole = await caller.events(path)
        ids = [each["id"] for each in whole]
        assert len(ids) > 5 and len({*ids}) == len(ids)
        pieces, last = [], ""
        for _ in range(100):
            got = await caller.events(path, last, most=1)
            if not got:
                break
            pieces += got
            last = pieces[-1]["id"]
        assert pieces == whole
    # The last of them is AG-UI's, as its official types read it.
    for each in whole:
        TypeAdapter[object](Event).validate_json(each["data"])
    kinds = [json.loads(each["data"])["type"] for each in whole]
    assert kinds[0] == "RUN_STARTED" and kinds[-1] == "RUN_FINISHED"
    assert kinds.count("STEP_STARTED") == kinds.count("STEP_FINISHED") == 2


async def test_a_token_may_do_no_more_than_its_scopes(
    runs: Runs, connection: Connection, door: Door
) -> None:
    reads = door.caller("reads", Scopes())
    decides = door.caller("decides", Scopes(decide=True))
    starts = door.caller("starts", Scopes(dollars=Decimal("2")))
    for caller in (reads, decides):
        answer = await caller.post("/runs", GOAL)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    dear = await starts.post("/runs", {**GOAL, "dollars": 2.01})
    assert (dear.status_code, dear.json()["code"]) == (403, "not_allowed")
    unpriced = await starts.post("/runs", {**GOAL, "unpriced": True})
    assert unpriced.json()["code"] == "not_allowed"
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            run_id = await started(starts)
        await seen(connection.handle(run_id), lambda view: view.waiting)
        for caller in (reads, starts):
            answer = await caller.post(f"/runs/{run_id}/approve")
            assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        raised = await decides.post(f"/runs/{run_id}/raise_cap", {"dollars": 5})
        assert raised.json()["code"] == "not_allowed"
        door.tokens.revoke("reads")
        assert (await reads.get(f"/runs/{run_id}")).status_code == 401
        assert (await decides.post(f"/runs/{run_id}/reject", {"why": "dear"})).status_code == 200
        report = await report_of(connection, run_id)
    assert report.status == "declined" and report.orders[0].order.by == "decides"


@pytest.mark.long
async def test_a_question_interrupts_the_run_of_an_interface_and_its_answer_goes_on(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            run_id = await started(caller)
        path = f"/runs/{run_id}/events?format=ag-ui"
        first = await caller.events(path, until="RUN_FINISHED")
        told = [json.loads(each["data"]) for each in first]
        assert [each["type"] for each in told][:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
        assert told[-1]["type"] == "RUN_FINISHED" and told[-1]["outcome"]["type"] == "interrupt"
        assert told[-1]["outcome"]["interrupts"][0]["reason"] == "plan_waits"
        # Of an execution that this run never had nothing was seen.
        assert await caller.events(path, "3@ffffffff~1", until="RUN_FINISHED") == first
        await caller.post(f"/runs/{run_id}/approve")
        rest = await caller.events(path, first[-1]["id"])
    kinds = [json.loads(each["data"])["type"] for each in rest]
    assert kinds[0] == "RUN_STARTED" and kinds[-1] == "RUN_FINISHED"


async def test_the_document_describes_every_path_and_the_server_says_how_it_is(
    runs: Runs, connection: Connection, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    anybody = door.bearing("")
    document = (await anybody.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    names = {*document["components"]["schemas"]}
    used = {*re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))}
    assert used <= names
    served = {route.path for route in make_app(connection).routes if isinstance(route, Route)}
    ours = {each for each in served if each.startswith(OURS)}
    spread = {f"/runs/{{run_id}}/{order}" for order in ORDERS}
    spread |= {f"/runs/{{run_id}}/report.{kind}" for kind in KINDS}
    spread |= {f"/schedules/{{name}}/{order}" for order in SCHEDULE_ORDERS}
    open_ended = {"/runs/{run_id}/{order}", "/runs/{run_id}/report.{kind}"}
    open_ended |= {"/schedules/{name}/{order}"}
    open_ended |= {each for each in ours if "/live/" in each}
    assert {*document["paths"]} == (ours - open_ended) | spread
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    assert (await anybody.get("/healthz")).json() == {"status": "ok"}
    nobody = await anybody.get("/readyz")
    assert (nobody.status_code, nobody.json()["code"]) == (503, "no_worker")
    async with runs.worker(script()):
        async with asyncio.timeout(60):
            ready = nobody
            while ready.status_code != 200:
                ready = await anybody.get("/readyz")
                await asyncio.sleep(0.05)
    monkeypatch.setattr(handlers, "READY_SECONDS", 60)
    monkeypatch.setattr(handlers, "find_pollers", None)
    assert (await anybody.get("/readyz")).status_code == 200, "it was just looked at"


async def test_a_stream_ends_when_its_token_is_revoked(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller, other = door.caller("follows"), door.caller("decides")
    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            run_id = await started(other)
        await seen(connection.handle(run_id), lambda view: view.waiting)
        following = asyncio.create_task(caller.events(f"/runs/{run_id}/events"))
        async with asyncio.timeout(30):
            waits = False
            while not waits:
                waits = "plan_waits" in str(caller.told)
                await asyncio.sleep(0.02)
        door.tokens.revoke("follows")
        await other.post(f"/runs/{run_id}/approve")
        told = await following
    assert [each["event"] for each in told] == ["run_started", "plan_made", "plan_waits"]


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_two_hundred_equal_posts_start_one_run(
    runs: Runs, connection: Connection, door: Door
) -> None:
    caller = door.caller()
    turn = asyncio.Semaphore(20)

    async def post() -> str:
        async with turn:
            answer = await caller.post("/runs", GOAL, Idempotency_Key="the same")
            assert answer.status_code in (200, 201), answer.text
            return str(answer.json()["id"])

    async with runs.worker(script()):
        with runs.env.with_time_skipping_disabled():
            ids = await asyncio.gather(*(post() for _ in range(200)))
        assert len({*ids}) == 1
        await seen(connection.handle(ids[0]), lambda view: view.waiting)
        await caller.post(f"/runs/{ids[0]}/reject")
        await report_of(connection, ids[0])
        found = 0
        async with asyncio.timeout(30):
            # A server lists a run a little after it has begun.
            while not found:
                query = f"TaskQueue = '{runs.queue}'"
                found = (await runs.client.count_workflows(query)).count
                await asyncio.sleep(0.1)
    assert found == 1


@pytest.mark.long
@pytest.mark.timeout(900)
# AG-UI's events are made of the history from its beginning, each time.
@pytest.mark.parametrize("query", ["", pytest.param("?format=ag-ui", marks=pytest.mark.long)])
async def test_a_stream_of_a_run_at_work_is_cut_again_and_again_and_loses_and_doubles_none(
    query: str, runs: Runs, connection: Connection, door: Door
) -> None:
    caller, names = door.caller(), [f"t{number}" for number in range(1, 13)]
    model = script(
        plan=[plans(*(subtask(each) for each in names))],
        **{each: [works(f"found {each}")] for each in names},
    )
    async with runs.worker(model):
        run_id = await started(caller, approval="auto", limits={"subtasks": 12})
        path, pieces, last, cuts = f"/runs/{run_id}/events{query}", [], "", 0
        while got := await caller.events(path, last, most=1):
            pieces += got
            last, cuts = got[-1]["id"], cuts + 2
            # And once before anything has come.
            async with caller.client.stream("GET", path, headers={"Last-Event-ID": last}):
                pass
        report = await report_of(connection, run_id)
    assert report.status == "complete" and len(report.findings) == 12
    assert cuts >= 50
    assert pieces == await caller.events(path)
