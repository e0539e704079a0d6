"""Time limits that only count while this process runs.

A process that is stopped, paused or moved for a minute finds every timer due when it wakes, and
what arrived meanwhile still unread. Ordinary timeouts then give up answers that are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")

LATE_SECONDS = 1.0
"""A timer that fires later than this was not late: the process did not run."""
LAST_LOOK_SECONDS = 0.25
"""How long what has arrived may still be read after a limit."""


class Patience:
    """Ends a block with TimeoutError after `stall` seconds without progress, or `deadline` seconds
    in all. Call `moved` on progress.
    """

    def __init__(self, stall: float, deadline: float) -> None:
        self._stall = stall
        self._deadline = deadline
        self._scope = asyncio.timeout(None)
        self._looking = False
        self.why = ""
        """The limit that ended the block; empty while none did."""
        self.over = False
        """True if the deadline ended it."""

    async def __aenter__(self) -> Patience:
        self._loop = asyncio.get_running_loop()
        await self._scope.__aenter__()
        self._last = self._loop.time()
        self._end = self._last + self._deadline
        self._arm(self._due)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._scope.__aexit__(kind, error, trace)

    def moved(self) -> None:
        """Note progress."""
        self._last = self._loop.time()

    @property
    def _due(self) -> float:
        return min(self._last + self._stall, self._end)

    def _arm(self, when: float) -> None:
        self._timer = self._loop.call_at(when, self._look, when)

    def _look(self, when: float) -> None:
        now = self._loop.time()
        late = now - when
        if late > LATE_SECONDS:
            # Nothing was seen because nobody looked.
            self._last = now
            self._end = max(self._end, now) + min(late, self._stall)
        if now < self._due:
            self._looking = False
            self._arm(self._due)
        elif not self._looking:
            # A shorter absence looks like none, so what is there is read before any end.
            self._looking = True
            self._arm(now + LAST_LOOK_SECONDS)
        else:
            self.over = now >= self._end
            self.why = (
                f"deadline of {round(self._deadline, 1):g} s"
                if self.over
                else f"silence of {self._stall:g} s"
            )
            self._scope.reschedule(now)


async def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of work that must not be left half done. A cancellation meanwhile is put
    off, and shows in the task's `cancelling`.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
