"""The rate gate: a refusal for want of capacity slows its tier for every run on every worker.

Each process holds back at once what it has in hand, and what has long to wait goes back to the
server until about then. The workers agree on the throttle of a tier through the server. Where that
keeps no rates, each slows by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.activities.gate.door import Door, Rank
from holdfast.activities.gate.lane import GLANCE_SECONDS, Lane
from holdfast.activities.gate.own_limit import OwnLimit, Place
from holdfast.activities.gate.queue_rates import CANNOT, QueueRate, read_rate, write_rate
from holdfast.activities.gate.quotas import Cost, Sent, cost_of
from holdfast.activities.gate.throttle import FULL_SPEED, LONGEST_SHUT, describe
from holdfast.contracts.errors import NotBilled
from holdfast.errors import EmbeddedError
from holdfast.ports import Head

HOLD_SECONDS = 5.0
"""How long a call may wait here for its turn; one that waits longer goes back to the server."""
SPREAD_SECONDS = 30.0
"""The turns of calls that went back are spread over so long after their tier opens."""
AGREE_SECONDS = 1.0
"""How often workers agree on the throttle of a tier."""
LOOK_TIMES = 5
"""After so many times a tier at full speed is looked at: another worker may have shut it, or died
and left it shut.
"""
ONE = cost_of()
_STARTED = time.time() - time.monotonic()
logger = logging.getLogger(__name__)


def _now() -> float:
    """Return Unix time, as far as it can be compared with a server's, that never goes back."""
    return _STARTED + time.monotonic()


@dataclass
class _Tier:
    name: str
    lane: Lane = field(default_factory=Lane)
    waiting: int = 0
    door: Door = field(default_factory=Door)
    """Held by the call whose turn is next; the others queue for it."""
    promised: float = 0.0
    """The turn of the last call that went back to the server."""
    kept: QueueRate = field(default_factory=QueueRate)
    """Rate last read from or written to the server."""
    own: OwnLimit | None = None
    """The deployment's own limits of it."""
    paced: bool = False
    """True while a call waits for these."""

    def interval(self, cost: Cost) -> float:
        """Return the seconds between two calls, once they have to wait."""
        return max(self.lane.interval(cost), self.own.interval if self.own else 0.0)

    def enter(self, now: float) -> Place | float:
        """Return a call's place, or when to look again."""
        if self.own is None:
            return Place()
        try:
            found = self.own.enter()
        except (OSError, EmbeddedError) as error:
            raise NotBilled(f"nothing was sent: {str(self.own.folder)!r}: {error}") from None
        self.paced = not isinstance(found, Place)
        return found if isinstance(found, Place) else now + found

    def explain(self, cost: Cost, now: float) -> str:
        """Return how fast it goes and why."""
        if self.own and self.paced and not self.lane.throttle.shut(now):
            return self.own.explain()
        held = self.lane.quotas.explain(cost, now) if self.lane.throttle == FULL_SPEED else ""
        return f"{self.name} {held}" if held else describe(self.name, self.lane.throttle, now)

    def later(self, cost: Cost, now: float, turn: float) -> NotBilled:
        """Return what a call goes back to the server with. It comes again after half of its wait:
        the tier may be faster by then.
        """
        furthest = now + LONGEST_SHUT
        opens = min(max(now, self.lane.throttle.until), furthest)
        turn = max(min(turn, furthest), opens)
        self.promised = max(turn, self.promised + self.interval(cost))
        if self.promised > turn + SPREAD_SECONDS:
            self.promised = turn
        wait = timedelta(seconds=max(opens - now + (self.promised - opens) / 2, 1.0))
        said = f"not sent yet: {self.explain(cost, now)}"
        return NotBilled(said, retry_after=wait, throttled=True)


class RateGate:
    """Implements the `Gate` port. One a worker process; `keep` shares it with the others. `own` are
    the deployment's limits of its own.
    """

    def __init__(self, endpoint: str = "", own: Iterable[OwnLimit] = ()) -> None:
        self._endpoint = endpoint
        """Its address: what workers with another one were refused is not taken over."""
        self._tiers = {each.tier: _Tier(each.tier, own=each) for each in own}
        self._sent: dict[asyncio.Task[Any] | None, tuple[Lane, Sent, Place]] = {}
        """The calls in flight, by the task that makes each."""

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> str:
        found = self._tier(tier)
        lane, began = found.lane, found.lane.advance(_now())
        cost = cost_of(tokens, max_output, lane.wrote)
        rank = Rank.read()
        turn = lane.ready(began, cost) + found.door.ahead(rank) * found.interval(cost)
        waited_for = ""
        if turn > began + HOLD_SECONDS:
            raise found.later(cost, began, turn)
        found.waiting += 1
        try:
            async with found.door.passing(rank):
                while True:
                    ready = lane.ready(now := lane.advance(_now()), cost)
                    place = found.enter(now) if ready <= now else ready
                    if isinstance(place, Place):
                        break
                    if found.own and found.paced:
                        waited_for = found.own.explain()
                    if place > began + HOLD_SECONDS:
                        raise found.later(cost, now, place)
                    await asyncio.sleep(min(place - now, GLANCE_SECONDS))
                self._leave(lane, lane.left(now, cost), place)
        finally:
            found.waiting -= 1
            found.paced = found.paced and found.waiting > 0
        return waited_for

    def _leave(self, lane: Lane, sent: Sent, place: Place) -> None:
        self.ended()
        task = asyncio.current_task()
        assert task is not None, "called within no task"
        self._sent[task] = lane, sent, place
        # However it ends: nothing else may say that its call is over.
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any] | None, output_tokens: int = 0) -> None:
        if task in self._sent:
            lane, sent, place = self._sent.pop(task)
            place.leave()
            lane.ended(sent, lane.advance(_now()), output_tokens)

    def heard(self, head: Head) -> None:
        if found := self._sent.get(asyncio.current_task()):
            lane, sent, _ = found
            lane.heard(sent, head, lane.advance(_now()))

    def ended(self, output_tokens: int = 0) -> None:
        self._over(asyncio.current_task(), output_tokens)

    async def throttled(self, tier: str, seconds: float, reason: str) -> None:
        lane = self._tier(tier).lane
        _, sent, place = self._sent.pop(asyncio.current_task(), (lane, None, Place()))
        place.leave()
        lane.refused(sent, seconds, reason, lane.advance(_now()))

    def slowed(self) -> Mapping[str, str]:
        """Return a line for each tier that is not at full speed: how fast it goes and why. Only
        reads, so any thread may ask.
        """
        now, full = _now(), FULL_SPEED
        return {
            each.name: each.explain(ONE, now)
            for each in tuple(self._tiers.values())
            if each.lane.throttle != full
            or each.paced
            or (each.waiting and each.lane.quotas.explain(ONE, now))
        }

    def figures(self) -> Mapping[str, tuple[int, float | None]]:
        """Return for each tier that was asked how many calls wait, and how many may leave in a
        second; None: any number. Only reads, so any thread may ask.
        """
        now, tiers = _now(), tuple(self._tiers.values())
        return {each.name: (each.waiting, each.lane.throttle.per_second(now)) for each in tiers}

    async def keep(self, client: Client, queue: str, tiers: Sequence[str]) -> None:
        """Agree with the server and the other workers about the rate of each tier, forever.

        Opens again what a worker that died left shut.
        """
        await asyncio.gather(*(self._keep(client, self._tier(tier), queue) for tier in tiers))

    async def _keep(self, client: Client, tier: _Tier, queue: str) -> None:
        while True:
            try:
                await self._agree(client, tier, queue)
            except RPCError as error:
                if error.status in CANNOT:
                    logger.warning("the server keeps no rates; each worker slows by itself")
                    while True:
                        tier.lane.advance(_now())
                        await asyncio.sleep(AGREE_SECONDS)
                logger.info("rate of %s not agreed: %s", tier.name, error)
            for _ in range(LOOK_TIMES):
                await asyncio.sleep(AGREE_SECONDS)
                if tier.lane.throttle != FULL_SPEED:
                    break

    async def _agree(self, client: Client, tier: _Tier, queue: str) -> None:
        lane, name = tier.lane, tier.name
        found = await read_rate(client, queue, name)
        lane.workers = found.workers
        now = lane.advance(_now())
        # A look soon after a change may still find what was before it.
        if found.written > tier.kept.written:
            tier.kept, shared = found, found.throttle(name, now)
            ours = shared.endpoint in ("", self._endpoint)
            # What is shut here stays so until its wait is over.
            if ours and (shared.by_hand or shared.shut(now) or not lane.throttle.shut(now)):
                lane.throttle = shared
        line, rate = describe(name, lane.throttle, now), lane.throttle.per_second(now)
        if not (lane.throttle.by_hand or tier.kept.says(rate, line)):
            tier.kept = await write_rate(client, queue, name, rate, line)
            logger.info("%s", line)

    def _tier(self, name: str) -> _Tier:
        return self._tiers.setdefault(name, _Tier(name, Lane(endpoint=self._endpoint)))
