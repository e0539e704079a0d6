"""The interface that starters use; the bodies follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.settings import Settings
from orchestrator.temporal import Target

Caller = Literal["starter", "watcher", "worker"]


class EmbeddedError(Exception):
    """The embedded server cannot run; one line: what, which, what to do."""


@dataclass(frozen=True)
class Endpoint:
    """Where the embedded server listens."""

    port: int
    ui_port: int
    http_port: int
    metrics_port: int
    target: Target


@dataclass(frozen=True)
class Status:
    """What lives right now. A pid is None when that process is not running."""

    state_dir: Path
    endpoint: Endpoint | None
    server_pid: int | None
    worker_pid: int | None
    version: str
    held: bool
    """Whether `up` holds the processes."""
    leases: bool
    """Whether a starter holds a lease."""


def ensure_up(settings: Settings, caller: Caller = "starter") -> Endpoint:
    """Start whichever of server and worker is dead; return when the server answers.

    Blocking (50 ms when all is well, about a second at a start): from async code use
    `asyncio.to_thread`. The only
    function that starts processes. Call it once as "starter", which also replaces a worker of
    another version or model
    environment, then every 2 s as "watcher", which only heals. Raises EmbeddedError.
    """
    raise NotImplementedError


@contextmanager
def lease(settings: Settings) -> Iterator[None]:
    """Keep server and worker from stopping as idle. Take it before `ensure_up`. The kernel drops it
    with the process.
    """
    raise NotImplementedError
    yield


def up(settings: Settings) -> Endpoint:
    """`ensure_up`, and hold the processes up until `down`, whether anybody uses them or not."""
    raise NotImplementedError


def down(settings: Settings) -> tuple[int, ...]:
    """Stop server and worker now, cleanly; return the pids that were stopped (empty: none ran).
    Runs that are open go on at the next `ensure_up`.
    """
    raise NotImplementedError


def status(settings: Settings) -> Status:
    """What lives, without starting or changing anything."""
    raise NotImplementedError


def register_root(settings: Settings, path: Path) -> None:
    """Allow Goals of this user to name files and repositories below `path`."""
    raise NotImplementedError


def allowed_roots(settings: Settings) -> tuple[Path, ...]:
    """The folders below which a Goal may name files: those of the settings and, embedded, the
    registered ones. Read it each time: roots are added while a worker runs.
    """
    raise NotImplementedError


def probe_local(address: str = "localhost:7233") -> bool:
    """Whether something listens where a developer's own Temporal server usually does."""
    raise NotImplementedError
