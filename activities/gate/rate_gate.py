"""The rate gate: a refusal for want of capacity slows its tier for every run on every worker.

Two brakes with one rule (`activities/gate/flow.py`). The tier's task queue at the server holds back
what no worker has yet; that takes a second or two to act. This process holds back at once what it
already has in hand. Where the server keeps no rates, the second brake works alone.
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

from activities.gate import queue_rates as rate_limits
from activities.gate.flow import STEP_SECONDS, Flow, described, next_rate, plainly, understood
from activities.gate.known import ONE, Cost
from activities.gate.lane import Lane
from activities.gate.quotas import cost_of
from activities.gate.refusals import Sent
from activities.seam import Head
from orchestrator.errors import NotBilled

HOLD_SECONDS = 5.0
"""How long a call may wait here for its turn; one that would wait longer goes to its queue."""
LONGEST_HOLD_SECONDS = 15.0
"""How long it really waits, when the tier became slower meanwhile."""
BACK_SECONDS = 2.5
"""When a call that went back comes again, if the tier is open."""
GLANCE_SECONDS = 0.1
HEADROOM = 1.2
"""How much faster than the rate the queue gives work out: two brakes of the same rate, one behind
the other, would together be slower than either. What comes too early waits here.
"""
AHEAD_SECONDS = 2.0
"""How long before a tier opens its queue does: a change there takes that long to be felt."""
LOOK_SECONDS = 5.0
"""How often the queue of a tier at full speed is looked at: another worker may have shut it, or
died and left it shut.
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

    async def turn(self, tier: str, tokens: int = 0, max_output: int = 0) -> None:
        """Wait until a call of this tier may leave. NotBilled when that takes too long to wait for
        in here; the error says when to come back.
        """
        lane = self._lane(tier)
        began = lane.advance(_now())
        cost = cost_of(tokens, max_output, lane.wrote)
        if lane.expected(began, cost) > began + HOLD_SECONDS:
            raise _not_yet(tier, lane, cost, began)
        lane.waiting += 1
        try:
            async with lane.door:
                while (ready := lane.ready(now := lane.advance(_now()), cost)) > now:
                    if (now if math.isinf(ready) else ready) > began + LONGEST_HOLD_SECONDS:
                        raise _not_yet(tier, lane, cost, now)
                    await _moved(lane, min(ready - now, GLANCE_SECONDS))
                self._left(lane, lane.left(now, cost))
        finally:
            lane.waiting -= 1

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

    async def keep(self, client: Client, queue: str, tiers: Sequence[str]) -> None:
        """Agree with the server and the other workers about the queue of each tier, forever.

        Opens again what a worker that died left shut.
        """
        await asyncio.gather(*(self._keep(client, tier, f"{queue}-{tier}") for tier in tiers))

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
                logger.info("rate of %s not agreed: %s", queue, error)
            # No rate changes more often.
            await asyncio.sleep(STEP_SECONDS)
            if lane.certain == Flow():
                with suppress(TimeoutError):
                    await asyncio.wait_for(lane.woken.wait(), LOOK_SECONDS)

    async def _agree(self, client: Client, tier: str, queue: str) -> None:
        lane = self._lane(tier)
        found = await rate_limits.read_rate(client, queue)
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
        rate = _queue_rate(flow, now)
        if lane.by_hand or (flow == lane.told and _same(rate, found.rate)):
            return
        text = described(tier, flow, now)
        lane.newest = await rate_limits.write_rate(client, queue, rate, text)
        lane.told = flow
        logger.info("%s", text)

    def _lane(self, tier: str) -> Lane:
        return self._lanes.setdefault(tier, Lane())


async def _moved(lane: Lane, seconds: float) -> None:
    """Wait this long, or until something happened to the tier."""
    lane.moved.clear()
    with suppress(TimeoutError):
        await asyncio.wait_for(lane.moved.wait(), seconds)


def _queue_rate(flow: Flow, now: float) -> float | None:
    """What the queue may give out, for this flow: nothing while it is shut for longer, and more
    than can leave otherwise.
    """
    if flow.rate is None:
        return None
    if flow.rate > 0:
        return flow.rate * HEADROOM
    return 0.0 if flow.until - now > AHEAD_SECONDS else flow.after * HEADROOM


def _same(rate: float | None, other: float | None) -> bool:
    """Rates travel in single precision."""
    if rate is None or other is None:
        return rate is other
    return math.isclose(rate, other, rel_tol=1e-5)


def _not_yet(tier: str, lane: Lane, cost: Cost, now: float) -> NotBilled:
    """The queue knows when work may go on, and this process may be faster by then."""
    wait = max(lane.flow.until - now, 1.0) if lane.flow.rate == 0 else BACK_SECONDS
    held = lane.quotas.plainly(cost, now) if lane.flow == Flow() else ""
    if held:
        wait = max(wait, lane.quotas.ready(cost) - now)
    said = f"{tier} {held}" if held else described(tier, lane.flow, now)
    return NotBilled(f"not sent yet: {said}", retry_after=timedelta(seconds=wait), throttled=True)
