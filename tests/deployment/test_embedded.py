"""One server and one worker per state directory, whatever happens to those who start them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import psutil
import pytest

from holdfast.client.connecting import opened
from holdfast.client.schedules import Happened, Schedules, Shown
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import (
    Endpoint,
    Programs,
    StateDir,
    attendance,
    down,
    ensure_up,
    identity,
    lease,
    processes,
    read_registered,
    register_root,
    server,
    starting,
    status,
    supervision,
    up,
)
from holdfast.errors import EmbeddedError
from holdfast.intake import times
from holdfast.intake.requests import RunRequest
from one_lens import PLAN
from repositories import Repository

SLEEP = """
import os, sys, time
with open(sys.argv[-1] + "/worker.ready", "w") as ready:
    ready.write(str(os.getpid()))
time.sleep(600)
"""
SLEEPER = Programs(worker=(sys.executable, "-c", SLEEP))
"""A worker that comes up and does nothing, for what concerns its process alone."""
STARTER = f"""
import sys, time
from holdfast.embedded import Programs, ensure_up, lease
from holdfast.deployment.settings import Settings
settings = Settings(_env_file=None, state_dir=sys.argv[1])
programs = Programs(worker=(sys.executable, "-c", {SLEEP!r}))
"""
STARTS = STARTER + "print(ensure_up(settings, programs=programs).model_dump_json())"
HOLDS_A_LEASE = STARTER + "with lease(settings): print('held', flush=True), time.sleep(600)"


def in_state(path: Path, **more: object) -> Settings:
    return Settings(_env_file=None, state_dir=path, **more)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    ours = in_state(tmp_path / "state")
    yield ours
    ended(ours)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A server that tests only look at."""
    ours = in_state(tmp_path_factory.mktemp("looked at") / "state")
    yield ensure_up(ours, programs=SLEEPER)
    ended(ours)


def ended(settings: Settings) -> None:
    """Nothing is kept of it: a clean end, which takes a second, is tried by tests of its own."""
    # A worker first: it would start its server again.
    for word in ("--embedded", "start-dev"):
        for pid in pids_of(settings, word):
            with suppress(psutil.NoSuchProcess):
                killed(pid)


def pids_of(settings: Settings, word: str) -> list[int]:
    """Live processes of this state directory whose command line holds `word`."""
    place = str(settings.state_dir)
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        ours = any(each.startswith(place) for each in words)
        if ours and word in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)


def killed(pid: int | None) -> None:
    """Kill -9, and wait until the kernel has done it."""
    assert pid
    victim = psutil.Process(pid)
    os.kill(pid, signal.SIGKILL)
    with suppress(psutil.NoSuchProcess):
        until(lambda: victim.status() == psutil.STATUS_ZOMBIE)


def answers(address: str) -> bool:
    """The Web UI is there at once and finds its server about a second later."""
    try:
        with urllib.request.urlopen(address):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return False


def starter(settings: Settings, script: str = STARTS) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(settings.state_dir)],
        cwd=HOME,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_six_starters_at_once_bring_up_one_server_and_one_worker(settings: Settings) -> None:
    starters = [starter(settings) for _ in range(6)]
    answers = {process.communicate()[0] for process in starters}
    assert [process.returncode for process in starters] == [0] * 6
    ports = {Endpoint.model_validate_json(answer).port for answer in answers}
    assert len(ports) == 1
    [server_pid] = pids_of(settings, "start-dev")
    [worker_pid] = pids_of(settings, "--embedded")
    for pid in (server_pid, worker_pid):
        assert os.getsid(pid) == pid, "they outlive who started them, in sessions of their own"


@pytest.mark.long
def test_a_starter_killed_at_any_moment_leaves_no_second_server(settings: Settings) -> None:
    lock = settings.state_dir / "server.pid"
    for delay in (0.0, 0.005, 0.02, 0.1, 0.25):
        victim = starter(settings)
        until(lock.exists)
        time.sleep(delay)
        victim.kill()
        victim.communicate()
        endpoint = ensure_up(settings, programs=SLEEPER)
        assert pids_of(settings, "start-dev") == [endpoint.server_pid]
        # A process that was just started shows its command line a moment later.
        until(lambda: len(pids_of(settings, "--embedded")) == 1)
        ended(settings)
        lock.unlink()


@pytest.mark.long
def test_what_was_killed_comes_back_on_the_same_ports_and_queue(settings: Settings) -> None:
    before = ensure_up(settings, programs=SLEEPER)
    for victims in ("server",), ("worker",), ("server", "worker"):
        now = status(settings)
        for victim in victims:
            killed(now.server_pid if victim == "server" else now.worker_pid)
        after = ensure_up(settings, "watcher", SLEEPER)
        assert after.target == before.target
        healed = status(settings)
        assert healed.server_pid == after.server_pid
        assert healed.worker_pid
        assert (healed.server_pid != now.server_pid) == ("server" in victims)
        assert (healed.worker_pid != now.worker_pid) == ("worker" in victims)


@pytest.mark.long
def test_a_port_that_somebody_took_is_replaced_and_the_others_stay(settings: Settings) -> None:
    before = ensure_up(settings, programs=SLEEPER)
    killed(before.server_pid)
    until(lambda: server.free_port(before.ui_port, set()) == before.ui_port)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", before.ui_port))
        thief.listen()
        after = ensure_up(settings, programs=SLEEPER)
    assert after.ui_port != before.ui_port
    assert after.port == before.port


@pytest.mark.long
def test_a_worker_follows_its_server_to_another_port(settings: Settings) -> None:
    before = ensure_up(settings)
    log = settings.state_dir / "logs" / "worker.jsonl"
    until(lambda: log.exists() and f"at {before.target.address}" in log.read_text())
    # Asleep, it does not restart the server before the thief is there.
    os.kill(before.worker_pid, signal.SIGSTOP)
    killed(before.server_pid)
    until(lambda: server.free_port(before.port, set()) == before.port)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", before.port))
        thief.listen()
        after = ensure_up(settings, "watcher")
        assert after.port != before.port
        os.kill(before.worker_pid, signal.SIGCONT)
        until(lambda: f"at {after.target.address}" in log.read_text(), seconds=90)
    assert status(settings).worker_pid == before.worker_pid


def test_a_worker_of_another_version_is_drained_and_replaced(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ensure_up(settings, programs=SLEEPER)
    monkeypatch.setattr(supervision, "code_version", lambda *_: "another")
    watched = ensure_up(settings, "watcher", SLEEPER)
    assert watched.worker_pid == old.worker_pid, "only a starter replaces, or two would take turns"
    new = ensure_up(settings, programs=SLEEPER)
    assert new.worker_version == "another"
    assert [each.pid for each in new.draining] == [old.worker_pid]
    assert new.server_pid == old.server_pid
    until(lambda: pids_of(settings, "--embedded") == [new.worker_pid])


@pytest.mark.long
def test_a_worker_with_another_model_environment_is_replaced_by_starters_that_have_one(
    settings: Settings,
) -> None:
    first = in_state(settings.state_dir, anthropic_api_key="key-one")
    second = in_state(settings.state_dir, anthropic_api_key="key-two")
    without = ensure_up(settings, programs=SLEEPER)
    one = ensure_up(first, "watcher", SLEEPER)
    assert one.worker_pid != without.worker_pid, "nobody could ask a model"
    assert ensure_up(settings, programs=SLEEPER).worker_pid == one.worker_pid
    assert ensure_up(second, "watcher", SLEEPER).worker_pid == one.worker_pid
    two = ensure_up(second, programs=SLEEPER)
    assert two.worker_pid != one.worker_pid
    worker = psutil.Process(two.worker_pid)
    assert worker.environ()["ANTHROPIC_API_KEY"] == "key-two"
    assert "key-two" not in " ".join(worker.cmdline())
    assert "ANTHROPIC_API_KEY" not in psutil.Process(two.server_pid).environ()
    files = [path for path in settings.state_dir.rglob("*") if path.is_file()]
    assert [path for path in files if b"key-two" in path.read_bytes()] == []


def test_down_stops_both_and_watchers_leave_it_so_until_somebody_starts(
    settings: Settings,
) -> None:
    endpoint = up(settings, SLEEPER)
    assert status(settings).held
    assert set(down(settings)) == {endpoint.server_pid, endpoint.worker_pid}
    assert down(settings) == ()
    assert not status(settings).held
    assert [path.name for path in settings.state_dir.glob("temporal.db*")] == ["temporal.db"]
    with pytest.raises(EmbeddedError, match="stopped by `down`"):
        ensure_up(settings, "watcher", SLEEPER)
    again = ensure_up(settings, programs=SLEEPER)
    assert again.target == endpoint.target


def test_a_pid_that_another_program_got_is_neither_ours_nor_stopped(settings: Settings) -> None:
    endpoint = ensure_up(settings, programs=SLEEPER)
    killed(endpoint.server_pid)
    record = json.loads((settings.state_dir / "server.pid").read_text())
    record["pid"] = os.getpid()
    (settings.state_dir / "server.pid").write_text(json.dumps(record))
    assert status(settings).server_pid is None
    assert os.getpid() not in down(settings)


@pytest.mark.long
def test_a_lease_is_seen_while_it_is_held_and_ends_with_its_process(settings: Settings) -> None:
    assert not status(settings).leases
    with lease(settings):
        assert status(settings).leases
        with lease(settings):
            assert status(settings).leases
        assert status(settings).leases
    assert not status(settings).leases
    script = STARTER.replace("print(", "from holdfast.embedded import lease\n").splitlines()[:-1]
    code = "\n".join(
        [
            *script,
            "import time",
            "held = lease(settings)",
            "held.__enter__()",
            "print('held', flush=True)",
            "time.sleep(600)",
        ]
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(settings.state_dir)],
        cwd=HOME,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout and holder.stdout.readline() == "held\n"
    assert status(settings).leases
    holder.kill()
    holder.communicate()
    until(lambda: not status(settings).leases)


def gone(settings: Settings) -> bool:
    return pids_of(settings, "start-dev") == pids_of(settings, "--embedded") == []


@pytest.mark.long
def test_an_idle_server_and_its_worker_end_by_themselves(tmp_path: Path) -> None:
    settings = in_state(tmp_path / "state", idle_seconds=1)
    try:
        with lease(settings):
            ensure_up(settings)
            log = settings.state_dir / "logs" / "worker.jsonl"
            until(lambda: log.exists() and "serving" in log.read_text())
            # Two rounds of its duties, each of which would have ended it.
            rounds = 2 * attendance.HEAL_SECONDS + settings.idle_seconds
            time.sleep(rounds)
            assert status(settings).server_pid
            assert status(settings).worker_pid
        until(lambda: gone(settings))
        assert [path.name for path in settings.state_dir.glob("temporal.db*")] == ["temporal.db"]
        assert "Traceback" not in log.read_text() + (log.parent / "worker.log").read_text()
    finally:
        down(settings)


@pytest.mark.long
def test_a_schedule_keeps_the_server_up_that_nobody_else_uses_and_starts_no_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.at(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n"})
    monkeypatch.setenv("HOLDFAST_IDLE_SECONDS", "1")
    monkeypatch.setattr(times, "LEAST_EVERY", 1)
    settings = in_state(tmp_path / "state", idle_seconds=1)
    request = RunRequest(playbook="code-review", inputs={"repo": str(repository.path)}, plan=PLAN)

    async def with_schedules(do: Callable[[Schedules], Awaitable[Any]]) -> Any:
        async with opened(settings, embedded=True) as connection:
            return await do(Schedules(connection))

    def last() -> tuple[Happened, ...]:
        shown: Shown = asyncio.run(with_schedules(lambda mine: mine.show("often")))
        return shown.last

    try:
        asyncio.run(with_schedules(lambda mine: mine.add("often", request, every="1s")))
        until(lambda: any(each.outcome.status == "complete" for each in last()))
        time.sleep(2 * attendance.HEAL_SECONDS + settings.idle_seconds)
        assert status(settings).server_pid, "nobody has used it meanwhile but the schedule"
        before = last()
        killed(status(settings).worker_pid or 0)
        until(lambda: last()[-1].at > before[0].at and last()[-1].outcome.status == "complete")
        ids = [each.outcome.run for each in (*before, *last()) if each.outcome.run]
        assert len({*ids}) == len(ids) > 3
        asyncio.run(with_schedules(lambda mine: mine.delete("often")))
        until(lambda: gone(settings))
    finally:
        down(settings)


@pytest.mark.long
def test_after_a_downtime_one_run_makes_up_for_what_was_missed_and_none_for_what_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "LEAST_EVERY", 1)
    repository = Repository.at(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n"})
    settings = in_state(tmp_path / "state")
    request = RunRequest(playbook="code-review", inputs={"repo": str(repository.path)}, plan=PLAN)

    async def ask(do: Callable[[Schedules], Awaitable[Any]]) -> Any:
        async with opened(settings, embedded=True) as connection:
            return await do(Schedules(connection))

    async def add(name: str, catch_up: str) -> None:
        async with opened(settings, embedded=True) as connection:
            made = Schedules(connection)
            await made.add(name, request, every="12s", catch_up=catch_up)

    def shown(name: str) -> Shown:
        found: Shown = asyncio.run(ask(lambda mine: mine.show(name)))
        return found

    def begun(since: datetime) -> dict[str, list[datetime]]:
        return {
            name: [each.at for each in shown(name).last if each.at > since and each.outcome.run]
            for name in ("short", "long")
        }

    def idle() -> bool:
        return all(each.outcome.status for name in begun(went) for each in shown(name).last)

    went = datetime.now(UTC)
    try:
        for name, catch_up in (("short", "1h"), ("long", "10s")):
            asyncio.run(add(name, catch_up))
        until(lambda: all(begun(went).values()) and idle())
        down(settings)
        went = datetime.now(UTC)
        time.sleep(27)
        until(lambda: all(begun(went).values()))
        assert shown("long").missed >= 1 and not shown("short").missed
        late = [each for each in shown("short").last if each.outcome.run[-15:] < came(went, 27)]
        assert len([each for each in late if each.at > went]) == 1, "of two or three"
    finally:
        down(settings)


def came(went: datetime, seconds: int) -> str:
    """The moment that many seconds later, as it stands in a run's id."""
    return f"{went + timedelta(seconds=seconds):%Y%m%d-%H%M%S}"


@pytest.mark.long
def test_processes_whose_state_directory_was_deleted_end(settings: Settings) -> None:
    ensure_up(settings)
    until((settings.state_dir / "worker.ready").exists)
    shutil.rmtree(settings.state_dir)
    until(lambda: gone(settings))
    assert not settings.state_dir.exists()


def test_roots_of_several_starters_are_kept_once_each(settings: Settings, tmp_path: Path) -> None:
    roots = [tmp_path / f"repository {number}\n" for number in range(8)]
    for root in roots:
        root.mkdir()
    threads = [threading.Thread(target=register_root, args=(settings, root)) for root in roots * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    register_root(settings, roots[0])
    register_root(settings, tmp_path / "not there")
    assert {root.path for root in read_registered(settings)} == set(roots)
    assert len((settings.state_dir / "roots").read_text().split()) >= len(roots)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.example"])
def test_the_http_api_serves_no_web_page(endpoint: Endpoint, host: str) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{endpoint.http_port}/api/v1/namespaces/default/workflows",
        headers={"Host": f"{host}:{endpoint.http_port}"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value:
        assert refused.value.code == 403
    with urllib.request.urlopen(endpoint.target.ui_url) as page:
        assert b"<html" in page.read()


def test_the_web_ui_reads_and_refuses_a_write_without_its_token(endpoint: Endpoint) -> None:
    api = f"{endpoint.target.ui_url}/api/v1/namespaces/default/workflows"
    until(lambda: answers(api))
    with urllib.request.urlopen(api) as answer:
        assert json.load(answer) == {}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{api}/forged", data=b'{"workflowType": {"name": "X"}}')
    with refused.value:
        assert refused.value.code == 400


def test_everything_kept_is_private_to_the_user(endpoint: Endpoint) -> None:
    folder = Path(url2pathname(urlsplit(endpoint.store_url).path)).parent
    register_root(in_state(folder), HOME)
    kept = [folder, *folder.rglob("*")]
    assert len(kept) > 5
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_only_loopback_is_listened_on(endpoint: Endpoint) -> None:
    listening = psutil.Process(endpoint.server_pid).net_connections("tcp")
    addresses = {each.laddr.ip for each in listening if each.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}


def test_a_state_directory_below_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    hopeless = in_state(tmp_path / "file" / "state")
    with pytest.raises(EmbeddedError, match="HOLDFAST_STATE_DIR") as refused:
        ensure_up(hopeless, programs=SLEEPER)
    assert "\n" not in str(refused.value)
    assert str(tmp_path / "file") in str(refused.value)
    with pytest.raises(EmbeddedError), lease(hopeless):
        pass
    with pytest.raises(EmbeddedError):
        register_root(hopeless, tmp_path)
    assert down(hopeless) == ()
    assert status(hopeless).server_pid is None
    assert read_registered(hopeless) == ()


def test_a_server_that_cannot_start_is_one_line_with_its_own_words(
    settings: Settings, tmp_path: Path
) -> None:
    program = tmp_path / "temporal"
    program.write_text("#!/bin/sh\necho it has no wish to run >&2\nexit 1\n")
    program.chmod(0o700)
    with pytest.raises(EmbeddedError, match="it has no wish to run") as refused:
        ensure_up(settings, programs=Programs(server=program))
    assert "\n" not in str(refused.value)


def test_where_no_server_is_installed_is_said_with_what_to_do(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match="TEMPORAL_ADDRESS") as refused:
        ensure_up(settings)
    looked = f"there is no program temporal beside {tmp_path / 'python'} or on PATH"
    assert f"is not installed: {looked}; " in str(refused.value)


@pytest.mark.long
def test_a_worker_that_never_comes_up_is_said_after_three_and_tried_again(
    settings: Settings,
) -> None:
    broken = Programs(worker=(sys.executable, "-c", "raise SystemExit('no such module')"))

    def again() -> None:
        until(lambda: status(settings).worker_pid is None)
        ensure_up(settings, "watcher", broken)

    for _ in range(3):
        again()
    with pytest.raises(EmbeddedError, match="no such module"):
        again()
    again()


def test_a_nearly_full_disk_is_said_before_the_server_starts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "SPACE_BYTES", 1 << 60)
    with pytest.raises(EmbeddedError, match="no space left") as refused:
        ensure_up(settings, programs=SLEEPER)
    assert str(settings.state_dir) in str(refused.value)
    assert pids_of(settings, "start-dev") == []


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mounted)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs more rights")
    try:
        monkeypatch.setattr(starting, "SPACE_BYTES", 0)
        with (mounted / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
            while True:
                filler.write(b"x" * 4096)
        with pytest.raises(EmbeddedError, match="no space left") as refused:
            ensure_up(in_state(mounted / "state"), programs=SLEEPER)
        assert "\n" not in str(refused.value)
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_what_a_server_says_last_keeps_its_cause_however_long_it_is(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    wrapped = "could not build arguments for function: " * 20
    log.write_text(
        f"started\nError: {wrapped}listen tcp 127.0.0.1:7: bind: address already in use\n"
    )
    said = processes.last_line(log)
    assert said.startswith("Error: could not") and said.endswith("address already in use")
    assert len(said) < 310


@pytest.mark.parametrize(
    "file",
    ["holdfast/serving/worker.py", "holdfast/activities/x.py", "roles/w.md", "prompts/planner.md"],
)
def test_the_version_changes_with_what_a_worker_runs(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "HOME", tmp_path)
    monkeypatch.setattr(identity, "PACKAGE", tmp_path / "holdfast")
    path = tmp_path / file
    # In a checkout a link, which `rglob` would not follow.
    (tmp_path / "activities").mkdir()
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "activities").symlink_to("../activities")
    path.parent.mkdir(exist_ok=True)
    path.write_text("one")
    before = identity.code_version()
    assert identity.code_version() == before
    path.write_text("another")
    assert identity.code_version() != before


def test_the_state_directory_is_the_same_under_every_spelling(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    straight = StateDir.of(in_state(tmp_path / "state"))
    assert StateDir.of(in_state(tmp_path / "link" / "state")) == straight
