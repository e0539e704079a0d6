"""The calls that this process has under way, each in a task of its own, so that a call outlives the
attempt that started it.

A process that was frozen for a while wakes with answers in its sockets, and with attempts that the
server has given up: their heartbeats are not known any more, and the next attempt of the same call
starts beside them. Such an attempt ends; its call goes on, and the next attempt joins it. Only who
really wants the call to end, a person, a run or a draining worker, cuts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from holdfast.activities.asking.heartbeat import Notes, beating

KEPT_SECONDS = 900.0
"""How long an outcome is kept that no attempt was there to take."""


@dataclass
class Flight:
    """One call under way, or its outcome."""

    task: asyncio.Task[str]
    notes: Notes
    waiting: int = 0
    """How many attempts wait for it."""


class Flights:
    """Calls under way by journal key. One per worker process, used from one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, Flight] = {}

    def under_way(self, key: str) -> bool:
        """True if the call with this key is under way, or its outcome waits."""
        return key in self._open

    async def join(
        self, key: str, notes: Notes, start: Callable[[Notes], Coroutine[Any, Any, str]]
    ) -> str:
        """Return the outcome of the call under way with this key, or else of the one that `start`
        begins. Beats meanwhile, with what the call notes. Must run inside an activity.
        """
        return await self._join(key, notes, start, beating)

    async def join_quietly(
        self, key: str, notes: Notes, start: Callable[[Notes], Coroutine[Any, Any, str]]
    ) -> str:
        """Do as `join` for one of many calls of an activity, which beats for all of them."""
        return await self._join(key, notes, start, nullcontext)

    async def _join(
        self,
        key: str,
        notes: Notes,
        start: Callable[[Notes], Coroutine[Any, Any, str]],
        meanwhile: Callable[[Notes], AbstractAsyncContextManager[Any]],
    ) -> str:
        flight = self._open.get(key)
        if flight is None:
            flight = self._open[key] = Flight(asyncio.create_task(start(notes)), notes)
            flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.waiting += 1
        taken = True
        try:
            async with meanwhile(flight.notes):
                return await _outcome(flight)
        except asyncio.CancelledError:
            taken = flight.task.cancelled()
            raise
        finally:
            flight.waiting -= 1
            if taken:
                self._forget(key, flight)
            elif flight.task.done():
                self._keep(key, flight)

    def _land(self, key: str, flight: Flight) -> None:
        if not flight.task.cancelled():
            # Looked at, so that nothing complains of an error that nobody waited for.
            flight.task.exception()
        self._keep(key, flight)

    def _keep(self, key: str, flight: Flight) -> None:
        """Keep an outcome for the next attempt, up to KEPT_SECONDS."""
        if not flight.waiting and self._open.get(key) is flight:
            asyncio.get_running_loop().call_later(KEPT_SECONDS, self._forget, key, flight)

    def _forget(self, key: str, flight: Flight) -> None:
        if self._open.get(key) is flight:
            del self._open[key]


async def _outcome(flight: Flight) -> str:
    call = flight.task
    try:
        # Not `shield`, which since Python 3.14 complains of what a call ends with that was left.
        await asyncio.wait([call])
        return call.result()
    except asyncio.CancelledError:
        # Another attempt may want what this one wants no more: that of a run that was reset.
        if call.done() or flight.waiting > 1 or not is_unwanted():
            raise
    call.cancel()
    # It has yet to say what it used.
    while not call.done():
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError:
            continue
    return call.result()


def is_unwanted() -> bool:
    """True if the attempt is cancelled because nobody wants its call any more. Otherwise the server
    only lost sight of the attempt, or holds it back.
    """
    details = activity.cancellation_details()
    return details is None or details.cancel_requested or details.worker_shutdown
