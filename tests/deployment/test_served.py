"""Who serves a queue, and what is said when nobody does: the dead are told from the living within
seconds, and the words name what heals it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
from pydantic import SecretStr
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from test_embedded import killed

from boards import view
from holdfast.cli.checks.endpoint import check_models, check_worker
from holdfast.cli.commands.care import doctor
from holdfast.client import connecting as connection
from holdfast.client.reading import STARTING, Reader
from holdfast.contracts import Goal, Report
from holdfast.contracts.view import RunView
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import Endpoint, StateDir, down, ensure_up, supervision, up
from holdfast.embedded.processes import Record
from holdfast.intake.connection import Connection
from holdfast.serving.throttle_notes import with_throttles
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage import store_at
from holdfast.temporal.connection import Target, connect
from holdfast.text import for_markdown
from holdfast.workers import served
from holdfast.workers.pollers import (
    AGAIN_SECONDS,
    POLL_SECONDS,
    SILENT_SECONDS,
    Beat,
    Poller,
    Seen,
    find_pollers,
    list_pollers,
    look,
)
from holdfast.workers.served import VARIABLES, describe_missing, find_unserved
from plain_endpoint import PlainEndpoint, serving
from scripted import ready, subtask

NOW = 1_000_000.0
WORKER = """
import asyncio, sys
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker
from holdfast.telemetry.logs import runtime

@activity.defn
async def work() -> None: ...

async def main() -> None:
    client = await Client.connect(sys.argv[1], runtime=runtime())
    queues = sys.argv[2:]
    workers = [Worker(client, task_queue=each, activities=[work]) for each in queues]
    await asyncio.gather(*(each.run() for each in workers))

asyncio.run(main())
"""
"""A worker that says it lives as ours do, of any queues."""


def beat(ago: float, **more: object) -> Beat:
    facts: dict[str, object] = {"instance": "i", "queue": "q", "identity": "7@vm", "every": 2.0}
    return Beat(**{**facts, "at": NOW - ago, **more})  # type: ignore[arg-type]


def seen(*beats: Beat, at: float = NOW, **polls: float) -> Seen:
    return Seen(at, beats, {"q": {name: NOW - ago for name, ago in polls.items()}})


# ---------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("found", "alive"),
    [
        (seen(beat(1.0)), True),
        (seen(beat(SILENT_SECONDS + 1)), False),
        # It speaks once a minute.
        (seen(beat(100.0, every=60.0)), True),
        (seen(beat(200.0, every=60.0)), False),
        # It was killed before its second beat.
        (seen(beat(SILENT_SECONDS + 1, every=0.0)), False),
        # And before the first one for this queue: what it said of another stands for both.
        (seen(beat(SILENT_SECONDS + 1, queue="q-tools"), **{"7@vm": 8.0}), False),
        (seen(beat(1.0, queue="q-tools"), **{"7@vm": 8.0}), True),
        # Its clock is ahead: one look says nothing.
        (seen(beat(-3600.0)), False),
        # It polled, and was killed before it said anything.
        (seen(old=1.0), True),
        (seen(old=SILENT_SECONDS + 1), False),
        # The server keeps no record of what workers say: nothing but its last poll is known.
        (replace(seen(old=POLL_SECONDS - 1), beats=None), True),
        (replace(seen(old=POLL_SECONDS + 1), beats=None), False),
    ],
)
def test_a_worker_lives_that_was_heard_of_lately(found: Seen, alive: bool) -> None:
    (poller,) = list_pollers("q", found)
    assert poller.alive is alive


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_a_beat_that_moved_is_alive_and_one_that_stood_still_is_dead_whatever_the_clocks_show(
    skew: float,
) -> None:
    before = seen(beat(skew + 7.0))
    later = NOW + AGAIN_SECONDS
    moved = list_pollers("q", seen(beat(skew + 5.0), at=later), before)
    stood = list_pollers("q", seen(beat(skew + 7.0), at=later), before)
    assert [each.alive for each in (*moved, *stood)] == [True, False]


def test_a_process_that_came_back_is_one_worker_and_lives() -> None:
    found = seen(beat(50.0, instance="before"), beat(1.0, instance="now"))
    assert list_pollers("q", found) == (Poller("7@vm", True, 1.0),)


def test_who_takes_no_more_work_serves_nobody_even_where_its_poll_is_on_record() -> None:
    assert list_pollers("q", seen(beat(1.0, asking=False), **{"7@vm": 1.0})) == ()


def test_a_worker_of_another_queue_serves_this_one_not() -> None:
    assert list_pollers("q-tools", seen(beat(1.0))) == ()


def test_who_only_carries_runs_on_serves_no_calls() -> None:
    bare = seen(beat(1.0, calls=False), **{"7@vm": 1.0})
    assert [each.alive for each in list_pollers("q", bare)] == [True]
    assert list_pollers("q", bare, calls=True) == ()
    asks = replace(seen(), call_polls={"q": {"8@vm": NOW - 1.0}})
    assert [each.alive for each in list_pollers("q", asks, calls=True)] == [True]


# ---------------------------------------------------------------- the words


KNOWN = Endpoint(
    port=1, ui_port=2, http_port=3, metrics_port=4, task_queue="q", salt="s", store_url="file:///s"
)


def test_the_words_name_the_variables_and_the_command_that_heals() -> None:
    ours = describe_missing("q", embedded=True)
    assert "nobody asks the models: the worker has no model endpoint" in ours
    assert VARIABLES in ours and ours.endswith("run: starter.py up")
    own = describe_missing("q", embedded=False)
    assert "task queue 'q'" in own and VARIABLES in own
    assert own.endswith("start one: worker.py")
    assert describe_missing("q", embedded=True, models=True) == ""


OLD = Record(pid=7, started="1", program=("worker.py",))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"worker_environment": "x", "draining": (OLD,)}, "your environment changed"),
        ({"worker_version": "2", "draining": (OLD,)}, "the code of this program changed"),
        ({"worker_environment": "x"}, ""),
        ({}, ""),
    ],
    ids=["environment", "code", "died", "same"],
)
@pytest.mark.anyio
async def test_while_a_worker_takes_the_place_of_another_nobody_is_called_missing(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], said: str
) -> None:
    before = KNOWN.model_copy(update={"worker_pid": 7})
    now = before.model_copy(update={**changed, "worker_pid": 7 if not changed else 8})
    why = connection.new_worker(before, now)
    assert why == (f"a new worker starts: {said}" if said else "")
    made = Connection(Settings(), now.target, Mock())
    made.new_worker = why
    reader = Reader(made, "r")
    missing = describe_missing("q", embedded=True, any_worker=False)
    seen = AsyncMock(return_value=(missing,))
    monkeypatch.setattr(served, "find_unserved", seen)
    await reader.find_held_up()
    assert reader.held_up == (why or missing,)
    seen.return_value = ()
    await reader.find_held_up()
    seen.return_value = (missing,)
    await reader.find_held_up()
    assert reader.held_up == (missing,), "it was there, and is not any more"


@pytest.mark.anyio
async def test_a_worker_that_lives_and_has_not_come_up_is_said_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = Reader(Connection(Settings(state_dir=tmp_path), KNOWN.target, Mock()), "r")
    missing = describe_missing("q", embedded=True, any_worker=False)
    monkeypatch.setattr(served, "find_unserved", AsyncMock(return_value=(missing,)))
    living: list[int | None] = [None]
    monkeypatch.setattr(supervision, "running_pid", lambda *_: living[-1])

    async def said() -> tuple[str, ...]:
        await reader.find_held_up()
        return reader.held_up

    up_file = StateDir.of(reader.connection.settings).ready
    up_file.write_text("7")
    assert await said() == (missing,), "it died"
    living.append(8)
    assert await said() == (STARTING,), "another one came up"
    up_file.write_text("8")
    assert await said() == (STARTING,), "a moment ago"
    os.utime(up_file, (0, 0))
    assert await said() == (missing,), "it lives and stays silent"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("before", "after", "said"), [("x", "", True), ("x", "x", False), ("", "", False)]
)
async def test_the_command_that_takes_a_workers_endpoint_away_says_so_and_what_heals_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    said: bool,
) -> None:
    settings = Settings(state_dir=tmp_path)
    state = StateDir.of(settings)
    known = KNOWN.model_copy(update={"store_url": state.store.as_uri()})
    now = known.model_copy(update={"worker_environment": after})
    monkeypatch.setattr(connection, "ensure_up", lambda _: now)
    then = known.model_copy(update={"worker_environment": before})
    told: list[str] = []

    def tell(line: str, *, warning: bool = False) -> None:
        assert warning
        told.append(line)

    assert await connection._up(settings, then, tell, connection.wait_silently) == now
    assert told == [connection.LOST_ENDPOINT] * said
    assert connection.LOST_ENDPOINT.endswith(f"run: {STARTER} up")


@pytest.mark.parametrize(("embedded", "cure"), [(True, "starter.py up"), (False, "worker.py")])
def test_without_any_worker_the_models_are_not_the_trouble(embedded: bool, cure: str) -> None:
    line = describe_missing("q", embedded=embedded, any_worker=False)
    assert "models" not in line and "no worker" in line and line.endswith(cure)


def test_what_replaces_a_worker_is_said_as_it_is() -> None:
    # A process that lives is left alone by every command but `down`, also when it is frozen.
    line = describe_missing("q", embedded=True, any_worker=False)
    assert "has died is replaced by any command" in line
    assert "stays silent by: starter.py down, then: starter.py up" in line


def test_a_line_of_several_tiers_is_one_note() -> None:
    line = describe_missing("q", embedded=True)
    run = view().model_copy(update={"tiers": ("haiku", "opus", "sonnet")})
    assert with_throttles(run, dict.fromkeys(("haiku", "opus"), line)).notes == (line,)


# ---------------------------------------------------------------- a real server


@contextmanager
def worker(address: str, *queues: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", WORKER, address, *queues], cwd=HOME)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(90):
        while not await condition():  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.1)


async def alive(client: Client, queue: str, count: int = 1) -> None:
    """Return once this many workers of a queue are known to live."""

    async def all_there() -> bool:
        return sum(each.alive for each in (await find_pollers(client, [queue]))[queue]) == count

    await until(all_there)


@pytest.mark.anyio
async def test_a_queue_that_nobody_ever_polled_has_no_worker(env: WorkflowEnvironment) -> None:
    queue = f"served-{uuid.uuid4().hex[:8]}"
    (line,) = await find_unserved(env.client, queue, embedded=False, models=True)
    assert line == describe_missing(queue, embedded=False, any_worker=False)
    checks = await doctor.check_pollers(env.client, Target("", task_queue=queue, embedded=False))
    assert checks[0].mark == "bad" and "worker.py" in checks[0].detail
    assert not [check for check in checks if check.name == "models"], "they are not the trouble"


@pytest.mark.long
@pytest.mark.anyio
async def test_a_server_that_keeps_no_record_of_workers_still_tells_who_polled(
    env: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object, **__: object) -> None:
        raise RPCError("unknown method ListWorkers", RPCStatusCode.UNIMPLEMENTED, b"")

    queue = f"served-{uuid.uuid4().hex[:8]}"
    with worker(env.client.service_client.config.target_host, queue):
        await alive(env.client, queue)
        monkeypatch.setattr(env.client.workflow_service, "list_workers", refuses)
        found = await look(env.client, [queue])
    assert found.beats is None
    assert [each.alive for each in list_pollers(queue, found)] == [True]


# ---------------------------------------------------------------- a worker of another shell


@pytest.fixture
async def simulator(anyio_backend: str) -> AsyncIterator[Simulator]:
    async with Simulator(Script(key="sk-ant-of-this-simulator-0001")) as scripted:
        yield scripted


def shell(path: Path, simulator: Simulator | None = None, key: str = "") -> Settings:
    """The settings of a shell; without a simulator, of one that has no endpoint."""
    if simulator is None:
        return Settings(_env_file=None, state_dir=path)
    return Settings(
        _env_file=None,
        state_dir=path,
        anthropic_base_url=simulator.url,
        anthropic_api_key=SecretStr(key or simulator.script.key),
    )


async def shown(client: Client, run_id: str) -> tuple[tuple[str, ...], str]:
    """A run's notes, and its board in the Web UI; nothing while no worker answers."""
    handle = client.get_workflow_handle(run_id)
    patience = timedelta(seconds=5)
    with suppress(RPCError, WorkflowQueryFailedError):
        run = await handle.query("view", result_type=RunView, rpc_timeout=patience)
        page = await handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata, rpc_timeout=patience
        )
        return run.notes, page.current_details
    return (), ""


@pytest.mark.long
@pytest.mark.anyio
async def test_a_run_whose_worker_came_back_without_an_endpoint_says_so_and_is_healed_by_up(
    tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    ours, bare = shell(tmp_path, simulator), shell(tmp_path)
    key = simulator.script.key
    simulator.script = Script(key=key, latency=(600, 600))
    endpoint = await asyncio.to_thread(up, ours)
    try:
        client = await connect(endpoint.target, 30)
        plan = ready(subtask("t1", role="researcher", tier="haiku"))
        probe = await store_at(endpoint.store_url).put(b"probe")
        goal = Goal(text="g", use_models=True, plan=plan, probe=probe)
        handle = await client.start_workflow(
            "SupervisorWorkflow",
            goal,
            id="starved",
            task_queue=endpoint.task_queue,
            result_type=Report,
        )

        async def in_flight() -> bool:
            return simulator.log.now > 0

        await until(in_flight)
        assert (await shown(client, "starved"))[0] == (), "its worker serves it"
        await asyncio.to_thread(killed, endpoint.worker_pid)
        await asyncio.to_thread(ensure_up, bare)
        line = describe_missing("", embedded=True)

        async def said() -> bool:
            return line in (await shown(client, "starved"))[0]

        await until(said)
        assert for_markdown(line) in (await shown(client, "starved"))[1]
        # Each looks twice, some seconds apart.
        told, polled = await asyncio.gather(
            find_unserved(client, endpoint.task_queue, embedded=True, models=True),
            doctor.check_pollers(client, endpoint.target),
        )
        assert told == (line,)
        # What doctor says, in the shell of each.
        checks = {check.name: check for check in polled}
        assert checks["models"].mark == "bad" and checks["models"].detail.startswith("1 call wait")
        none = check_worker(bare, True)[0].detail
        assert "none, as in this shell" in none and none.endswith(f"run: {STARTER} up")
        assert "the worker has none" in check_worker(ours, True)[0].detail
        simulator.script = Script(key=key)
        await asyncio.to_thread(up, ours)
        async with asyncio.timeout(90):
            assert (await handle.result()).status == "complete"
        assert line not in (await shown(client, "starved"))[1]
        (same,) = check_worker(ours, True)
        assert (same.mark, same.detail) == ("ok", "the same as this shell's")
        (kept,) = check_worker(bare, True)
        assert "has one that this shell has not" in kept.detail
        assert kept.detail.endswith(f"run: {STARTER} up")
        (other,) = check_worker(shell(tmp_path, simulator, key="another"), True)
        assert "another key" in other.detail
    finally:
        await asyncio.to_thread(down, ours)


@pytest.mark.anyio
async def test_doctor_says_when_the_endpoint_refuses_the_key_and_pays_nothing_to_know(
    tmp_path: Path, simulator: Simulator
) -> None:
    accepted, _, batches = await check_models(shell(tmp_path, simulator))
    assert batches.detail.startswith("taken, at half the price")
    assert (accepted.mark, accepted.detail.split(": ")[0]) == (
        "ok",
        f"{simulator.url}, key …0001 (29 characters)",
    )
    planning = shell(tmp_path, simulator).model_copy(update={"model_planner": "claude-opus-4-8"})
    assert (await check_models(planning))[1].detail.endswith("; plans by claude-opus-4-8")
    wrong = shell(tmp_path, simulator, key="sk-ant-of-somebody-else-9876")
    refused, named = await check_models(wrong)
    assert refused.mark == "bad" and "401" in refused.detail
    assert "…9876" in refused.detail and "somebody" not in refused.detail
    assert "set ANTHROPIC_API_KEY" in refused.detail
    assert named.mark == "note"
    assert simulator.log.report()["requests"] == 0


@pytest.mark.anyio
async def test_an_endpoint_that_cannot_be_asked_for_free_refuses_no_key(tmp_path: Path) -> None:
    async with serving(PlainEndpoint()) as endpoint:
        settings = Settings(_env_file=None, state_dir=tmp_path, anthropic_base_url=endpoint.url)
        endpoint_check, models_check = await check_models(settings)
    assert (endpoint_check.mark, models_check.mark) == ("note", "ok")
    assert "ANTHROPIC_BASE_URL" in endpoint_check.detail, "perhaps no Messages API is there at all"
