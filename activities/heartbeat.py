"""Heartbeats on a timer of their own, so that a silent model or a busy tool still shows that its
worker lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from temporalio import activity

FIRST_BEAT = 0.7
"""Seconds. Most tools end sooner and then cost no heartbeat at all; recovery does not get
slower.
"""
BEAT = 3.0
"""Seconds; a third of the heartbeat timeout, so that two may be lost."""


@dataclass
class Notes:
    """What each beat carries: the server hands the last of them to the next attempt."""

    numbers: tuple[int, ...] = ()

    def take(self, *numbers: int) -> None:
        """Note this instead of what was noted before, and tell the server at once."""
        self.numbers = numbers
        activity.heartbeat(*numbers)


@asynccontextmanager
async def beating() -> AsyncIterator[Notes]:
    """Beat while the block runs. An activity that never beats would never see that it was
    cancelled.
    """
    notes = Notes(noted_before())
    beats = asyncio.create_task(_beat(notes))
    try:
        yield notes
    finally:
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats


def noted_before() -> tuple[int, ...]:
    """What the attempt before this one noted last; empty if it noted nothing."""
    return tuple(each for each in activity.info().heartbeat_details if isinstance(each, int))


async def _beat(notes: Notes) -> None:
    await asyncio.sleep(FIRST_BEAT)
    while True:
        activity.heartbeat(*notes.numbers)
        await asyncio.sleep(BEAT)
