"""Heartbeats on a timer of their own, so that a silent model or a busy tool still shows that its
worker lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

FIRST_BEAT = 0.7
"""Seconds. Most tools end sooner and then cost no heartbeat at all; recovery does not get
slower.
"""
BEAT = 3.0
"""Seconds; a third of the heartbeat timeout, so that two may be lost."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Beat while the block runs. An activity that never beats would never see that it was
    cancelled.
    """
    beats = asyncio.create_task(_beat())
    try:
        yield
    finally:
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats


async def _beat() -> None:
    await asyncio.sleep(FIRST_BEAT)
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT)
