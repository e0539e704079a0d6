"""Waiting until an endpoint that nobody answers at can be reached again, at no cost."""

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
"""Seconds between the first look and the second; doubled from look to look."""
LONGEST_PAUSE = 30.0
SPREAD = 0.25
"""Share by which a pause is shortened at random: the runs of many machines that lost one endpoint
do not all come back in one moment.
"""
MARGIN_SECONDS = 30.0
"""How much sooner than its start-to-close an attempt hands itself back."""
AGAIN = timedelta(seconds=1)

logger = logging.getLogger(__name__)


async def wait_until_reached(
    model: Model, wait: ReachMaterial, chance: Callable[[], float] = random.random
) -> Reached:
    """Wait as asked, then look with growing pauses until somebody is there.

    NotBilled, which Temporal retries at once, when this attempt must end or its worker does: the
    wait goes on with the next, and the Web UI shows what was seen last.
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
    """Sleep; whether this worker was told to end meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await activity.wait_for_worker_shutdown()
    except TimeoutError:
        return False
    return True
