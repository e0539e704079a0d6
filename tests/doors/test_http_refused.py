"""What the door over HTTP refuses: one clear answer with a stable code, nothing started, nothing
secret in a log.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import Client

from conftest import Runs
from doors import Caller, Door, served
from holdfast.doors.http import bodies, guard, streams
from holdfast.doors.http.problems import Problem
from holdfast.doors.http.serving import Listening
from holdfast.doors.tokens import Scopes, Tokens
from holdfast.errors import BadSettings, Refused
from holdfast.intake.connection import Connection
from holdfast.intake.requests import REQUEST_BYTES
from scripted import subtask

pytestmark = pytest.mark.anyio
GOAL = {"goal": "Compare three engines"}


@pytest.fixture
async def door(connection: Connection) -> AsyncIterator[Door]:
    async with served(connection) as made:
        yield made


async def raw(door: Door, *parts: bytes) -> tuple[int, str]:
    """Send bytes as they are; the status of the answer, and its body."""
    host, port = door.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        answer = (await reader.read(65_536)).decode()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


async def test_a_wrong_token_a_foreign_host_and_a_foreign_page_come_to_nothing(
    runs: Runs, door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = door.tokens.add("ci", Scopes(decide=True, dollars=Decimal(1)))
    wrong = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    for bearer in ("", wrong, "hf_", "x" * 300):
        answer = await door.bearing(bearer).post("/runs", GOAL)
        assert (answer.status_code, answer.json()["code"]) == (401, "no_token")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
    named = door.bearing(secret)
    for host in ("evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:1@evil.example"):
        answer = await named.post("/runs", GOAL, Host=host)
        assert (answer.status_code, answer.json()["code"]) == (421, "wrong_host")
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        answer = await named.post("/runs", GOAL, **headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    assert (await named.get("/runs?most=1", Origin=door.address)).status_code == 200
    said = capsys.readouterr()
    assert "request" in said.out + said.err
    for each in (secret, wrong, door.own):
        assert each[3:] not in said.out + said.err
    assert await count_started(runs) == 0


WRONG_PLAN = json.dumps(
    {
        "goal": "a",
        "plan": {"goal": "a", "subtasks": [{**subtask("t1", tier="haiku"), "depend_on": ["t2"]}]},
    }
).encode()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "not_json"),
        (b"\xff", 400, "not_json"),
        (b"[" * 10_000 + b"]" * 10_000, 400, "not_json"),
        (b'{"goal": "a", "limits": ' + b'{"a":' * 90 + b"1" + b"}" * 91, 400, "not_json"),
        (b'{"goal": "a", "dollars": NaN}', 400, "not_json"),
        (b'{"goal": "a", "dollars": 1' + b"0" * 400 + b"}", 400, "not_json"),
        (b'{"goal": "a", "goal": "b"}', 400, "not_json"),
        (b'{"goal": "a\\u0000"}', 400, "not_json"),
        (b"[]", 422, "bad_input"),
        (b'"goal"', 422, "bad_input"),
        (b"", 422, "bad_input"),
        (b'{"goal": "a", "dollars": "NaN"}', 422, "bad_input"),
        (b'{"goal": "a", "dollars": "Infinity"}', 422, "bad_input"),
        (b'{"goal": "a", "dollars": -1}', 422, "bad_input"),
        (b'{"goal": "a", "dolars": 1}', 422, "bad_input"),
        (b'{"goal": "a", "inputs": {"a": "/etc/passwd"}}', 422, "bad_input"),
        (b'{"goal": "a", "inputs": {"a": "../../../etc/passwd"}}', 422, "bad_input"),
        (b'{"goal": "a", "inputs": {"a": "/there/is/nothing"}}', 422, "bad_input"),
        (b'{"goal": "a", "inputs": {"a": {"text": "b", "path": "/etc"}}}', 422, "bad_input"),
        (b'{"goal": "a", "playbook": "../x"}', 422, "bad_input"),
        (b'{"goal": "a", "id": "../x"}', 422, "bad_input"),
        (WRONG_PLAN, 422, "bad_input"),
    ],
)
async def test_a_body_that_is_no_request_starts_nothing(
    body: bytes, status: int, code: str, runs: Runs, door: Door
) -> None:
    caller = door.caller()
    sent = await caller.client.post(
        "/runs", content=body, headers={"Content-Type": "application/json"}
    )
    assert (sent.status_code, sent.json()["code"]) == (status, code), sent.text
    assert "Traceback" not in sent.text
    if body == WRONG_PLAN:
        assert "subtasks[0].depend_on: there is no such field" in sent.json()["detail"]
    if b"etc/passwd" in body or b"nothing" in body:
        assert "is below no allowed root" in sent.json()["detail"]


async def test_nothing_of_all_that_was_refused_was_started(runs: Runs, door: Door) -> None:
    caller = door.caller()
    form = await caller.client.post("/runs", data={"goal": "a"})
    assert (form.status_code, form.json()["code"]) == (415, "not_json_type")
    both = await caller.post("/runs", {**GOAL, "id": "a"}, Idempotency_Key="k")
    assert both.json()["code"] == "bad_input"
    long = await caller.post("/runs", GOAL, Idempotency_Key="k" * 300)
    assert long.json()["code"] == "bad_input"
    assert await count_started(runs) == 0


async def count_started(runs: Runs) -> int:
    found = await runs.client.count_workflows(f"TaskQueue = '{runs.queue}'")
    return found.count


async def test_a_gigabyte_is_refused_before_it_comes(door: Door) -> None:
    secret = door.tokens.add("ci", Scopes(dollars=Decimal(1)))
    head = (
        b"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + f"Authorization: Bearer {secret}\r\n".encode()
    )
    status, body = await raw(door, head + b"Content-Length: 1000000000\r\n\r\n{")
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    count = REQUEST_BYTES // 0x100000 + 1
    status, body = await raw(door, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * count)
    assert (status, json.loads(body)["code"]) == (413, "too_large")


async def test_a_body_that_never_comes_is_not_waited_for(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.1)
    secret = door.tokens.add("ci", Scopes(dollars=Decimal(1)))
    head = f"POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
    status, body = await raw(door, f"{head}Content-Length: 10\r\n\r\n{{".encode())
    assert (status, json.loads(body)["code"]) == (408, "too_slow")


async def test_what_is_no_run_and_no_order_is_said_to_be_none(runs: Runs, door: Door) -> None:
    caller = door.caller()
    for run_id in ("none", "..%2f..%2fetc", "a%00b", "%20", "x" * 300, "a'%20OR%201=1"):
        for path in ("", "/report", "/events"):
            answer = await caller.get(f"/runs/{run_id}{path}")
            found = (answer.status_code, answer.json()["code"])
            assert found in ((404, "no_such_run"), (404, "not_found")), (run_id, path)
        answer = await caller.post(f"/runs/{run_id}/approve")
        assert answer.status_code == 404
    assert (await caller.post("/runs/none/approve")).json()["code"] == "no_such_run"
    assert (await caller.post("/runs/none/cancel")).json()["code"] == "no_such_run"
    assert (await caller.post("/runs/none/explode")).json()["code"] == "not_found"
    for body in ({"cal": 1}, {"call": "1"}, {"call": 1.5}, {"call": -1}):
        answer = await caller.post("/runs/none/approve", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input"), body
    for body in ({"dollars": "NaN"}, {"dollars": 0}, {"tokens": -1}):
        answer = await caller.post("/runs/none/raise_cap", body)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input"), body
    assert (await caller.post("/runs/none/edit", {"plan": {}})).status_code == 422
    which = await caller.post("/runs/none/edit", {"plan": {"subtasks": [{"id": 5}]}})
    assert "plan.subtasks.0.id: " in which.json()["detail"], which.text
    for path in ("/runs?most=0", "/runs?most=x", "/runs?most=1e9", f"/runs?most={'0' * 5_000}1"):
        assert (await caller.get(path)).json()["code"] == "bad_input"
    assert (await caller.client.delete("/runs/none")).json()["code"] == "no_such_method"
    assert (await caller.get("/none")).json()["code"] == "not_found"
    assert (await caller.get("/runs/none/report.pdf")).json()["code"] == "not_found"
    picture = await caller.get("/runs/none/report", Accept="image/png")
    assert picture.json()["code"] == "not_acceptable"
    for after in ("x", "-1", "1@zz", "99999999999999"):
        answer = await caller.get("/runs/none/events", Last_Event_ID=after)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")
    for after in ("x", "0", "57", "~", "1~-1", "1@zz~1"):
        answer = await caller.get("/runs/none/events?format=ag-ui", Last_Event_ID=after)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input"), after
    assert (await caller.get("/runs/none/events?format=x")).json()["code"] == "bad_input"


async def test_a_server_that_does_not_answer_is_said_within_seconds_in_one_line(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    soon = timedelta(seconds=0.2)
    monkeypatch.setattr("holdfast.client.reading.ANSWER_TIME", soon)
    monkeypatch.setattr("holdfast.client.listing.PAGE_TIME", soon)
    monkeypatch.setattr("holdfast.workers.pollers.RPC_SECONDS", 0.2)
    going = asyncio.Event()
    going.set()
    wires: list[asyncio.StreamWriter] = []

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            await going.wait()
            target.write(part)

    async def carry(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection(*connection.target.address.split(":"))
        wires.extend((back, there))
        await asyncio.gather(copy(near, there), copy(far, back))

    between = await asyncio.start_server(carry, "127.0.0.1", 0)
    client = await Client.connect(f"127.0.0.1:{between.sockets[0].getsockname()[1]}")
    async with served(replace(connection, client=client)) as door:
        caller = door.caller()
        assert (await caller.get("/runs?most=1")).status_code == 200
        going.clear()
        for path in ("/readyz", "/runs", "/runs/one/events"):
            answer = await caller.get(path)
            assert answer.headers["content-type"] == "application/problem+json", path
            assert (answer.status_code, answer.json()["code"]) == (503, "unreachable"), path
        monkeypatch.setattr(Client, "list_workflows", None)
        mistake = await caller.get("/runs")
        assert (mistake.status_code, mistake.json()["code"]) == (500, "failed")
    between.close()
    for wire in wires:
        wire.transport.abort()
    going.set()
    await between.wait_closed()
    said = capsys.readouterr()
    assert (said.out + said.err).count("Traceback") == 1, "of our own mistake alone"


async def test_a_stream_counts_from_when_it_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_STREAMS", 1)
    request: Any = SimpleNamespace(state=SimpleNamespace(still=lambda: True))
    told = streams.Streams()

    async def events() -> AsyncIterator[Any]:
        yield None

    await told.respond(request, events(), over=False)
    with pytest.raises(Problem, match="1 streams are open"):
        await told.respond(request, events(), over=False)


async def test_who_asks_too_often_is_told_when_to_come_back(connection: Connection) -> None:
    async with served(connection, rate=0.5) as door:
        caller, other = door.caller("a"), door.caller("b")
        answers = [await caller.get("/none") for _ in range(7)]
        assert [each.status_code for each in answers] == [404] * 5 + [429] * 2
        assert answers[-1].json()["code"] == "too_many"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
        assert (await other.get("/none")).status_code == 404, "the rate is each token's own"
        guesses = [await door.bearing("hf_x").get("/runs") for _ in range(7)]
        assert [each.status_code for each in guesses] == [401] * 5 + [429] * 2
        assert (await other.get("/none")).status_code == 404, "guessing shuts nobody out"


def test_a_door_that_others_can_reach_needs_tokens_tls_and_a_name(
    connection: Connection, tmp_path: Path
) -> None:
    tokens = Tokens(connection.settings)
    near = Listening()
    near.check(tokens)
    replace(near, no_token=True).check(tokens)
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    far = replace(near, host="0.0.0.0")
    encrypted = replace(far, tls_cert=cert, tls_key=key)

    def refused(listening: Listening) -> str:
        with pytest.raises(Refused) as caught:
            listening.check(tokens)
        return str(caught.value)

    assert "there is no token" in refused(far)
    assert "there is no token" in refused(replace(near, behind_proxy=True))
    tokens.add("ci", Scopes())
    assert "in the clear" in refused(far)
    assert "--name" in refused(encrypted)
    assert "--name" in refused(replace(near, behind_proxy=True))
    assert "belong together" in refused(replace(near, tls_cert=tmp_path / "c.pem"))
    for each in (far, replace(near, behind_proxy=True)):
        assert "for this machine alone" in refused(replace(each, no_token=True))
    named = replace(encrypted, names=("runs.example.com",))
    named.check(tokens)
    assert named.hosts == {"runs.example.com"}
    replace(near, behind_proxy=True, names=("runs.example.com",)).check(tokens)


def test_a_token_is_kept_as_its_hash_for_its_owner_alone(connection: Connection) -> None:
    tokens = Tokens(connection.settings)
    secret = tokens.add("ci", Scopes(decide=True))
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert secret.removeprefix("hf_") not in tokens.path.read_text()
    assert len(secret) > 43
    found = tokens.caller_of(secret)
    assert found is not None and found.name == "ci" and found.scopes == Scopes(decide=True)
    with pytest.raises(Refused, match="there is a token"):
        tokens.add("ci", Scopes())
    with pytest.raises(Refused, match="cannot be a token's name"):
        tokens.add("../ci", Scopes())
    with pytest.raises(Refused, match="there are: ci"):
        tokens.revoke("other")
    Tokens(connection.settings).revoke("ci")
    assert tokens.caller_of(secret) is None, "by another process, too"
    tokens.path.write_text("{")
    with pytest.raises(BadSettings, match="damaged"):
        tokens.caller_of(secret)


async def test_a_damaged_file_of_tokens_lets_nobody_in(connection: Connection, door: Door) -> None:
    caller: Caller = door.caller()
    door.tokens.path.write_text("{")
    answer = await caller.get("/runs")
    assert (answer.status_code, answer.json()["code"]) == (500, "bad_settings")
    assert guard.PUBLIC == ("/healthz", "/readyz", "/openapi.json", "/.well-known/agent-card.json")
    assert (await caller.get("/healthz")).status_code == 200
