"""A client of the server that a door speaks to: the embedded one, or one of the operator's.

The embedded server is started here and nowhere else, and kept up for as long as the door is open. A
server of one's own is only ever connected to.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any

from temporalio.service import RPCError, RPCStatusCode

from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.embedded import Endpoint, StateDir, ensure_up, lease, probe_local
from holdfast.embedded.starting import SPACE_BYTES
from holdfast.errors import EmbeddedError, Unreachable
from holdfast.intake.connection import Connection, Tell, tell_nobody
from holdfast.storage import DirectoryStore, store_at
from holdfast.storage.keys import keyring
from holdfast.temporal import own_server
from holdfast.temporal.connection import Target, connect
from holdfast.temporal.own_server import LOCAL_ADDRESS, target_at
from holdfast.workers.served import VARIABLES

CONNECT_SECONDS = 3.0
"""Short of the 5 s within which an unreachable server is reported, start-up of Python included."""
EMBEDDED_SECONDS = 30.0
"""Time limit of our own server, which answered just now and may be busy."""
HEAL_SECONDS = 2.0
LOST_ENDPOINT = (
    "The worker before had a model endpoint; the one that this command started has none, because"
    f" this shell has none. Calls to models wait: set {VARIABLES} and run: {STARTER} up"
)
"""Said where it happens: who comes first replaces a worker that died or whose code was edited."""
OTHERWISE = ", or pass --embedded"
"""Hint at what a command can do without a server of one's own."""

Waiting = Callable[[str], AbstractContextManager[Any]]
"""Shows, for as long as its block lasts, what is waited for."""


def wait_silently(_what: str) -> AbstractContextManager[None]:
    return nullcontext()


@asynccontextmanager
async def opened(
    settings: Settings,
    *,
    embedded: bool,
    tell: Tell = tell_nobody,
    waiting: Waiting = wait_silently,
) -> AsyncIterator[Connection]:
    """Yield a connection for as long as a door is open. Raises Unreachable and Refused, also for
    a request inside of the block that the server did not answer.
    """
    # Nothing is made before that is sure.
    keyring(settings.key_file)
    target = None if embedded else own_target(settings, tell)
    opening = _own(settings, target, waiting) if target else _embedded(settings, tell, waiting)
    async with opening as connection:
        try:
            yield connection
        except RPCError as error:
            there = connection.target
            raise explain_failure(error, there.address, full(there)) from error


@asynccontextmanager
async def _own(settings: Settings, target: Target, waiting: Waiting) -> AsyncIterator[Connection]:
    with waiting(f"Connecting to the Temporal server at {target.address}"):
        client = await connect(target, CONNECT_SECONDS)
    yield Connection(settings, target, client)


@asynccontextmanager
async def _embedded(settings: Settings, tell: Tell, waiting: Waiting) -> AsyncIterator[Connection]:
    with lease(settings):
        before = _known(settings)
        endpoint = await _up(settings, before, tell, waiting)
        with waiting("Connecting to the embedded server"):
            client = await connect(endpoint.target, EMBEDDED_SECONDS)
        connection = Connection(settings, endpoint.target, client)
        connection.new_worker = new_worker(before, endpoint)
        healing = asyncio.create_task(heal(connection))
        try:
            yield connection
        finally:
            healing.cancel()
            await asyncio.gather(healing, return_exceptions=True)


async def heal(connection: Connection) -> None:
    """Restart embedded processes that have died, every 2 s until cancelled."""
    while connection.target.embedded:
        try:
            endpoint = await asyncio.to_thread(ensure_up, connection.settings, "watcher")
            if endpoint.target != connection.target:
                connection.client = await connect(endpoint.target, CONNECT_SECONDS)
                connection.target = endpoint.target
            connection.trouble = ""
        except Unreachable as error:
            connection.trouble = str(error)
        await asyncio.sleep(HEAL_SECONDS)


async def _up(
    settings: Settings, before: Endpoint | None, tell: Tell, waiting: Waiting
) -> Endpoint:
    """Return the embedded server, started if it was not running. `before` is what was on record."""
    with waiting("Waiting for the embedded server: it starts, or another command stops it"):
        endpoint = await asyncio.to_thread(ensure_up, settings)
    if before and before.worker_environment and not endpoint.worker_environment:
        tell(LOST_ENDPOINT, warning=True)
    return endpoint


def new_worker(before: Endpoint | None, now: Endpoint) -> str:
    """Return that a live worker was replaced, and why; empty if none was."""
    if before is None or before.worker_pid not in [each.pid for each in now.draining]:
        return ""
    code = before.worker_version != now.worker_version
    why = "the code of this program" if code else "your environment"
    return f"a new worker starts: {why} changed"


def _known(settings: Settings) -> Endpoint | None:
    """Return the embedded server on record; None if the record is unusable, which its start
    reports.
    """
    with suppress(EmbeddedError, OSError):
        return StateDir.of(settings).endpoint()
    return None


def own_target(settings: Settings, tell: Tell = tell_nobody) -> Target | None:
    """Return the operator's own server (and say so if it was found rather than named); None for the
    embedded one.
    """
    if settings.uses_own_server:
        return configured_target(settings)
    if not probe_local(LOCAL_ADDRESS):
        return None
    if not settings.store_url:
        tell(
            f"A Temporal server listens at {LOCAL_ADDRESS}. It is not used, because STORE_URL is"
            " not set; the embedded server is (--embedded says so without this line)."
        )
        return None
    tell(f"Using the Temporal server at {LOCAL_ADDRESS} (--embedded ignores it).")
    namespace = os.environ.get("TEMPORAL_NAMESPACE", "default")
    return target_at(settings, LOCAL_ADDRESS, namespace, OTHERWISE)


def configured_target(settings: Settings) -> Target:
    """Return the server that Temporal's variables or profile name. BadSettings if they
    contradict.
    """
    return own_server.configured_target(settings, OTHERWISE)


def full(target: Target) -> str:
    """Return that the embedded server's disk is full; empty if it is not, or cannot be told."""
    store = store_at(target.store_url) if target.embedded and target.store_url else None
    if not isinstance(store, DirectoryStore):
        return ""
    with suppress(OSError):
        free = shutil.disk_usage(store.root).free
        if free < SPACE_BYTES:
            there = f"{store.root.parent}: {free // 1_000_000} MB free"
            return f"; its disk is full ({there}): free some space"
    return ""


def explain_failure(error: RPCError, address: str, more: str = "") -> Unreachable:
    """Return what a failed request means to a person; `more` follows where nobody answers."""
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return Unreachable(f"Temporal server at {address} stopped answering: {error}{more}")
    if error.status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
        return Unreachable(
            f"Temporal server at {address} refuses this client: {error}; check TEMPORAL_API_KEY and"
            " TEMPORAL_TLS"
        )
    return Unreachable(f"Temporal server at {address}: {error}")
