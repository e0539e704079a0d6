"""Heartbeats on a timer of their own: they show that a worker lives, however silent its model or
busy its tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import chain, repeat

from temporalio import activity

from holdfast.contracts.policies import BEATS

SOON = BEATS[0]
"""Seconds after sending until the server is told that a call left. Until then only the journal
knows: a call may be paid twice if its machine is lost in that time and another one tries again.
"""


@dataclass
class Notes:
    """Numbers that each beat carries; the server hands the last ones to the next attempt. Attempts
    that wait for one call share them.
    """

    numbers: tuple[int, ...] = ()
    tellers: list[Callable[[], None]] = field(default_factory=list)
    """Each makes one attempt beat now."""

    def take(self, *numbers: int) -> None:
        """Replace the numbers, and tell the server at once."""
        self.numbers = numbers
        self._tell()

    def take_soon(self, *numbers: int) -> None:
        """Replace the numbers, and tell the server after SOON: most calls are over sooner."""
        self.numbers = numbers
        asyncio.get_running_loop().call_later(SOON, self._tell)

    def _tell(self) -> None:
        for tell in self.tellers:
            tell()


@asynccontextmanager
async def beating(notes: Notes | None = None) -> AsyncIterator[Notes]:
    """Beat while the block runs. An activity that never beats never sees that it was cancelled."""
    carried = Notes(read_notes()) if notes is None else notes
    # A call that others wait for, too, notes from a task of its own.
    context = copy_context()

    def tell() -> None:
        context.run(activity.heartbeat, *carried.numbers)

    beats = asyncio.create_task(_beat(tell))
    carried.tellers.append(tell)
    try:
        yield carried
    finally:
        carried.tellers.remove(tell)
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats


def read_notes() -> tuple[int, ...]:
    """Return the numbers that the attempt before this one noted last; empty if there are none."""
    return tuple(each for each in activity.info().heartbeat_details if isinstance(each, int))


async def _beat(tell: Callable[[], None]) -> None:
    for pause in chain(BEATS, repeat(BEATS[-1])):
        await asyncio.sleep(pause)
        tell()
