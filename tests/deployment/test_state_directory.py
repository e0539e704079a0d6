"""The state directory against other users, stale records and damaged files; hardly any server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.deployment.settings import Settings
from holdfast.embedded import (
    Endpoint,
    Programs,
    StateDir,
    count_unreadable,
    down,
    ensure_up,
    lease,
    processes,
    read_registered,
    register_root,
    status,
    supervision,
)
from holdfast.embedded.processes import Record
from holdfast.errors import EmbeddedError

SLEEPER = Programs(worker=(sys.executable, "-c", "import time; time.sleep(600)"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, state_dir=tmp_path / "state")


@pytest.fixture
def state(settings: Settings) -> StateDir:
    """A state directory in which something was started once."""
    state = StateDir.of(settings)
    state.create()
    endpoint = Endpoint(
        port=17001,
        ui_port=17002,
        http_port=17003,
        metrics_port=17004,
        task_queue="holdfast-1",
        store_url=state.store.as_uri(),
        salt="s",
    )
    state.write(endpoint)
    return state


@pytest.fixture
def stranger(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that names the state directory, and is not a part of it."""
    command = [sys.executable, "-c", "import time; time.sleep(600)", str(settings.state_dir)]
    process = subprocess.Popen(command)
    yield process
    process.kill()
    process.wait()


def refusal(settings: Settings) -> str:
    """The one line of what does not start; nothing was started."""
    with pytest.raises(EmbeddedError) as refused:
        ensure_up(settings, programs=SLEEPER)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# ---------------------------------------------------------------- whose it is


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("name", ["", "store", "journal", "logs", "reports", "snapshots"])
def test_what_belongs_to_another_user_is_refused(
    settings: Settings, state: StateDir, name: str
) -> None:
    (state.path / name).mkdir(exist_ok=True)
    os.chown(state.path / name, 65534, 65534)
    assert f"{state.path / name} (uid 65534)" in refusal(settings)
    with pytest.raises(EmbeddedError, match="another user"), lease(settings):
        pass


def test_what_others_could_write_into_is_refused_unless_it_is_empty(settings: Settings) -> None:
    settings.state_dir.mkdir(mode=0o700)
    settings.state_dir.chmod(0o777)
    StateDir.of(settings).create()
    assert settings.state_dir.stat().st_mode & 0o777 == 0o700
    settings.state_dir.chmod(0o777)
    assert "others can write into the state directory" in refusal(settings)


@pytest.mark.parametrize("name", ["store", "journal", "logs"])
def test_a_link_in_place_of_a_folder_is_refused(
    settings: Settings, tmp_path: Path, name: str
) -> None:
    settings.state_dir.mkdir(mode=0o700)
    (tmp_path / "theirs").mkdir()
    (settings.state_dir / name).symlink_to(tmp_path / "theirs")
    assert "holds a link or a file" in refusal(settings)


def test_no_planted_link_is_written_through(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (state.path / "endpoint.json.new").symlink_to(victim)
    endpoint = state.endpoint()
    assert endpoint is not None
    state.write(endpoint)
    for name in ("lock", "lease", "roots", "hold"):
        (state.path / name).symlink_to(victim)
    with pytest.raises(EmbeddedError, match="a link stands in the state directory"):
        register_root(settings, tmp_path)
    with pytest.raises(EmbeddedError, match="a link stands"), lease(settings):
        pass
    with pytest.raises(EmbeddedError, match="a link stands"):
        supervision.up(settings, SLEEPER)
    assert victim.read_text() == "mine"


def test_a_process_records_itself_through_no_link(state: StateDir, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    pid_file = state.path / "worker.pid"
    pid_file.symlink_to(victim)
    pid_file.with_name("worker.pid.new").symlink_to(victim)
    with state.locked() as lock:
        program = [sys.executable, "-c", "", str(state.path)]
        process = processes.spawn(program, pid_file, state.logs / "worker.log", {}, lock)
    assert process.wait() == 0
    record = processes.read_record(pid_file)
    assert record is not None and record.pid == process.pid and record.program == tuple(program)
    assert victim.read_text() == "mine" and not pid_file.is_symlink()


# ---------------------------------------------------------------- which process is ours


def test_a_stranger_with_a_recorded_pid_that_names_the_directory_is_left_alone(
    settings: Settings, state: StateDir, stranger: subprocess.Popen[bytes]
) -> None:
    started = Path(f"/proc/{stranger.pid}/stat")
    ticks = started.read_text().rpartition(")")[2].split()[19] if started.exists() else "0"
    theirs = Record(
        pid=stranger.pid,
        started=ticks,
        program=(sys.executable, "worker.py", "--embedded", str(state.path)),
    )
    (state.path / "worker.pid").write_text(theirs.model_dump_json())
    assert status(settings).worker_pid is None
    assert down(settings) == () and stranger.poll() is None


@pytest.mark.parametrize(
    ("change", "ours"),
    [
        ({}, True),
        ({"started": "1"}, False),
        ({"program": ("python", "-c", "pass")}, False),
        ({"program": ()}, False),
        ({"pid": 0}, False),
    ],
)
def test_a_process_is_ours_by_its_start_its_program_and_the_directory(
    state: StateDir, change: dict[str, object], ours: bool
) -> None:
    with state.locked() as lock:
        program = [sys.executable, "-c", "import time; time.sleep(600)", str(state.path)]
        process = processes.spawn(
            program, state.path / "worker.pid", state.logs / "worker.log", {}, lock
        )
    try:
        record = processes.read_record(state.path / "worker.pid")
        assert record is not None
        changed = record.model_copy(update=change)
        assert processes.is_alive(changed, state.path) is ours
        assert not processes.is_alive(changed, state.path.with_name("copy of state"))
    finally:
        process.kill()
        process.wait()


# ---------------------------------------------------------------- damaged files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "damaged"),
        ("", "damaged"),
        ("[" * 100_000, "larger than 64 KiB"),
        ('{"port": 99999999}', "damaged"),
        ('{"store_url": "none"}', "another deployment"),
        ('{"task_queue": "a b"}', "damaged"),
        ('{"server_pid": -1}', "damaged"),
    ],
)
def test_a_damaged_endpoint_file_is_refused_in_a_line_and_nothing_is_started(
    settings: Settings, state: StateDir, content: str, said: str
) -> None:
    path = state.path / "endpoint.json"
    whole = json.loads(path.read_text())
    change = json.loads(content) if content.startswith("{") and content != "{" else None
    path.write_text(json.dumps(whole | change) if change else content)
    before = path.read_bytes()
    line = refusal(settings)
    assert said in line and str(path) in line
    with pytest.raises(EmbeddedError):
        status(settings)
    assert path.read_bytes() == before and not state.database.exists()
    assert down(settings) == ()


def test_a_server_whose_endpoint_file_is_gone_or_damaged_gets_no_second_beside_it(
    settings: Settings,
) -> None:
    first = ensure_up(settings, programs=SLEEPER)
    path = settings.state_dir / "endpoint.json"
    try:
        path.write_text("{")
        assert "endpoint.json is damaged" in refusal(settings)
        path.unlink()
        assert f"still runs: {settings.state_dir} (pid {first.server_pid})" in refusal(settings)
        record = (settings.state_dir / "server.pid").read_text()
        (settings.state_dir / "server.pid").unlink()
        assert f"(pid {first.server_pid})" in refusal(settings)
        (settings.state_dir / "server.pid").write_text(record)
    finally:
        assert set(down(settings)) == {first.server_pid, first.worker_pid}


def test_lines_of_roots_that_cannot_be_read_allow_nothing_and_are_counted(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    (tmp_path / "good").mkdir()
    register_root(settings, tmp_path / "good")
    odd = [
        "no json",
        '"/"',
        "[]",
        "{}",
        '{"path": "/", "device": "x", "inode": 1}',
        "[" * 5_000,
        '{"path": "relative", "device": 1, "inode": 1}',
        '{"path": "/", "device": true,',
    ]
    with state.roots.open("ab") as file:
        file.write("\n".join(odd).encode() + b"\n\xff\xfe")
    register_root(settings, tmp_path)
    assert {root.path for root in read_registered(settings)} == {tmp_path / "good", tmp_path}
    assert count_unreadable(settings) == len(odd) + 1


def test_a_root_that_is_named_again_is_allowed_as_it_is_now(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    register_root(settings, folder)
    (before,) = read_registered(settings)
    folder.rename(tmp_path / "old")
    folder.mkdir()
    register_root(settings, folder)
    (after,) = read_registered(settings)
    assert after.path == before.path and after.inode != before.inode
