"""A client of a deployment's server, and who works there: what starting a run needs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from holdfast.contracts import Report
from holdfast.deployment.settings import Settings
from holdfast.errors import NoWorker, Refused
from holdfast.storage import Store
from holdfast.storage.keys import VARIABLE
from holdfast.temporal.connection import Target
from holdfast.workers.pollers import Poller, find_pollers
from holdfast.workers.served import find_unserved

DESCRIBED = timedelta(seconds=3)
WORKER_SECONDS = 10.0
"""How long a start waits for somebody to poll the task queue of a server of one's own."""


@dataclass
class Connection:
    """A connected client, and what it is connected to."""

    settings: Settings
    target: Target
    client: Client
    trouble: str = field(default="", init=False)
    """Why the server cannot be kept up just now, said by whoever keeps it up; empty when it can."""
    new_worker: str = field(default="", init=False)
    """Why a worker was replaced for this command; empty: none was, or the new one is at work."""

    @property
    def store(self) -> Store:
        """The store of this deployment's blobs."""
        return self.target.store

    def handle(self, run_id: str) -> WorkflowHandle[Any, Report]:
        """Return a handle of the run. Ask again after a wait: the client may have been replaced
        together with the server.
        """
        return self.client.get_workflow_handle(run_id, result_type=Report)

    def link(self, run_id: str) -> str:
        """Return the Web UI address of a run; empty if the Web UI is not known."""
        if not self.target.ui_url:
            return ""
        base = self.target.ui_url.rstrip("/")
        return f"{base}/namespaces/{self.target.namespace}/workflows/{run_id}"

    async def board(self, run_id: str) -> str:
        """Return the Web UI address of a run's board; that of the run itself if the server does not
        say which execution it is.
        """
        link = self.link(run_id)
        if not link:
            return ""
        try:
            found = await self.handle(run_id).describe(rpc_timeout=DESCRIBED)
        except RPCError:
            return link
        return f"{link}/{found.run_id}/user-metadata"

    async def has(self, run_id: str) -> bool:
        """True if the server knows a run of this id, open or closed. RPCError."""
        try:
            await self.handle(run_id).describe(rpc_timeout=DESCRIBED)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True


class Tell(Protocol):
    """Shows a line to whoever waits for the run to start."""

    def __call__(self, line: str, *, warning: bool = False) -> None:
        """Show a line: a `warning` of something to repair, or what is being waited for."""
        ...


def tell_nobody(line: str, *, warning: bool = False) -> None:
    """Show nothing: nobody waits who would read it."""


async def require_worker(
    connection: Connection, tell: Tell, *, models: bool, wait: float = WORKER_SECONDS
) -> None:
    """Return once a live worker polls the queue; NoWorker after `wait` seconds without one, and
    Refused if it encrypts and this connection does not.

    Warns if the run asks models and no worker does. The embedded server has its own worker.
    """
    target = connection.target
    if target.embedded:
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    told = False
    while not (alive := await _alive(connection.client, target.task_queue)):
        if loop.time() >= until:
            raise NoWorker(
                f"no worker polls task queue {target.task_queue!r} at {target.address};"
                " nothing was started"
            )
        if not told:
            told = True
            tell(f"Waiting for a worker on task queue {target.task_queue!r} …")
        await asyncio.sleep(0.5)
    _check_keys(target, alive)
    if models:
        for line in await find_unserved(
            connection.client, target.task_queue, embedded=False, models=True
        ):
            tell(f"{line[0].upper()}{line[1:]}. The run starts, and its calls wait.", warning=True)


async def require_keys(connection: Connection) -> None:
    """Refused if the workers that live encrypt and this connection does not."""
    target = connection.target
    if not (target.embedded or target.keys.writes):
        _check_keys(target, await _alive(connection.client, target.task_queue))


def _check_keys(target: Target, alive: Sequence[Poller]) -> None:
    if any(each.encrypts for each in alive) and not target.keys.writes:
        raise Refused(
            f"the workers of task queue {target.task_queue!r} encrypt, and {VARIABLE} is not set"
            " here: give it the same keys; nothing was started"
        )


async def _alive(client: Client, queue: str) -> tuple[Poller, ...]:
    return tuple(each for each in (await find_pollers(client, [queue]))[queue] if each.alive)
