"""What the embedded server keeps: the state directory, its locks, and `endpoint.json`.

lock            exclusive while processes are started or stopped
lease           shared by every starter at work; nobody holds it: the server may stop as idle
endpoint.json   ports, task queue and which worker runs; never a secret
server.pid, worker.pid   written by the process itself before it becomes what it is
worker.ready    pid of the last worker that came up
hold            present: do not stop as idle (`up`)
stopped         present: a person said `down`, watchers must not heal
roots           folders below which a Goal may name files, one JSON string a line
temporal.db, store/, journal/, logs/
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.settings import Settings
from orchestrator.temporal import Target

LOCK_SECONDS = 60.0
"""Longer than any start or clean stop takes; a lock held longer is reported, not waited for."""


class EmbeddedError(Exception):
    """The embedded server cannot run. One line: what, which, what to do."""

    def __init__(self, what: str, which: object, remedy: str) -> None:
        super().__init__(f"{what}: {which}; {remedy}")


class StateGone(EmbeddedError):
    """Somebody deleted the state directory while its processes ran: they end."""


class Endpoint(BaseModel):
    """Where the embedded server listens and which worker serves it: `endpoint.json`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    port: int
    ui_port: int
    http_port: int
    metrics_port: int
    task_queue: str
    store_url: str
    salt: str
    """Random; keeps the hash below from being looked up."""
    server_pid: int = 0
    """The server that was seen to answer; 0: none yet."""
    worker_pid: int = 0
    worker_version: str = ""
    worker_environment: str = ""
    """Salted hash of the worker's model environment; empty: it has no endpoint."""
    failed_starts: int = 0
    """Workers in a row that ended before they came up."""
    draining: tuple[int, ...] = ()
    """Replaced workers that may still finish calls."""

    @property
    def target(self) -> Target:
        """What `orchestrator.temporal.connect` takes."""
        return Target(
            address=f"127.0.0.1:{self.port}",
            task_queue=self.task_queue,
            store_url=self.store_url,
            ui_url=f"http://127.0.0.1:{self.ui_port}",
        )


@dataclass(frozen=True)
class StateDir:
    """The paths below one state directory."""

    path: Path

    @classmethod
    def of(cls, settings: Settings) -> StateDir:
        # Resolved: two spellings of one folder must not become two servers on one database.
        return cls(settings.state_dir.expanduser().resolve())

    @property
    def database(self) -> Path:
        return self.path / "temporal.db"

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def ready(self) -> Path:
        return self.path / "worker.ready"

    @property
    def hold(self) -> Path:
        return self.path / "hold"

    @property
    def stopped(self) -> Path:
        return self.path / "stopped"

    @property
    def roots(self) -> Path:
        return self.path / "roots"

    def create(self) -> None:
        """Make what is missing, private to the user."""
        for folder in (self.path, self.store, self.journal, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    def endpoint(self) -> Endpoint | None:
        """None: nothing was ever started here, or the file is not ours to read."""
        try:
            return Endpoint.model_validate_json((self.path / "endpoint.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None

    def write(self, endpoint: Endpoint) -> None:
        """Replace `endpoint.json` in one step, so that readers need no lock."""
        fresh = self.path / "endpoint.json.new"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(endpoint.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path / "endpoint.json")

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the exclusive lock; yields its descriptor, which a process that is being started
        inherits until it has recorded itself.
        """
        with _opened(self.path / "lock") as descriptor:
            deadline = time.monotonic() + LOCK_SECONDS
            while not flock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise EmbeddedError(
                        "another process is starting or stopping the embedded server",
                        self.path / "lock",
                        "wait for it or end it",
                    )
                time.sleep(0.05)
            yield descriptor


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Closing releases the lock. An explicit unlock would also release it for the child that
    # inherited it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flock(descriptor: int, kind: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def lease(settings: Settings) -> Iterator[None]:
    """Keep server and worker from stopping as idle. Take it before `ensure_up`. The kernel drops
    it with the process.
    """
    state = StateDir.of(settings)
    with said(state):
        state.create()
        opened = _opened(state.path / "lease")
        descriptor = opened.__enter__()
    try:
        # Waits only while an idle worker, which holds it exclusively, stops the server.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        opened.__exit__(None, None, None)


def leased(state: StateDir) -> bool:
    """Whether a starter holds a lease."""
    try:
        with _opened(state.path / "lease") as descriptor:
            return not flock(descriptor, fcntl.LOCK_EX)
    except (FileNotFoundError, NotADirectoryError):
        return False


@contextmanager
def retiring(state: StateDir) -> Iterator[bool]:
    """Keep starters out while an idle server stops. Yields False when somebody came first."""
    with _opened(state.path / "lock") as lock, _opened(state.path / "lease") as lease_file:
        yield (
            not state.hold.exists()
            and flock(lock, fcntl.LOCK_EX)
            and flock(lease_file, fcntl.LOCK_EX)
        )


@contextmanager
def said(state: StateDir) -> Iterator[None]:
    """Turn what the file system refuses into one line."""
    try:
        yield
    except OSError as error:
        remedy = "set HOLDFAST_STATE_DIR to a folder of yours"
        what = "the state directory cannot be used"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what, remedy = "no space left for the state directory", "free some space, or " + remedy
        reason = f" ({error.strerror})" if error.strerror else ""
        raise EmbeddedError(what, f"{error.filename or state.path}{reason}", remedy) from error


def register_root(settings: Settings, path: Path) -> None:
    """Allow Goals of this user to name files and repositories below `path`."""
    state = StateDir.of(settings)
    root = path.expanduser().resolve()
    if root in _registered(state):
        return
    with said(state):
        state.create()
        # One short append: two starters at once cannot mix their lines.
        with os.fdopen(
            os.open(state.roots, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w"
        ) as file:
            file.write(json.dumps(str(root)) + "\n")


def allowed_roots(settings: Settings) -> tuple[Path, ...]:
    """The folders below which a Goal may name files: those of the settings and, when the server is
    embedded, the registered ones. Read it each time: roots are added while a worker runs.
    """
    return (*settings.allowed_roots, *_registered(StateDir.of(settings)))


def _registered(state: StateDir) -> tuple[Path, ...]:
    try:
        lines = state.roots.read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(Path(json.loads(line)) for line in lines)
