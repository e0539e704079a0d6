"""Who starts, replaces and stops the server and the worker. `ensure_up` is the only function that
starts processes.
"""

from __future__ import annotations

import secrets
import shutil
import sys
import time
from dataclasses import dataclass, field
from os import defpath
from pathlib import Path
from typing import Literal

from orchestrator.embedded import processes, server
from orchestrator.embedded.identity import code_version, model_environment, worker_environment
from orchestrator.embedded.state import (
    EmbeddedError,
    Endpoint,
    StateDir,
    StateGone,
    leased,
    said,
)
from orchestrator.settings import HOME, Settings

Caller = Literal["starter", "watcher", "worker"]
READY_SECONDS = 30.0
WORKER_STOP_SECONDS = 5.0
FAILED_STARTS = 3
"""So many workers in a row that never came up are an error, not an accident."""
SPACE_BYTES = 50_000_000
"""Below this the database would soon fail half-way."""


WORKER = (sys.executable, str(HOME / "worker.py"))


@dataclass(frozen=True)
class Programs:
    """What is started: the server's program (None: the installed one) and the worker's command,
    to which `--embedded STATE_DIR` is added.
    """

    server: Path | None = None
    worker: tuple[str, ...] = field(default_factory=lambda: WORKER)


@dataclass(frozen=True)
class Status:
    """What lives right now. A pid is None when that process is not running."""

    state_dir: Path
    endpoint: Endpoint | None
    server_pid: int | None
    worker_pid: int | None
    version: str
    """Of this code; the worker's is `endpoint.worker_version`."""
    held: bool
    """Whether `up` holds the processes."""
    leases: bool
    """Whether a starter holds a lease."""


def ensure_up(
    settings: Settings, caller: Caller = "starter", programs: Programs | None = None
) -> Endpoint:
    """Start whichever of server and worker is dead; return when the server answers.

    Blocking (some 10 ms when all is well, about a second at a start): from async code use
    `asyncio.to_thread`. Call it once as "starter", which also replaces a worker of another version
    or model environment, then every 2 s as "watcher", which only heals. The worker itself heals
    the server. Raises EmbeddedError, also for a watcher after `down`.
    """
    state = StateDir.of(settings)
    programs = programs or Programs()
    with said(state):
        if caller == "worker" and state.endpoint() is None:
            raise StateGone("the state directory is gone", state.path, "nothing is left to serve")
        state.create()
        if caller == "starter":
            state.stopped.unlink(missing_ok=True)
        current = state.endpoint()
        if current and _healthy(state, current) and not _stale(current, settings, caller):
            return current
        with state.locked() as lock:
            if caller != "starter" and state.stopped.exists():
                raise EmbeddedError(
                    "the embedded server was stopped by `down`",
                    state.path,
                    "start it with `starter.py up`; open runs then go on",
                )
            endpoint = state.endpoint() or _new_endpoint(state)
            endpoint = _with_server(state, endpoint, programs, lock)
            if caller != "worker":
                endpoint = _with_worker(state, endpoint, settings, caller, programs, lock)
            return endpoint


def up(settings: Settings, programs: Programs | None = None) -> Endpoint:
    """`ensure_up`, and hold the processes up until `down`, whether anybody uses them or not."""
    state = StateDir.of(settings)
    with said(state):
        state.create()
        state.hold.touch(mode=0o600)
    return ensure_up(settings, programs=programs)


def down(settings: Settings) -> tuple[int, ...]:
    """Stop server and worker now, cleanly; return the pids that were stopped (empty: none ran).
    Runs that are open go on at the next `ensure_up`.
    """
    state = StateDir.of(settings)
    endpoint = state.endpoint()
    if endpoint is None:
        return ()
    with said(state), state.locked():
        state.hold.unlink(missing_ok=True)
        state.stopped.touch(mode=0o600)
        stopped = [
            pid
            for pid in {processes.recorded(_pid(state, "worker")), *endpoint.draining}
            if processes.stop(pid, state.path, WORKER_STOP_SECONDS)
        ]
        pid = processes.recorded(_pid(state, "server"))
        if server.stop(state, pid):
            stopped.append(pid)
        forgotten = {"worker_pid": 0, "failed_starts": 0, "draining": ()}
        state.write(endpoint.model_copy(update=forgotten))
        return tuple(stopped)


def status(settings: Settings) -> Status:
    """What lives, without starting or changing anything."""
    state = StateDir.of(settings)
    return Status(
        state_dir=state.path,
        endpoint=state.endpoint(),
        server_pid=processes.running(_pid(state, "server"), state.database),
        worker_pid=processes.running(_pid(state, "worker"), state.path),
        version=code_version(),
        held=state.hold.exists(),
        leases=leased(state),
    )


def _pid(state: StateDir, name: Literal["server", "worker"]) -> Path:
    return state.path / f"{name}.pid"


def _healthy(state: StateDir, endpoint: Endpoint) -> bool:
    """Whether both live, and the server is the one that was seen to answer."""
    serving = processes.running(_pid(state, "server"), state.database)
    return serving == endpoint.server_pid and bool(
        processes.running(_pid(state, "worker"), state.path)
    )


def _stale(endpoint: Endpoint, settings: Settings, caller: Caller) -> bool:
    """Whether the worker must be replaced. Only a starter, once, replaces a worker that could serve
    somebody else: two that watch would otherwise replace each other's for ever.
    """
    if caller == "worker":
        return False
    ours = model_environment(settings, endpoint.salt)
    if caller == "watcher":
        return bool(ours) and not endpoint.worker_environment
    return endpoint.worker_version != code_version() or (
        bool(ours) and ours != endpoint.worker_environment
    )


def _new_endpoint(state: StateDir) -> Endpoint:
    return Endpoint(
        port=0,
        ui_port=0,
        http_port=0,
        metrics_port=0,
        # Nobody who only knows the project's name can put work on this queue.
        task_queue=f"holdfast-{secrets.token_hex(4)}",
        store_url=state.store.as_uri(),
        salt=secrets.token_hex(16),
    )


def _with_server(state: StateDir, endpoint: Endpoint, programs: Programs, lock: int) -> Endpoint:
    running = processes.running(_pid(state, "server"), state.database)
    if running and running == endpoint.server_pid:
        return endpoint
    # Its starter was killed before it could see the server answer; the ports are on record.
    if running and (ready := _await_server(state, endpoint, running)):
        return ready
    free = shutil.disk_usage(state.path).free
    if free < SPACE_BYTES:
        raise EmbeddedError(
            "no space left for the state directory",
            f"{state.path} ({free // 1_000_000} MB free)",
            f"free at least {SPACE_BYTES // 1_000_000} MB, or set HOLDFAST_STATE_DIR elsewhere",
        )
    program = programs.server or server.binary()
    for keep in (True, False, False):
        endpoint = server.with_free_ports(endpoint, keep)
        state.write(endpoint.model_copy(update={"server_pid": 0}))
        log = state.logs / "server.log"
        process = processes.spawn(
            server.command(program, state, endpoint),
            _pid(state, "server"),
            log,
            {"PATH": defpath, "HOME": str(state.path)},
            lock,
        )
        if ready := _await_server(state, endpoint, process.pid):
            return ready
        # Somebody took a port between our look and the server's; anything else is final.
        if "address already in use" not in processes.last_line(log):
            break
    raise EmbeddedError(
        "the Temporal server ends while it starts", processes.last_line(log), f"see {log}"
    )


def _await_server(state: StateDir, endpoint: Endpoint, pid: int) -> Endpoint | None:
    """The endpoint, on record as answering; None: the process ended."""
    deadline = time.monotonic() + READY_SECONDS
    while processes.alive(pid, state.database):
        if server.answers(endpoint):
            ready = endpoint.model_copy(update={"server_pid": pid})
            state.write(ready)
            return ready
        if time.monotonic() > deadline:
            raise EmbeddedError(
                "the Temporal server does not answer",
                f"{endpoint.target.address} after {READY_SECONDS:.0f} s",
                f"see {state.logs / 'server.log'}, or stop it with `starter.py down`",
            )
        time.sleep(0.05)
    return None


def _with_worker(
    state: StateDir,
    endpoint: Endpoint,
    settings: Settings,
    caller: Caller,
    programs: Programs,
    lock: int,
) -> Endpoint:
    running = processes.running(_pid(state, "worker"), state.path)
    if running and not _stale(endpoint, settings, caller):
        return endpoint
    log = state.logs / "worker.log"
    draining = tuple(pid for pid in endpoint.draining if processes.alive(pid, state.path))
    failed = 0
    if running:
        # It takes no more work and finishes what it has; its successor need not wait.
        processes.terminate(running, state.path)
        draining = (*draining, running)
    else:
        failed = _failed_starts(state, endpoint, log)
    process = processes.spawn(
        [*programs.worker, "--embedded", str(state.path)],
        _pid(state, "worker"),
        log,
        worker_environment(settings),
        lock,
    )
    started = endpoint.model_copy(
        update={
            "worker_pid": process.pid,
            "worker_version": code_version(),
            "worker_environment": model_environment(settings, endpoint.salt),
            "failed_starts": failed,
            "draining": draining,
        }
    )
    state.write(started)
    return started


def _failed_starts(state: StateDir, endpoint: Endpoint, log: Path) -> int:
    """How many workers in a row ended before they came up; EmbeddedError when it is one too many,
    once, so that the next call tries anew.
    """
    if not endpoint.worker_pid or processes.recorded(state.ready) == endpoint.worker_pid:
        return 0
    failed = endpoint.failed_starts + 1
    if failed < FAILED_STARTS:
        return failed
    state.write(endpoint.model_copy(update={"failed_starts": 0, "worker_pid": 0}))
    raise EmbeddedError("the worker ends while it starts", processes.last_line(log), f"see {log}")
