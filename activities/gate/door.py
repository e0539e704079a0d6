"""The queue of the calls of one tier within a process: by urgency, and of one urgency in turns by
who asks, as Temporal hands them out.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from temporalio import activity

USUAL = 3
"""The priority of what has none; 1 is the most urgent."""


@dataclass(frozen=True)
class Rank:
    """Whose call it is, and how urgent."""

    urgency: int = USUAL
    requester: str = ""

    @classmethod
    def read(cls) -> Rank:
        """Return that of the activity that this is a part of."""
        if not activity.in_activity():
            return cls()
        priority = activity.info().priority
        return cls(priority.priority_key or USUAL, priority.fairness_key or "")


Place = tuple[int, int, int]
"""Urgency, round, and the order of coming."""


@dataclass
class Door:
    """A lock. Within one urgency the first call of each requester goes before any second one."""

    _held: bool = False
    _waiting: list[tuple[Place, asyncio.Future[None]]] = field(default_factory=list)
    _rounds: dict[Rank, int] = field(default_factory=dict)
    """The round of the last call of each that waits."""
    _open: dict[int, int] = field(default_factory=dict)
    """The round of each urgency that calls go in from."""
    _count: itertools.count[int] = field(default_factory=itertools.count)

    def ahead(self, rank: Rank) -> int:
        """Return how many calls would go before one that comes now."""
        mine = (rank.urgency, self._round(rank))
        return self._held + sum(place[:2] <= mine for place, _ in self._waiting)

    @asynccontextmanager
    async def passing(self, rank: Rank) -> AsyncIterator[None]:
        """Hold the door, once those before it have let go of it."""
        if self._held:
            await self._wait(rank)
        self._held = True
        try:
            yield
        finally:
            self._let_in()

    async def _wait(self, rank: Rank) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._rounds[rank] = self._round(rank)
        place = rank.urgency, self._rounds[rank], next(self._count)
        heapq.heappush(self._waiting, (place, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was let in and told to end in the same moment.
                self._let_in()
            raise

    def _let_in(self) -> None:
        """Hand the door to the next."""
        while self._waiting:
            (urgency, round_, _), turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._open[urgency] = round_
                turn.set_result(None)
                return
        self._held = False
        self._rounds.clear()
        self._open.clear()

    def _round(self, rank: Rank) -> int:
        return max(self._rounds.get(rank, -1) + 1, self._open.get(rank.urgency, 0))
