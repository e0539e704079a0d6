"""A worker of several processes, as the embedded server's supervision starts it: they share the
calls of a run, one that dies comes back, and none outlives the first. Real processes, known by pid;
slow tools in place of the analysers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from temporalio.service import RPCError

from holdfast.cli.commands.care.doctor import check_deployment
from holdfast.deployment import siblings
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import Endpoint, Programs, StateDir, down, status, up
from holdfast.errors import Unreachable
from holdfast.temporal.connection import connect
from holdfast.workers.pollers import find_pollers
from repositories import Repository

pytestmark = pytest.mark.long

SLOW = Programs(worker=(sys.executable, str(HOME / "tests/support/slow_worker.py")))
RUN_ID = "shared"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    ours = Settings(_env_file=None, state_dir=tmp_path / "state", workers=3)
    yield ours
    down(ours)


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        # Most conditions ask the server, which costs it and this process as much as a worker idle.
        time.sleep(0.25)


def others(settings: Settings) -> list[psutil.Process]:
    return list(siblings.siblings_of(StateDir.of(settings).path))


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def asking(endpoint: Endpoint) -> set[int]:
    """Pids of the processes that ask the queue of runs for work."""

    async def found() -> set[int]:
        client = await connect(endpoint.target)
        who = await find_pollers(client, [endpoint.target.task_queue])
        (each,) = who.values()
        return {int(one.identity.partition("-")[0]) for one in each if one.alive}

    with suppress(RPCError, Unreachable):
        return asyncio.run(found())
    return set()


def started(settings: Settings, programs: Programs | None = None) -> tuple[int, set[int]]:
    """All processes ask for work: the pid of the first, and those of the others."""
    endpoint = up(settings, programs)
    until(lambda: len(asking(endpoint)) == settings.workers)
    first, rest = endpoint.worker_pid, {each.pid for each in others(settings)}
    assert asking(endpoint) == {first, *rest} and first not in rest
    return first, rest


def doctor_says(settings: Settings) -> str:
    async def said() -> str:
        return " ".join(
            [each.detail async for each in check_deployment(settings, only_embedded=True)]
        )

    return asyncio.run(said())


def small(folder: Path) -> Path:
    """Return a repository of one file."""
    Repository.at(folder).commit({"code.py": "print('hello')\n"})
    return folder


def review(settings: Settings) -> subprocess.Popen[str]:
    """A run of six slow lenses at once, started as a person does."""
    environment = os.environ | {"HOLDFAST_STATE_DIR": str(settings.state_dir)}
    return subprocess.Popen(
        [
            sys.executable,
            "starter.py",
            "run",
            "--embedded",
            "--json",
            "--id",
            RUN_ID,
            "--playbook",
            "code-review",
            "--input",
            f"repo={small(settings.state_dir.parent / 'repository')}",
            "--limits",
            "concurrency=6",
        ],
        cwd=HOME,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def who_worked(endpoint: Endpoint) -> set[int]:
    """Pids of the processes that carried out activities of the run."""

    async def found() -> set[int]:
        client = await connect(endpoint.target)
        history = await client.get_workflow_handle(RUN_ID).fetch_history()
        begun = [each.activity_task_started_event_attributes for each in history.events]
        return {int(each.identity.partition("-")[0]) for each in begun if each.identity}

    return asyncio.run(found())


def test_the_processes_of_a_worker_share_a_run_log_apart_and_leave_with_down(
    settings: Settings,
) -> None:
    first, rest = started(settings, SLOW)
    pids = ", ".join(map(str, [first, *sorted(rest)]))
    assert f"worker pid {pids} (3 processes)" in doctor_says(settings)
    processes = [psutil.Process(pid) for pid in (first, *rest)]
    running = review(settings)
    running.communicate(timeout=240)
    assert running.returncode == 0
    endpoint = status(settings).endpoint
    # Each has four places for lenses, and there were six at once.
    assert endpoint and len(who_worked(endpoint) & {first, *rest}) >= 2
    logs = StateDir.of(settings).logs
    names = ["worker-2.jsonl", "worker-3.jsonl", "worker.jsonl"]
    assert sorted(each.name for each in logs.glob("*.jsonl")) == names
    assert all("serving" in (logs / name).read_text() for name in names)
    assert first in down(settings)
    assert not any(lives(each) for each in processes)
    assert not others(settings)
    assert all("ended" in (logs / name).read_text() for name in names), "each has drained"
    assert (logs / "worker.log").read_text() == ""


def test_one_that_is_killed_comes_back_and_the_first_lives_on(settings: Settings) -> None:
    first, rest = started(settings)
    victim = min(rest)
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in {each.pid for each in others(settings)})
    endpoint = status(settings).endpoint
    assert endpoint
    until(lambda: len({each.pid for each in others(settings)}) == 2)
    back = {each.pid for each in others(settings)}
    assert victim not in back and len(back & rest) == 1
    until(lambda: {first, *back} <= asking(endpoint))
    assert status(settings).worker_pid == first
    log = StateDir.of(settings).worker_log(1).read_text()
    assert f"(pid {victim}) ended with -9: it is started again" in log


def test_when_the_first_is_killed_the_others_finish_what_they_have_and_end(
    settings: Settings,
) -> None:
    first, rest = started(settings, SLOW)
    processes = [psutil.Process(pid) for pid in rest]
    running = review(settings)
    calls = settings.state_dir / "calls"
    until(lambda: calls.exists() and calls.read_text().count("start") == 6)
    os.kill(first, signal.SIGKILL)
    until(lambda: not any(lives(each) for each in processes), siblings.ORPHAN_SECONDS + 30)
    logs = StateDir.of(settings).logs
    assert all("ended" in (logs / f"worker-{number}.jsonl").read_text() for number in (2, 3))
    # Whoever watches the run has started another worker meanwhile, of as many as it was told.
    running.communicate(timeout=240)
    assert running.returncode == 0


def test_one_that_hangs_is_ended_some_time_after_the_first(tmp_path: Path) -> None:
    hanging = tmp_path / "hanging.py"
    hanging.write_text(
        "import asyncio, sys, time\n"
        f"sys.path.insert(0, {str(HOME)!r})\n"
        "from holdfast.deployment import siblings\n"
        "siblings.ORPHAN_SECONDS = 1.0\n"
        "async def main():\n"
        "    siblings.end_with_parent(lambda: None)\n"
        "    print('waits', flush=True)\n"
        "    time.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(hanging)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    assert process.stdout.readline() == "waits\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


def test_one_that_still_starts_when_the_first_ends_has_nothing_to_finish_and_ends_at_once(
    tmp_path: Path,
) -> None:
    slow = tmp_path / "temporalio"
    slow.mkdir()
    (slow / "__init__.py").write_text(
        "import time\nprint('imports', flush=True)\ntime.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "worker.py", "--embedded", str(tmp_path), siblings.OPTION, "1.2"],
        cwd=HOME,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin and process.stdout
        try:
            assert process.stdout.readline() == "imports\n"
            assert process.poll() is None
            process.stdin.close()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def test_down_leaves_none_of_a_worker_that_was_killed(settings: Settings) -> None:
    first, rest = started(settings, SLOW)
    processes = [psutil.Process(pid) for pid in (first, *rest)]
    running = review(settings)
    calls = settings.state_dir / "calls"
    until(lambda: calls.exists() and calls.read_text().count("start") == 6)
    # It would start another worker.
    running.kill()
    running.communicate()
    os.kill(first, signal.SIGKILL)
    assert rest & set(down(settings)), "one had a lens of four seconds in hand"
    assert not any(lives(each) for each in processes)


def test_none_is_left_when_an_idle_server_stops(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, state_dir=tmp_path / "state", workers=2, idle_seconds=1)
    try:
        first, rest = started(settings)
        processes = [psutil.Process(pid) for pid in (first, *rest)]
        StateDir.of(settings).hold.unlink()
        until(lambda: not any(lives(each) for each in processes))
        assert status(settings).server_pid is None
        assert "ended" in StateDir.of(settings).worker_log(2).read_text()
    finally:
        down(settings)


def test_all_follow_a_server_that_had_to_move(settings: Settings) -> None:
    settings = settings.model_copy(update={"workers": 2})
    first, rest = started(settings)
    before = status(settings)
    assert before.endpoint and before.server_pid
    victim = psutil.Process(before.server_pid)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The first would start another server on that port before the stranger has it.
        os.kill(first, signal.SIGSTOP)
        try:
            victim.kill()
            until(lambda: not lives(victim))
            port = before.endpoint.port
            until(lambda: bound(stranger, port))
            stranger.listen()
        finally:
            os.kill(first, signal.SIGCONT)
        until(lambda: status(settings).endpoint not in (None, before.endpoint))
        endpoint = status(settings).endpoint
        assert endpoint and endpoint.port != port

        def followed() -> bool:
            """Those that ask come and go for a while: one look at them has to tell all of it."""
            now = asking(endpoint)
            ours = {first, *(each.pid for each in others(settings))}
            return len(now) == settings.workers and now == ours and not rest & now

        until(followed)


def bound(stranger: socket.socket, port: int) -> bool:
    """Whether this one could have the port: a server that was killed holds it for an instant."""
    try:
        stranger.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def test_beside_a_server_of_your_own_sigterm_ends_all(settings: Settings, tmp_path: Path) -> None:
    idle = Programs(worker=(sys.executable, "-c", "import time; time.sleep(600)"))
    endpoint = up(settings, idle)
    environment = os.environ | {
        "TEMPORAL_ADDRESS": endpoint.target.address,
        "STORE_URL": (tmp_path / "store").as_uri(),
        "HOLDFAST_STATE_DIR": str(tmp_path / "own"),
        "HOLDFAST_TASK_QUEUE": endpoint.task_queue,
        "HOLDFAST_WORKERS": "2",
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(HOME / "worker.py")], env=environment, stderr=output
        )
    until(lambda: len(asking(endpoint)) == 2)
    (other,) = asking(endpoint) - {process.pid}
    sibling = psutil.Process(other)
    process.terminate()
    assert process.wait(timeout=60) == 0
    assert not lives(sibling)
    said = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert said.count("draining") == said.count("ended") == 2


def test_sigterm_while_a_worker_still_starts_is_an_orderly_end(tmp_path: Path) -> None:
    slow = tmp_path / "temporalio"
    slow.mkdir()
    (slow / "__init__.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(90)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(HOME / "worker.py")],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"importing\n"
            process.terminate()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def test_who_only_names_a_sibling_is_none(tmp_path: Path) -> None:
    state = StateDir.of(Settings(_env_file=None, state_dir=tmp_path / "state"))
    named = [str(state.path), siblings.OPTION, f"{os.getpid()}.2"]
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)", *named],
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout and process.stdout.readline()
        assert not list(siblings.siblings_of(state.path))
    finally:
        process.kill()
        process.communicate()
