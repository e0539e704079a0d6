"""How the server is started: on the ports it had, on a database that is its own and whole, and not
known as up before it has answered.
"""

from __future__ import annotations

import secrets
import shutil
import time
from os import defpath
from pathlib import Path
from typing import Literal

from holdfast.embedded import database, processes, server
from holdfast.embedded.processes import Record
from holdfast.embedded.state import Endpoint, StateDir
from holdfast.errors import EmbeddedError

READY_SECONDS = 30.0
ENDING_SECONDS = 2.0
"""How long a server that was killed just now may take to end."""
SPACE_BYTES = 50_000_000
"""Least free space: with less the database would soon fail half-way."""


def pid_file(state: StateDir, name: Literal["server", "worker"]) -> Path:
    return state.path / f"{name}.pid"


def record_of(state: StateDir, name: Literal["server", "worker"]) -> Record | None:
    return processes.read_record(pid_file(state, name))


def running_pid(state: StateDir, name: Literal["server", "worker"]) -> int | None:
    """The pid of the server or worker, if it lives."""
    mark = state.database if name == "server" else state.path
    found = processes.find_running(pid_file(state, name), mark)
    return found.pid if found else None


def first_endpoint(state: StateDir, project: str = "", key_file: str = "") -> Endpoint:
    """What a state directory starts with. EmbeddedError when it is not at its start."""
    pid = running_pid(state, "server")
    if pid is not None:
        raise EmbeddedError(
            "endpoint.json is missing, and the server that it described still runs",
            f"{state.path} (pid {pid})",
            "put it back, or end the server with `starter.py down`: open runs then wait forever on"
            " the task queue whose name it held",
        )
    return Endpoint(
        port=0,
        ui_port=0,
        http_port=0,
        metrics_port=0,
        # Nobody who only knows the project's name can put work on this queue.
        task_queue=f"holdfast-{secrets.token_hex(4)}",
        store_url=state.store.as_uri(),
        salt=secrets.token_hex(16),
        project=project,
        key_file=key_file,
    )


def with_server(state: StateDir, endpoint: Endpoint, program: Path | None, lock: int) -> Endpoint:
    """The endpoint, once its server answers: the one that runs, or one that is started."""
    running = processes.find_running(pid_file(state, "server"), state.database)
    if running and running.pid == endpoint.server_pid:
        return endpoint
    # Its starter was killed before it could see the server answer; the ports are on record.
    if running and (ready := _await_server(state, endpoint, running)):
        return ready
    _refuse_second(state)
    free = shutil.disk_usage(state.path).free
    if free < SPACE_BYTES:
        raise EmbeddedError(
            "no space left for the state directory",
            f"{state.path} ({free // 1_000_000} MB free)",
            f"free at least {SPACE_BYTES // 1_000_000} MB, or set HOLDFAST_STATE_DIR elsewhere",
        )
    program = program or server.binary()
    for keep in (True, False, False):
        endpoint = server.with_free_ports(endpoint, keep)
        state.write(endpoint.model_copy(update={"server_pid": 0}))
        log = state.logs / "server.log"
        process = processes.spawn(
            server.command(program, state, endpoint),
            pid_file(state, "server"),
            log,
            {"PATH": defpath, "HOME": str(state.path)},
            lock,
        )
        if ready := _await_server(state, endpoint, _with_pid(state, process.pid)):
            return ready
        # Somebody took a port between our look and the server's; anything else is final.
        if "address already in use" not in processes.last_line(log):
            break
    _refuse_damage(state)
    raise EmbeddedError(
        "the Temporal server ends while it starts", processes.last_line(log), f"see {log}"
    )


def _with_pid(state: StateDir, pid: int) -> Record | None:
    record = record_of(state, "server")
    return record if record and record.pid == pid else None


def _refuse_second(state: StateDir) -> None:
    """Two servers on one database destroy it."""
    users = processes.users_of(state.database, ENDING_SECONDS)
    if users:
        raise EmbeddedError(
            "another Temporal server is using this database",
            f"{state.database} (pid {', '.join(map(str, users))})",
            "end that process first",
        )


def _refuse_damage(state: StateDir) -> None:
    """A server that does not start on a damaged database says so in its own words, of SQLite."""
    why = database.find_trouble(state.database)
    if why:
        raise EmbeddedError(
            "the database of the embedded server is damaged",
            f"{state.database} {why}",
            f"move {state.database.name}* away and start again: its runs are lost, unless you have"
            f" a backup; what the server said is in {state.logs / 'server.log'}",
        )


def _await_server(state: StateDir, endpoint: Endpoint, serving: Record | None) -> Endpoint | None:
    """The endpoint, on record as answering; None: the process ended."""
    deadline = time.monotonic() + READY_SECONDS
    while serving and processes.is_alive(serving, state.database):
        if server.answers(endpoint):
            ready = endpoint.model_copy(update={"server_pid": serving.pid})
            state.write(ready)
            return ready
        if time.monotonic() > deadline:
            _refuse_damage(state)
            raise EmbeddedError(
                "the Temporal server does not answer",
                f"{endpoint.target.address} after {READY_SECONDS:.0f} s",
                f"see {state.logs / 'server.log'}, or stop it with `starter.py down`",
            )
        time.sleep(0.05)
    return None
