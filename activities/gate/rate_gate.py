"""The rate gate: a refusal for want of capacity slows its tier for every run on every worker.

Each process holds back at once what it has in hand, by one rule (`activities/gate/flow.py`), and
what has long to wait goes back to the server until about then. The workers agree on the rate of a
tier through the server. Where that keeps no rates, each slows by itself.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.activities.gate import queue_rates as rate_limits
from holdfast.activities.gate.flow import (
    STEP_SECONDS,
    Flow,
    described,
    next_rate,
    plainly,
    understood,
)
from holdfast.activities.gate.known import ONE, Cost
from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.quotas import cost_of
from holdfast.activities.gate.refusals import Sent
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Head

HOLD_SECONDS = 5.0
"""How long a call may wait here for its turn; one that waits longer goes back to the server."""
LONGEST_HOLD_SECONDS = 15.0
"""How long it really waits, when the tier became slower meanwhile."""
LONGEST_AWAY_SECONDS = 30.0
"""A call that went back to an open tier comes again after this long: it may be faster by then."""
GLANCE_SECONDS = 0.1
EARLY_SECONDS = 2.0
"""How much sooner than its turn a call comes back that went to the server: some turns are given up,
and who is early waits here.
"""
LOOK_SECONDS = 5.0
"""How often the rate of a tier at full speed is looked at: another worker may have shut it, or died
and left it shut.
"""
_STARTED = time.time() - time.monotonic()
logger = logging.getLogger(__name__)


def _now() -> float:
    """Unix time, as far as it can be compared with a server's, that never goes back."""
    return _STARTED + time.monotonic()


class RateGate:
    """Implements the `Gate` seam. One a worker process; `keep` shares it with the others."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._sent: dict[asyncio.Task[Any] | None, tuple[Lane, Sent]] = {}
        """The calls in flight, by the task that makes each."""
        self._promised: dict[str, float] = {}
        """tier -> the turn of the last call that went back to the server."""

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> None:
        """Wait until a call of this tier may leave. NotBilled when that takes too long to wait for
        in here; the error says when to come back.
        """
        lane = self._lane(tier)
        began = lane.advance(_now())
        cost = cost_of(tokens, max_output, lane.wrote)
        turn = max(lane.expected(began, cost), _by_hand(lane, began, lane.waiting))
        if turn > began + HOLD_SECONDS:
            raise self._later(tier, lane, cost, began, turn)
        lane.waiting += 1
        try:
            async with lane.door:
                while (ready := _ready(lane, cost, now := lane.advance(_now()))) > now:
                    if (now if math.isinf(ready) else ready) > began + LONGEST_HOLD_SECONDS:
                        raise self._later(tier, lane, cost, now, ready)
                    await _moved(lane, min(ready - now, GLANCE_SECONDS))
                self._left(lane, lane.left(now, cost))
        finally:
            lane.waiting -= 1

    def _later(self, tier: str, lane: Lane, cost: Cost, now: float, turn: float) -> NotBilled:
        """What a call goes back to the server with. Each has a turn of its own behind all that went
        before it, so that they do not come back together.
        """
        pace = lane.lasted * lane.workers / lane.flow.most if lane.flow.most else 0.0
        pace = max(pace, lane.interval, lane.quotas.interval(cost))
        turn = max(now if math.isinf(turn) else turn, self._promised.get(tier, 0.0) + pace)
        opens = max(now, lane.flow.until if lane.flow.rate == 0 else now)
        turn = min(turn, opens + LONGEST_AWAY_SECONDS)
        self._promised[tier] = turn
        held = lane.quotas.plainly(cost, now) if lane.flow == Flow() else ""
        said = f"{tier} {held}" if held else described(tier, lane.flow, now)
        wait = timedelta(seconds=max(turn - now - EARLY_SECONDS, 1.0))
        return NotBilled(f"not sent yet: {said}", retry_after=wait, throttled=True)

    def _left(self, lane: Lane, sent: Sent) -> None:
        """Take in that this task's call leaves."""
        self.ended()
        task = asyncio.current_task()
        assert task is not None, "called within no task"
        self._sent[task] = lane, sent
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any], output_tokens: int = 0) -> None:
        """Take in that a task is over, however it ended, and so is its call."""
        if task in self._sent:
            lane, sent = self._sent.pop(task)
            lane.ended(sent, lane.advance(_now()), output_tokens)

    def heard(self, head: Head) -> None:
        """The head of the answer to the call of this task is there."""
        found = self._sent.get(asyncio.current_task())
        if found is not None:
            lane, sent = found
            lane.heard(sent, head, lane.advance(_now()))

    def ended(self, output_tokens: int = 0) -> None:
        """The answer to the call of this task is there: another one may take its place."""
        task = asyncio.current_task()
        if task is not None:
            self._over(task, output_tokens)

    async def throttled(self, tier: str, seconds: float, reason: str) -> None:
        """A call was refused for want of capacity; the endpoint asks to wait this many seconds."""
        lane = self._lane(tier)
        _, sent = self._sent.pop(asyncio.current_task(), (lane, None))
        lane.shut(seconds, reason, lane.advance(_now()), sent)

    def slowed(self) -> Mapping[str, str]:
        """The tiers that are not at full speed just now, each with a line that says how fast it
        goes and why. Only reads, so any thread may ask.
        """
        now = _now()
        lines = {}
        for tier, lane in tuple(self._lanes.items()):
            flow, by_hand = next_rate(lane.flow, None, now), lane.by_hand
            if by_hand and flow.rate != 0:
                lines[tier] = by_hand.plainly(tier, now)
            elif flow.rate is not None or flow.most:
                lines[tier] = plainly(tier, flow)
            elif lane.waiting and (held := lane.quotas.plainly(ONE, now)):
                lines[tier] = f"{tier} {held}"
        return lines

    def figures(self) -> Mapping[str, tuple[int, float | None]]:
        """For each tier that was asked how many calls wait, and how many may leave in a second;
        None: any number. Only reads, so any thread may ask.
        """
        now = _now()
        found: dict[str, tuple[int, float | None]] = {}
        for tier, lane in tuple(self._lanes.items()):
            rate = lane.by_hand.rate if lane.by_hand else next_rate(lane.flow, None, now).rate
            found[tier] = lane.waiting, rate
        return found

    async def keep(self, client: Client, queue: str, tiers: Sequence[str]) -> None:
        """Agree with the server and the other workers about the rate of each tier, forever.

        Opens again what a worker that died left shut.
        """
        await asyncio.gather(*(self._keep(client, tier, queue) for tier in tiers))

    async def _keep(self, client: Client, tier: str, queue: str) -> None:
        lane = self._lane(tier)
        while True:
            lane.woken.clear()
            try:
                await self._agree(client, tier, queue)
            except RPCError as error:
                if error.status in rate_limits.CANNOT:
                    logger.warning("the server keeps no rates; each worker slows by itself")
                    await asyncio.Event().wait()
                logger.info("rate of %s not agreed: %s", tier, error)
            # No rate changes more often.
            await asyncio.sleep(STEP_SECONDS)
            if lane.certain == Flow():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await lane.woken.wait()

    async def _agree(self, client: Client, tier: str, queue: str) -> None:
        lane = self._lane(tier)
        found = await rate_limits.read_rate(client, queue, tier)
        lane.workers = found.workers
        now = _now()
        # A look soon after a change may still find what was before it.
        if found.stamp != lane.newest.stamp and found.written >= lane.newest.written:
            shared = understood(tier, found.rate, found.reason, found.written, now)
            lane.newest, lane.by_hand = found, found if shared is None else None
            if shared is not None:
                lane.adopt(shared)
        lane.advance(now)
        flow = lane.certain
        if lane.by_hand or (flow == lane.told and _same(flow.rate, found.rate)):
            return
        text = described(tier, flow, now)
        lane.newest = await rate_limits.write_rate(client, queue, tier, flow.rate, text)
        lane.told = flow
        logger.info("%s", text)

    def _lane(self, tier: str) -> Lane:
        return self._lanes.setdefault(tier, Lane())


async def _moved(lane: Lane, seconds: float) -> None:
    """Wait this long, or until something happened to the tier."""
    lane.moved.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await lane.moved.wait()


def _ready(lane: Lane, cost: Cost, now: float) -> float:
    """When the next call may leave: as the endpoint shows, and as a person says."""
    return max(lane.ready(now, cost), _by_hand(lane, now, 0))


def _by_hand(lane: Lane, now: float, waiting: int) -> float:
    """When a person's limit lets a call leave that this many wait before."""
    limit = lane.by_hand.rate if lane.by_hand else None
    if limit is None:
        return now
    if limit <= 0:
        return math.inf
    sent = lane.measured.sent
    return (sent[-1] if sent else -math.inf) + (waiting + 1) * lane.workers / limit


def _same(rate: float | None, other: float | None) -> bool:
    """Rates travel in single precision."""
    if rate is None or other is None:
        return rate is other
    return math.isclose(rate, other, rel_tol=1e-5)
