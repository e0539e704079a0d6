"""Wait, at no cost, until an endpoint that does not answer can be reached again."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import timedelta

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.calls.reach import Reached, ReachMaterial
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Model

FIRST_PAUSE = 1.0
"""Seconds between the first try and the second; doubled from try to try."""
LONGEST_PAUSE = 30.0
SPREAD = 0.25
"""Share by which a pause is shortened at random, so that runs on many machines that lost one
endpoint do not all come back at once.
"""
MARGIN_SECONDS = 30.0
"""How long before its start-to-close timeout an attempt hands itself back."""
AGAIN = timedelta(seconds=1)

logger = logging.getLogger(__name__)


async def wait_until_reached(
    model: Model, wait: ReachMaterial, chance: Callable[[], float] = random.random
) -> Reached:
    """Wait as asked, then try with growing pauses until the endpoint answers.

    Raise NotBilled, which Temporal retries at once, if this attempt or its worker must end: the
    next one goes on with the wait, and the Web UI shows what was seen last.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    info = activity.info()
    limit = info.start_to_close_timeout or timedelta(hours=1)
    end = began + max(limit.total_seconds() - MARGIN_SECONDS, 1.0)
    # Only the first attempt waits first: a worker that took over is late enough.
    pause, following = (wait.after_seconds if info.attempt == 1 else 0.0), FIRST_PAUSE
    said, missed = "nobody looked yet", info.attempt > 1
    async with beating():
        while True:
            left = end - clock()
            if await _wait_or_shutdown(min(pause, max(left, 0.0))) or left <= pause:
                raise NotBilled(f"still waiting for the endpoint: {said}", retry_after=AGAIN)
            said = await model.reach()
            if not said:
                return Reached(waited_seconds=round(clock() - began, 3), missed=missed)
            missed = True
            logger.info("the endpoint cannot be reached: %s", said)
            pause = following * (1 - SPREAD * chance())
            following = min(2 * following, LONGEST_PAUSE)


async def _wait_or_shutdown(seconds: float) -> bool:
    """Sleep. Return True if this worker was told to shut down meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await activity.wait_for_worker_shutdown()
    except TimeoutError:
        return False
    return True
