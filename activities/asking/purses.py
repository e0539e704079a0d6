"""The slices of the deployment's money that this process holds: calls take from them at once, and
the treasurer is asked ahead of time.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from holdfast.contracts.treasury import Asked, Given
from holdfast.temporal.treasury import Unanswered

SILENT_SECONDS = 180
"""After this long a slice of which nothing is heard counts as paid."""
RENEW_SECONDS = 60.0
IDLE_SECONDS = 10.0
"""After this long without a call a slice is given back."""
LOOK_SECONDS = 1.0
CALLS_AHEAD = 3
"""A slice is to hold as many calls to come, by the dearest so far; or as much as those under way,
where that is more.
"""
_ZERO = Decimal(0)
logger = logging.getLogger(__name__)


class Treasurer(Protocol):
    """The treasurer of this deployment. It raises Unanswered."""

    async def ask(self, asked: Sequence[Asked]) -> Sequence[Given]:
        """Settle and lease slices."""

    async def give_back(self, asked: Sequence[Asked]) -> None:
        """Settle slices for good."""

    async def is_there(self) -> bool:
        """True if the deployment has one."""


class Refused(Exception):
    """A call may not leave. `over`: nor later, for what is paid; else others may give back."""

    def __init__(self, why: str, *, over: bool) -> None:
        super().__init__(why)
        self.over = over


@dataclass(eq=False)
class _Purse:
    """The slice for one requester."""

    name: str
    requester: str
    began: bool = False
    holds: Decimal = _ZERO
    """What it held when the treasurer was asked last."""
    paid: Decimal = _ZERO
    told: Decimal = _ZERO
    """What of that the treasurer knows."""
    under_way: dict[str, Decimal] = field(default_factory=dict)
    dearest: Decimal = _ZERO
    asked: float = 0.0
    taken: float = 0.0
    used: float = 0.0
    """When it was asked for, a call took from it, and anything was done with it last."""

    @property
    def left(self) -> Decimal:
        return self.holds - (self.paid - self.told) - self.worst

    @property
    def worst(self) -> Decimal:
        return sum(self.under_way.values(), _ZERO)

    def wants(self, more: Decimal = _ZERO, *, idle: bool = False) -> Asked:
        """Return what is asked of the treasurer, for a call that costs so much more."""
        worst = self.worst
        ahead = _ZERO if idle else max(CALLS_AHEAD * self.dearest, worst)
        return Asked(
            slice=self.name,
            requester=self.requester,
            began=self.began,
            paid=self.paid,
            under_way=worst,
            needs=worst + more,
            likes=worst + more + ahead,
            seconds=SILENT_SECONDS,
        )

    def due(self, now: float) -> Asked | None:
        """Return what is to be said to the treasurer now; None: nothing."""
        if not self.under_way and now >= self.used + IDLE_SECONDS:
            return self.wants(idle=True)
        low = self.left < self.dearest and self.taken > self.asked
        surplus = self.left > 2 * max(CALLS_AHEAD * self.dearest, self.worst)
        return self.wants() if low or surplus or now >= self.asked + RENEW_SECONDS else None


@dataclass(eq=False)
class Purses:
    """All slices of this process; one instance a worker process."""

    treasurer: Treasurer
    bind: bool = True
    """True if calls need slices. A worker whose settings have no caps looks now and then whether
    those of others have.
    """
    clock: Callable[[], float] = time.monotonic
    _purses: dict[str, _Purse] = field(default_factory=dict)
    """By requester."""
    _of: dict[str, _Purse] = field(default_factory=dict)
    """Of each call under way, by its key."""
    _look_at: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One question at a time: what is taken meanwhile would not be known to it."""
    _keeping: asyncio.Task[None] | None = None
    _count: itertools.count[int] = field(default_factory=itertools.count)
    _process: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    async def are_needed(self) -> bool:
        """True if calls need slices. Raise Unanswered."""
        if not self.bind and self.clock() >= self._look_at:
            self.bind = await self.treasurer.is_there()
            self._look_at = self.clock() + RENEW_SECONDS
        return self.bind

    async def take(self, key: str, dollars: Decimal, requester: str) -> None:
        """Set dollars aside for a call. Raise Refused, or Unanswered."""
        purse = self._purse(requester)
        if self._asking.locked() or purse.left < dollars:
            async with self._asking:
                purse = self._purse(requester)
                if purse.left < dollars:
                    (given,) = await self._say([(purse, purse.wants(dollars))])
                    if not given.known:
                        purse = self._purse(requester)
                        (given,) = await self._say([(purse, purse.wants(dollars))])
                    if given.refused:
                        raise Refused(given.refused, over=given.over)
                self._put(purse, key, dollars)
        else:
            self._put(purse, key, dollars)
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._keep(), name="purses")

    def give(self, key: str, paid: Decimal | None) -> bool:
        """Settle a call; None: nobody knows what it cost. False if this process knows no such."""
        purse = self._of.pop(key, None)
        if purse is None:
            return False
        worst = purse.under_way.pop(key)
        purse.paid += worst if paid is None else paid
        purse.used = self.clock()
        return True

    async def close(self) -> None:
        """Give back what is not spent."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        try:
            async with self._asking:
                held = [(each, each.wants(idle=True)) for each in self._held()]
                if held:
                    await self.treasurer.give_back([each for _, each in held])
                for purse, each in held:
                    assert each.paid is not None
                    purse.holds, purse.told = each.under_way, each.paid
                    if not each.under_way:
                        del self._purses[purse.requester]
        except Unanswered as error:
            logger.warning("a slice of the day's dollars was not given back: %s", error)

    def _put(self, purse: _Purse, key: str, dollars: Decimal) -> None:
        purse.under_way[key] = dollars
        purse.dearest = max(purse.dearest, dollars)
        purse.taken = purse.used = self.clock()
        self._of[key] = purse

    def _purse(self, requester: str) -> _Purse:
        if requester not in self._purses:
            name = f"{self._process}-{next(self._count)}"
            self._purses[requester] = _Purse(name, requester)
        return self._purses[requester]

    def _held(self) -> list[_Purse]:
        return [each for each in self._purses.values() if each.began]

    async def _say(self, wanted: Iterable[tuple[_Purse, Asked]]) -> list[Given]:
        """Ask the treasurer. What it may have taken back is not spent until it has answered."""
        asked = [*wanted]
        if not asked:
            return []
        for purse, each in asked:
            purse.holds = min(purse.holds, purse.worst + purse.paid - purse.told)
            purse.began, purse.asked = True, self.clock()
            if not each.began:
                purse.holds = _ZERO
        answers = [*await self.treasurer.ask([each for _, each in asked])]
        for (purse, each), given in zip(asked, answers, strict=True):
            assert each.paid is not None
            purse.holds, purse.told = given.holds, each.paid
            gone = not given.known or not (given.holds or each.under_way)
            if gone and self._purses.get(purse.requester) is purse:
                # What was under way is paid in the treasurer's books, or there was nothing.
                del self._purses[purse.requester]
        return answers

    async def _keep(self) -> None:
        """Ask ahead, renew and give back, until nothing is held."""
        while self._purses:
            await asyncio.sleep(LOOK_SECONDS)
            async with self._asking:
                now = self.clock()
                due = [(purse, each) for purse in self._held() if (each := purse.due(now))]
                try:
                    await self._say(due)
                except Unanswered as error:
                    logger.info("the treasurer was not told: %s", error)
