"""A client of the server that this command speaks to: the embedded one, or one of the operator's.

The embedded server is started here and nowhere else in the command line, and kept up for as long as
the command runs. A server of one's own is only ever connected to.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from cli.exits import Code, Stop
from cli.invocation import WORKER
from cli.screen.streams import say
from deployment.embedded import (
    EmbeddedError,
    Endpoint,
    StateDir,
    ensure_up,
    lease,
    probe_local,
)
from deployment.pollers import pollers
from deployment.served import VARIABLES, unserved
from deployment.settings import Settings
from deployment.storage import BadStore, DirectoryStore
from deployment.temporal import Target, Unreachable, configured, connect
from orchestrator.contracts import Report, Tier

LOCAL_ADDRESS = "localhost:7233"
LOCAL_UI_OFFSET = 1000
"""`temporal server start-dev` puts its Web UI this many ports above its own."""
CONNECT_SECONDS = 3.0
"""Short of the 5 s within which an unreachable server is reported, start-up of Python included."""
SILENT_SECONDS = 3.0
"""After this a wait for the embedded server is worth a line; a start takes about one."""
EMBEDDED_SECONDS = 30.0
"""Our own server answered just now: a busy machine is no reason to give it up sooner."""
WORKER_SECONDS = 10.0
"""How long a start waits for somebody to poll the task queue of a server of one's own."""
HEAL_SECONDS = 2.0
LOST_ENDPOINT = (
    "The worker before had a model endpoint; the one that this command started has none, because"
    f" this shell has none. Calls to models wait: set {VARIABLES} and run: starter.py up"
)
"""Said where it happens: who comes first replaces a worker that died or whose code was edited."""


@dataclass
class Connection:
    """A connected client, what it is connected to, and how it is kept connected."""

    settings: Settings
    target: Target
    client: Client
    trouble: str = field(default="", init=False)
    """Why the embedded processes cannot be kept up just now; empty when they can."""

    @property
    def store(self) -> DirectoryStore:
        """Where blobs of this deployment live."""
        return DirectoryStore.at(self.target.store_url)

    def handle(self, run_id: str) -> WorkflowHandle[Any, Report]:
        """The run of this id. Ask for it anew after a wait: healing may change the client."""
        return self.client.get_workflow_handle(run_id, result_type=Report)

    def link(self, run_id: str) -> str:
        """Where the Web UI shows this run; empty when the Web UI's address is not known."""
        if not self.target.ui_url:
            return ""
        base = self.target.ui_url.rstrip("/")
        return f"{base}/namespaces/{self.target.namespace}/workflows/{run_id}"

    async def heal(self) -> None:
        """Every 2 s, forever: start whichever embedded process has died. Cancel it to stop."""
        while self.target.embedded:
            try:
                endpoint = await asyncio.to_thread(ensure_up, self.settings, "watcher")
                if endpoint.target != self.target:
                    self.client = await connect(endpoint.target, CONNECT_SECONDS)
                    self.target = endpoint.target
                self.trouble = ""
            except (EmbeddedError, Unreachable) as error:
                self.trouble = str(error)
            await asyncio.sleep(HEAL_SECONDS)


@asynccontextmanager
async def connected(settings: Settings, *, embedded: bool) -> AsyncIterator[Connection]:
    """A connection for the length of a command. Raises Unreachable, EmbeddedError, Stop."""
    target = None if embedded else own_target(settings)
    opening = _own(settings, target) if target else _embedded(settings)
    async with opening as connection:
        try:
            yield connection
        except RPCError as error:
            raise told_by_server(error, connection.target.address) from error


@asynccontextmanager
async def _own(settings: Settings, target: Target) -> AsyncIterator[Connection]:
    yield Connection(settings, target, await connect(target, CONNECT_SECONDS))


@asynccontextmanager
async def _embedded(settings: Settings) -> AsyncIterator[Connection]:
    with lease(settings):
        endpoint = await _up(settings)
        client = await connect(endpoint.target, EMBEDDED_SECONDS)
        connection = Connection(settings, endpoint.target, client)
        healing = asyncio.create_task(connection.heal())
        try:
            yield connection
        finally:
            healing.cancel()
            await asyncio.gather(healing, return_exceptions=True)


async def _up(settings: Settings) -> Endpoint:
    """The embedded server, started where it was not; what takes long is said."""
    before = _known(settings)
    starting = asyncio.ensure_future(asyncio.to_thread(ensure_up, settings))
    await asyncio.wait({starting}, timeout=SILENT_SECONDS)
    if not starting.done():
        say("Waiting for the embedded server: it starts, or another command stops it …", "dim")
    endpoint = await starting
    if before and before.worker_environment and not endpoint.worker_environment:
        say(LOST_ENDPOINT, "yellow")
    return endpoint


def _known(settings: Settings) -> Endpoint | None:
    """The embedded server as it is on record; what is wrong with that, its start says."""
    with suppress(EmbeddedError, OSError):
        return StateDir.of(settings).endpoint()
    return None


def own_target(settings: Settings) -> Target | None:
    """The operator's own server, said if it found that by itself; None: the embedded one."""
    if settings.uses_own_server:
        return configured_target(settings)
    if not probe_local(LOCAL_ADDRESS):
        return None
    if not settings.store_url:
        say(
            f"A Temporal server listens at {LOCAL_ADDRESS}. It is not used, because STORE_URL is"
            " not set; the embedded server is (--embedded says so without this line).",
            "dim",
        )
        return None
    say(f"Using the Temporal server at {LOCAL_ADDRESS} (--embedded ignores it).", "dim")
    namespace = os.environ.get("TEMPORAL_NAMESPACE", "default")
    return _target(settings, LOCAL_ADDRESS, namespace)


def configured_target(settings: Settings) -> Target:
    """The server that Temporal's variables or profile name. Stop if they do not fit together."""
    try:
        config = configured()
    except (RuntimeError, ValueError, OSError) as error:
        why = " ".join(str(error).split())
        raise Stop(f"Temporal's configuration cannot be read: {why}") from error
    address = config.get("target_host", LOCAL_ADDRESS)
    return _target(settings, address, config.get("namespace", "default"))


def _target(settings: Settings, address: str, namespace: str) -> Target:
    if not settings.store_url:
        raise Stop(
            f"STORE_URL is not set: with a server of your own ({address}) worker and starter need"
            " one store for big payloads; set STORE_URL=file:///PATH to a folder both can reach,"
            " or pass --embedded"
        )
    try:
        DirectoryStore.at(settings.store_url)
    except BadStore as error:
        raise Stop(str(error)) from error
    return Target(
        address=address,
        namespace=namespace,
        task_queue=settings.task_queue,
        store_url=settings.store_url,
        ui_url=settings.web_ui or web_ui_of(address),
        embedded=False,
    )


def web_ui_of(address: str) -> str:
    """The Web UI that usually belongs to a server's address; empty when nothing usual is known."""
    host, _, port = address.rpartition(":")
    if host in ("localhost", "127.0.0.1") and port.isdigit():
        return f"http://{host}:{int(port) + LOCAL_UI_OFFSET}"
    return "https://cloud.temporal.io" if host.endswith(".tmprl.cloud") else ""


async def require_worker(
    connection: Connection, tiers: Sequence[Tier] = (), wait: float = WORKER_SECONDS
) -> None:
    """Return once a living worker polls the queue; Stop after `wait` seconds without. Says which of
    the `tiers` that the run may ask nobody serves. The embedded server brings its own worker.
    """
    target = connection.target
    if target.embedded:
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    said = False
    while not await _polled(connection.client, target.task_queue):
        if loop.time() >= until:
            raise Stop(
                f"no worker polls task queue {target.task_queue!r} at {target.address};"
                f" nothing was started; start one with: {WORKER}",
                Code.UNREACHABLE,
            )
        if not said:
            said = True
            say(f"Waiting for a worker on task queue {target.task_queue!r} …", "dim")
        await asyncio.sleep(0.5)
    if tiers:
        for line in await unserved(connection.client, target.task_queue, tiers, embedded=False):
            say(f"{line[0].upper()}{line[1:]}. The run starts, and its calls wait.", "yellow")


async def _polled(client: Client, queue: str) -> bool:
    return any(each.alive for each in (await pollers(client, [queue]))[queue])


def told_by_server(error: RPCError, address: str) -> Stop:
    """What a failed request means to a person."""
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return Stop(f"Temporal server at {address} stopped answering: {error}", Code.UNREACHABLE)
    if error.status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
        return Stop(
            f"Temporal server at {address} refuses this client: {error}; check TEMPORAL_API_KEY and"
            " TEMPORAL_TLS",
            Code.UNREACHABLE,
        )
    return Stop(f"Temporal server at {address}: {error}", Code.UNREACHABLE)
