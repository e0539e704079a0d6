"""Starts, replaces and stops server and worker. Only `ensure_up` starts processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from holdfast.deployment.settings import HOME, PACKAGE, Settings
from holdfast.deployment.siblings import siblings_of
from holdfast.embedded import private, processes, server
from holdfast.embedded.identity import code_version, model_environment, worker_environment
from holdfast.embedded.starting import first_endpoint, pid_file, record_of, running_pid, with_server
from holdfast.embedded.state import Endpoint, StateDir, is_leased
from holdfast.embedded.trouble import StateGone, explained
from holdfast.errors import EmbeddedError
from holdfast.storage.keys import keyring

Caller = Literal["starter", "watcher", "worker"]
WORKER_STOP_SECONDS = 5.0
SEVERAL = "several projects"
"""Stands before the folders of a worker that serves several projects."""
JUST_UP_SECONDS = 20.0
"""How long a worker that came up may take until the server knows that it asks for work."""
FAILED_STARTS = 3
"""This many workers in a row that never came up are an error, not an accident."""


def _worker() -> tuple[str, ...]:
    """Return the command of a worker: the file of a checkout, the module of an installation."""
    script = PACKAGE.parent / "worker.py"
    # -P: a folder in which somebody starts a command brings none of its own modules.
    module = ("-P", "-m", "holdfast.serving")
    return (sys.executable, *((str(script),) if HOME != PACKAGE else module))


WORKER = _worker()


@dataclass(frozen=True)
class Programs:
    """The programs to start: the server's (None: the installed one) and the worker's command, to
    which `--embedded STATE_DIR` is added.
    """

    server: Path | None = None
    worker: tuple[str, ...] = field(default_factory=lambda: WORKER)


@dataclass(frozen=True)
class Status:
    """What is running now; the pid of a process that is not running is None."""

    state_dir: Path
    endpoint: Endpoint | None
    server_pid: int | None
    worker_pid: int | None
    version: str
    """Version of this code; the worker's is `endpoint.worker_version`."""
    held: bool
    """True if `up` holds the processes."""
    leases: bool
    """True if a starter holds a lease."""

    def worker_pids(self) -> tuple[int, ...]:
        """Return all processes of the worker, the recorded one first. Looks at every process of the
        machine.
        """
        if self.worker_pid is None:
            return ()
        others = siblings_of(self.state_dir, self.worker_pid)
        return self.worker_pid, *sorted(each.pid for each in others)


def ensure_up(
    settings: Settings, caller: Caller = "starter", programs: Programs | None = None
) -> Endpoint:
    """Start whichever of server and worker is dead; return when the server answers.

    Blocks (some 10 ms when all is well, about a second at a start): use `asyncio.to_thread` from
    async code. Call it once as "starter", which also replaces a worker of another version or model
    environment, then every 2 s as "watcher", which only heals. The worker itself heals the server.
    Raises EmbeddedError, also for a watcher after `down`; BadSettings, before anything starts, for
    two projects of one name.
    """
    settings.check_projects()
    keyring(settings.key_file)
    state = StateDir.of(settings)
    programs = programs or Programs()
    with explained(state.path):
        if caller == "worker" and state.endpoint() is None:
            raise StateGone("the state directory is gone", state.path, "nothing is left to serve")
        state.create()
        if caller == "starter":
            state.stopped.unlink(missing_ok=True)
        current = state.endpoint()
        refuse_other_project(state, current, settings)
        if current and _healthy(state, current) and not _stale(current, settings, caller):
            return current
        with state.locked() as lock:
            if caller != "starter" and state.stopped.exists():
                raise EmbeddedError(
                    "the embedded server was stopped by `down`",
                    state.path,
                    "start it with `starter.py up`; open runs then go on",
                )
            endpoint = state.endpoint() or first_endpoint(
                state, _project(settings), settings.key_file
            )
            refuse_other_project(state, endpoint, settings)
            endpoint = with_server(state, endpoint, programs.server, lock)
            if caller != "worker":
                endpoint = _with_worker(state, endpoint, settings, caller, programs, lock)
            return endpoint


def up(settings: Settings, programs: Programs | None = None) -> Endpoint:
    """Call `ensure_up` and keep the processes up until `down`, used or not."""
    settings.check_projects()
    state = StateDir.of(settings)
    with explained(state.path):
        state.create()
        private.touch(state.hold)
    return ensure_up(settings, programs=programs)


def down(settings: Settings, tell: Callable[[str], None] = lambda _: None) -> tuple[int, ...]:
    """Stop server and worker cleanly; return the stopped pids (empty if none ran).

    Open runs go on at the next `ensure_up`. `tell` is given what is about to be waited for.
    """
    state = StateDir.of(settings)
    try:
        endpoint = state.endpoint()
    except EmbeddedError:
        # What runs is known by its own records, too.
        endpoint = None
    if endpoint is None and not any(record_of(state, each) for each in ("server", "worker")):
        return ()
    with explained(state.path):
        state.create()
        with state.locked():
            return _down(state, endpoint, tell)


def _down(
    state: StateDir, endpoint: Endpoint | None, tell: Callable[[str], None]
) -> tuple[int, ...]:
    state.hold.unlink(missing_ok=True)
    private.touch(state.stopped)
    worker = record_of(state, "worker")
    workers = [*((worker,) if worker else ()), *(endpoint.draining if endpoint else ())]
    stopped = []
    for record in dict.fromkeys(workers):
        if processes.is_alive(record, state.path):
            tell(
                f"Stopping worker {record.pid}: it has {WORKER_STOP_SECONDS:.0f} s to hand over"
                " what it is doing …"
            )
        if processes.stop(record, state.path, WORKER_STOP_SECONDS):
            stopped.append(record.pid)
    # Of a worker that had to be killed, now or by somebody else: they had this time as well.
    for left in siblings_of(state.path):
        left.kill()
        processes.let_go(left.pid)
        stopped.append(left.pid)
    serving = record_of(state, "server")
    if serving and processes.is_alive(serving, state.database):
        tell(f"Stopping server {serving.pid}: it closes its database …")
    if serving and server.stop(state, serving):
        stopped.append(serving.pid)
    if endpoint:
        forgotten = {"worker_pid": 0, "failed_starts": 0, "draining": ()}
        state.write(endpoint.model_copy(update=forgotten))
    return tuple(stopped)


def status(settings: Settings) -> Status:
    """Return what is running, without starting or changing anything."""
    state = StateDir.of(settings)
    return Status(
        state_dir=state.path,
        endpoint=state.endpoint(),
        server_pid=running_pid(state, "server"),
        worker_pid=running_pid(state, "worker"),
        version=code_version(*settings.folders),
        held=state.hold.exists(),
        leases=is_leased(state),
    )


def is_starting(settings: Settings) -> bool:
    """True if a worker lives that has not come up, or did so a moment ago: on a busy machine it may
    not ask for work yet.
    """
    state = StateDir.of(settings)
    pid = running_pid(state, "worker")
    if pid is None or _came_up(state) != pid:
        return pid is not None
    try:
        return time.time() - state.ready.stat().st_mtime < JUST_UP_SECONDS
    except OSError:
        return False


def _project(settings: Settings) -> str:
    if settings.projects:
        return f"{SEVERAL}: {os.pathsep.join(map(str, sorted(settings.projects)))}"
    return str(settings.project or "")


def refuse_other_project(state: StateDir, endpoint: Endpoint | None, settings: Settings) -> None:
    """Raise EmbeddedError if a state directory belongs to another project or another set of them,
    whose roles and tools its worker has.
    """
    if endpoint is None or endpoint.project == _project(settings):
        return
    served = endpoint.project
    several = served.startswith(SEVERAL)
    whose = served if several else f"the project {served}" if served else "no project"
    raise EmbeddedError(
        f"this state directory is that of {whose}",
        state.path,
        "leave HOLDFAST_STATE_DIR and state_dir unset, or give each project and each set of"
        " them one of its own",
    )


def _healthy(state: StateDir, endpoint: Endpoint) -> bool:
    """True if both are alive and the server has been seen to answer."""
    return running_pid(state, "server") == endpoint.server_pid and bool(
        running_pid(state, "worker")
    )


def _stale(endpoint: Endpoint, settings: Settings, caller: Caller) -> bool:
    """True if the worker must be replaced. Only a starter does so, once: two watchers would replace
    each other's for ever.
    """
    if caller == "worker":
        return False
    ours = model_environment(settings, endpoint.salt)
    if caller == "watcher":
        return bool(ours) and not endpoint.worker_environment
    return (
        endpoint.worker_version != code_version(*settings.folders)
        or (bool(ours) and ours != endpoint.worker_environment)
        # Whoever has none goes on with those that the deployment has.
        or settings.key_file not in ("", endpoint.key_file)
    )


def _with_worker(
    state: StateDir,
    endpoint: Endpoint,
    settings: Settings,
    caller: Caller,
    programs: Programs,
    lock: int,
) -> Endpoint:
    running = processes.find_running(pid_file(state, "worker"), state.path)
    if running and not _stale(endpoint, settings, caller):
        return endpoint
    log = state.logs / "worker.log"
    draining = tuple(each for each in endpoint.draining if processes.is_alive(each, state.path))
    failed = 0
    if running:
        # It takes no more work and finishes what it has; its successor need not wait.
        processes.terminate(running, state.path)
        draining = (*draining, running)
    else:
        failed = _failed_starts(state, endpoint, log)
    process = processes.spawn(
        [*programs.worker, "--embedded", str(state.path)],
        pid_file(state, "worker"),
        log,
        worker_environment(settings),
        lock,
    )
    started = endpoint.model_copy(
        update={
            "worker_pid": process.pid,
            "worker_version": code_version(*settings.folders),
            "worker_environment": model_environment(settings, endpoint.salt),
            "failed_starts": failed,
            "draining": draining,
            "key_file": settings.key_file or endpoint.key_file,
        }
    )
    state.write(started)
    return started


def _failed_starts(state: StateDir, endpoint: Endpoint, log: Path) -> int:
    """Return how many workers in a row ended before they came up. EmbeddedError when that is one
    too many; the next call tries anew.
    """
    if not endpoint.worker_pid or _came_up(state) == endpoint.worker_pid:
        return 0
    failed = endpoint.failed_starts + 1
    if failed < FAILED_STARTS:
        return failed
    state.write(endpoint.model_copy(update={"failed_starts": 0, "worker_pid": 0}))
    raise EmbeddedError("the worker ends while it starts", processes.last_line(log), f"see {log}")


def _came_up(state: StateDir) -> int:
    """Return the pid of the last worker that came up; 0 if none did."""
    try:
        return int(private.read(state.ready, 100))
    except (OSError, ValueError):
        return 0
