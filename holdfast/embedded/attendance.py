"""The worker's side: it heals the server, and ends both when nobody needs them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from temporalio.service import RPCError

from holdfast.deployment.settings import Settings
from holdfast.embedded import private, processes, server
from holdfast.embedded.processes import Record
from holdfast.embedded.state import StateDir, is_leased, retiring
from holdfast.embedded.supervision import ensure_up
from holdfast.embedded.trouble import StateGone
from holdfast.errors import EmbeddedError
from holdfast.temporal.connection import Target

HEAL_SECONDS = 2.0
log = logging.getLogger(__name__)


class Moved(Exception):
    """The server came back on another port: this process must connect anew."""


async def attend(
    settings: Settings,
    target: Target,
    open_runs: Callable[[], Awaitable[int]],
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Record that this worker is up and restart a dead server, every 2 s.

    Returns when this worker was replaced, or after it has stopped a server that nobody used for
    `idle_seconds`. `drain` stops this worker's pollers.
    """
    state = StateDir.of(settings)
    used = time.monotonic()
    # Before anybody is told: whoever waits for this worker may delete the directory at once.
    serving = processes.read_record(state.path / "server.pid")
    _came_up(state)
    while True:
        await asyncio.sleep(HEAL_SECONDS)
        mine = processes.read_record(state.path / "worker.pid")
        if mine is not None and mine.pid != os.getpid():
            return
        try:
            now = await asyncio.to_thread(ensure_up, settings, "worker")
        except StateGone:
            await asyncio.to_thread(server.stop, state, serving)
            return
        except EmbeddedError as error:
            log.error("%s", error)
            continue
        serving = processes.read_record(state.path / "server.pid") or serving
        if now.target.address != target.address:
            raise Moved(now.target.address)
        if state.hold.exists() or is_leased(state) or await _any(open_runs):
            used = time.monotonic()
        elif time.monotonic() - used >= settings.idle_seconds and await _retire(
            state, serving, open_runs, drain
        ):
            return


async def _any(open_runs: Callable[[], Awaitable[int]]) -> bool:
    try:
        return await open_runs() > 0
    except RPCError:
        # A server that is just coming back: nothing can be said, so nothing is stopped.
        return True


async def _retire(
    state: StateDir,
    serving: Record | None,
    open_runs: Callable[[], Awaitable[int]],
    drain: Callable[[], Awaitable[None]],
) -> bool:
    # Starters wait for both locks, so none of them can be told that an ending server is well.
    with retiring(state) as alone:
        if not alone or await _any(open_runs):
            return False
        log.info("nobody needs the embedded server: stopping it")
        await drain()
        await asyncio.to_thread(server.stop, state, serving)
        return True


def _came_up(state: StateDir) -> None:
    """Record that this worker came up, so that its start does not count as failed."""
    with suppress(OSError, EmbeddedError):
        private.write(state.ready, str(os.getpid()))
