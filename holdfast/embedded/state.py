"""What the embedded server keeps: the state directory, its locks, and `endpoint.json`.

lock            exclusive while processes are started or stopped
lease           shared by every starter at work; nobody holds it: the server may stop as idle
endpoint.json   ports, task queue and which worker runs; never a secret
server.pid, worker.pid   pid, start and program, written by the process itself before it becomes it
worker.ready    pid of the last worker that came up
hold            present: do not stop as idle (`up`)
stopped         present: a person said `down`, watchers must not heal
roots           what a Goal may name, and what is below it: path, device and inode, one a line
cleaned         touched whenever a worker has cleaned up
demo/           the example repository, as `demo` made it and a person changed it
edits/          plans as people changed them, until their runs have taken them
receipt.key     what signs receipts, made with the first one
baselines/      remarks that are known, a file for each repository
mcp/            what MCP servers told of their tools last, a file for each
temporal.db, store/, journal/, reports/, snapshots/, logs/

The folder is its owner's alone: one that another user owns or can write into is refused.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.deployment.settings import Settings
from holdfast.embedded import private
from holdfast.embedded.processes import Record
from holdfast.embedded.trouble import explained
from holdfast.errors import EmbeddedError
from holdfast.temporal.connection import Target
from holdfast.text.mistakes import mistakes

ENDPOINT_BYTES = 64 * 1024
LOCK_SECONDS = 60.0
"""Longer than any start or clean stop takes; a lock held longer is reported, not waited for."""


class Endpoint(BaseModel):
    """Address of the embedded server, and the worker that serves it: `endpoint.json`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    port: int = Field(ge=0, le=65_535)
    ui_port: int = Field(ge=0, le=65_535)
    http_port: int = Field(ge=0, le=65_535)
    metrics_port: int = Field(ge=0, le=65_535)
    task_queue: str = Field(pattern=r"\A[A-Za-z0-9._-]{1,100}\z")
    store_url: str
    salt: str = Field(max_length=100)
    """Random; keeps the hash below from being looked up."""
    server_pid: int = Field(0, ge=0)
    """The server that was seen to answer; 0: none yet."""
    worker_pid: int = Field(0, ge=0)
    worker_version: str = Field("", max_length=200)
    worker_environment: str = Field("", max_length=200)
    """Salted hash of the worker's model environment; empty: it has no endpoint."""
    failed_starts: int = Field(0, ge=0)
    """Workers in a row that ended before they came up."""
    draining: tuple[Record, ...] = ()
    """Replaced workers that may still finish calls."""
    key_file: str = ""
    """File of the keys that the worker encrypts with; empty: it does not."""
    project: str = ""
    """The folder of the project that is served, which it was started for; empty: none; of several
    all of them.
    """

    @property
    def target(self) -> Target:
        """Return what `holdfast.temporal.connection.connect` takes."""
        return Target(
            address=f"127.0.0.1:{self.port}",
            task_queue=self.task_queue,
            store_url=self.store_url,
            ui_url=f"http://127.0.0.1:{self.ui_port}",
            key_file=self.key_file,
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
    def pace(self) -> Path:
        """Folder by which worker processes keep the deployment's own rates and limits in flight."""
        return self.path / "pace"

    @property
    def receipt_key(self) -> Path:
        """File of the key that signs receipts."""
        return self.path / "receipt.key"

    @property
    def reports(self) -> Path:
        return self.path / "reports"

    @property
    def baselines(self) -> Path:
        return self.path / "baselines"

    @property
    def edits(self) -> Path:
        return self.path / "edits"

    @property
    def inputs(self) -> Path:
        """Folder of content that programs gave as inputs, by digest."""
        return self.path / "inputs"

    @property
    def snapshots(self) -> Path:
        return self.path / "snapshots"

    @property
    def tools(self) -> Path:
        """Folder of what tools have made and can make again."""
        return self.path / "tools"

    @property
    def servers(self) -> Path:
        """Folder of the tool lists that MCP servers last gave."""
        return self.path / "mcp"

    @property
    def heard(self) -> Path:
        """File of the addresses of endpoints that have answered."""
        return self.path / "heard"

    @property
    def held(self) -> Path:
        """Folder that records which attempts each worker process holds."""
        return self.path / "held"

    @property
    def cleaned(self) -> Path:
        return self.path / "cleaned"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def worker_log(self, number: int) -> Path:
        """Return the log of one process of the worker; the first has the plain name."""
        return self.logs / ("worker.jsonl" if number == 1 else f"worker-{number}.jsonl")

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
        """Create what is missing, private to the user. EmbeddedError for what is another user's or
        open to others.
        """
        private.make_folder(self.path)
        for folder in (self.store, self.journal, self.logs):
            private.make_folder(folder)
        for folder in (self.reports, self.snapshots, self.edits):
            if os.path.lexists(folder):
                private.make_folder(folder)

    def endpoint(self) -> Endpoint | None:
        """Return the recorded endpoint; None if nothing was ever started here.

        EmbeddedError if the file is not plausible: starting anew could put a second server on one
        database.
        """
        path = self.path / "endpoint.json"
        remedy = (
            "put it back from a backup, or stop with `starter.py down` and move it away: open runs"
            " then wait forever on the task queue whose name it held"
        )
        try:
            endpoint = Endpoint.model_validate_json(private.read(path, ENDPOINT_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = f"{path} ({error.strerror})"
            raise EmbeddedError("endpoint.json cannot be read", why, remedy) from None
        except ValidationError as error:
            why = f"{path} ({mistakes(error, 'JSON')[0][:250]})"
            raise EmbeddedError("endpoint.json is damaged", why, remedy) from None
        if endpoint.store_url != self.store.as_uri():
            raise EmbeddedError(
                "endpoint.json is of another deployment",
                f"{path} (its store is {endpoint.store_url!r:.200})",
                "move the directory back, or set HOLDFAST_STATE_DIR to a new one",
            )
        return endpoint

    def write(self, endpoint: Endpoint) -> None:
        """Replace `endpoint.json` in one step, so that readers need no lock; writers hold one."""
        private.write(self.path / "endpoint.json", endpoint.model_dump_json(indent=1))

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the exclusive lock. Yields its descriptor, which a starting process inherits until
        it has written its record.
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


def embedded_target(settings: Settings) -> Target:
    """Return the target of this state directory's server. ValueError if none was ever started."""
    endpoint = StateDir.of(settings).endpoint()
    if endpoint is None:
        raise ValueError(f"{settings.state_dir}: nothing was started there; use starter.py up")
    return endpoint.target


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Closing releases the lock. To unlock it would release it for the child that inherited it, too.
    descriptor = private.open_file(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flock(descriptor: int, kind: int) -> bool:
    """True if the lock could be had at once."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def lease(settings: Settings) -> Iterator[None]:
    """Keep server and worker from stopping as idle. Take it before `ensure_up`; the kernel drops it
    with the process.
    """
    state = StateDir.of(settings)
    with explained(state.path):
        state.create()
        opened = _opened(state.path / "lease")
        descriptor = opened.__enter__()
    try:
        # Waits only while an idle worker, which holds it exclusively, stops the server.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        opened.__exit__(None, None, None)


def is_leased(state: StateDir) -> bool:
    """True if a starter holds a lease."""
    try:
        with _opened(state.path / "lease") as descriptor:
            return not flock(descriptor, fcntl.LOCK_EX)
    except (FileNotFoundError, NotADirectoryError):
        return False


@contextmanager
def retiring(state: StateDir) -> Iterator[bool]:
    """Keep starters out while an idle server stops. Yields False if a starter came first."""
    with _opened(state.path / "lock") as lock, _opened(state.path / "lease") as lease_file:
        yield (
            not state.hold.exists()
            and flock(lock, fcntl.LOCK_EX)
            and flock(lease_file, fcntl.LOCK_EX)
        )
