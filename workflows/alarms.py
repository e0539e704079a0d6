"""The timers of a workflow, kept as its state wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic, TypeVar

from temporalio import workflow

from holdfast.rules.timers import Wanted

Rung = TypeVar("Rung")


class Alarms(Generic[Rung]):
    """Runs exactly the wanted timers; `ring` takes the event of one that fires."""

    def __init__(self, ring: Callable[[Rung], None]) -> None:
        self._ring = ring
        self._sleeping: dict[Wanted[Rung], asyncio.Task[None]] = {}

    def set(self, wanted: Mapping[str, Wanted[Rung]], now: datetime) -> None:
        """Cancel the timers that are not wanted any more, and start the new ones."""
        for timer in [each for each in self._sleeping if wanted.get(each.name) != each]:
            self._sleeping.pop(timer).cancel()
        for timer in wanted.values():
            if timer not in self._sleeping:
                left = timer.left(now).total_seconds()
                self._sleeping[timer] = asyncio.create_task(self._sleep(timer, left))

    async def _sleep(self, timer: Wanted[Rung], seconds: float) -> None:
        await workflow.sleep(seconds, summary=timer.name)
        self._sleeping.pop(timer, None)
        self._ring(timer.then)
