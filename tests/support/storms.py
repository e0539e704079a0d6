"""Storms in virtual time: calls of one tier, the gates of one or more workers, and an endpoint that
refuses by chance, beyond a rate, beyond a number in flight, or everything for a while. Seeded, so
the same one comes again. Only the `Gate` port is called; the server that workers share is scripted.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import selectors
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast
from unittest.mock import patch

from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueueConfig
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    UpdateTaskQueueConfigRequest,
    UpdateTaskQueueConfigResponse,
)
from temporalio.client import Client

from holdfast.activities.asking.sending import SHORTEST_WAIT, SPREAD
from holdfast.activities.gate import rate_gate
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Head, Quota
from holdfast.simulator.limiter import Limiter

LATE = (0.0, 1.0)
"""Seconds that Temporal is late with a call that is tried again."""
NEXT_LINK = 0.05
"""Seconds between the end of a call and the start of the one that needs it."""
TIER = "haiku"
QUEUE = "storm"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Endpoint:
    """What refuses calls; each condition by itself."""

    rate: float = 0.0
    """Calls per second; 0: any number."""
    burst: int = 1
    in_flight: int = 0
    """Calls at once; 0: any number."""
    chance: float = 0.0
    """Share that is refused at random."""
    down: tuple[float, float] = (0.0, 0.0)
    """Seconds of the storm between which everything is refused."""
    latency: tuple[float, float] = (0.2, 0.6)
    """Seconds of an answer."""
    round_trip: float = 0.015
    """Seconds until a refusal is back."""
    asked: float = 1.0
    """Seconds to wait, as a refusal says; one for the rate says how long that really takes, in
    whole seconds.
    """
    unnamed: float = 0.0
    """It says nothing, and this is what a first refusal is taken to ask, doubled with each."""
    limits: bool = False
    """Whether the heads of answers say what is left of the rate."""
    releases: float = 0.0
    """Seconds by which a place becomes free later than its answer has left."""


@dataclass
class Storm:
    """`chains` times `links` calls: the first of each chain at once, each other one when the one
    before it has ended.
    """

    endpoint: Endpoint
    chains: int = 60
    links: int = 1
    workers: int = 1
    seed: int = 0
    gates: Sequence[RateGate] = ()
    """Those of an earlier storm, with what they remember."""
    began: float = 0.0
    ended: float = 0.0
    admitted: list[float] = field(default_factory=list)
    refused: int = 0
    at_first: int = 0
    """How many of those had left in the storm's first moment."""
    back: int = 0
    """How often a call went back to the server without having been sent."""
    inside: int = 0

    def run(self) -> Storm:
        """Play it in a loop of its own."""
        return in_virtual_time(self.play())

    async def play(self) -> Storm:
        """Until all calls have ended."""
        clock = asyncio.get_running_loop().time
        self.random, self.limiter = random.Random(self.seed), Limiter()
        self.gates = self.gates or [RateGate() for _ in range(self.workers)]
        server = Server(len(self.gates))
        client = cast(Client, server)
        keeping = [
            asyncio.create_task(gate.keep(client, QUEUE, (TIER,)))
            for gate in self.gates
            if len(self.gates) > 1
        ]
        await asyncio.sleep(0)
        self.began = clock()
        await asyncio.gather(*(self._chain() for _ in range(self.chains)))
        self.ended = clock()
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        return self

    async def _chain(self) -> None:
        for link in range(self.links):
            if link:
                await asyncio.sleep(NEXT_LINK)
            refused = 0
            while (wait := await self._call(refused)) is not None:
                refused += wait > 0
                await asyncio.sleep(abs(wait) + self.random.uniform(*LATE))

    async def _call(self, refused: int) -> float | None:
        """Make one attempt. None: it was answered; else seconds until the next, negative if it did
        not leave.
        """
        ours, gate = self.endpoint, self.random.choice(self.gates)
        clock, back = asyncio.get_running_loop().time, ours.round_trip / 2
        try:
            await gate.turn(TIER)
        except NotBilled as later:
            assert later.next_retry_delay is not None
            self.back += 1
            return -later.next_retry_delay.total_seconds()
        left = clock()
        await asyncio.sleep(back)
        asked = self._refusal(clock())
        head = Head(not asked, self._quotas(back))
        if asked:
            await asyncio.sleep(back)
            self._hear(gate, head)
            self.refused += 1
            self.at_first += left == self.began
            own = asked
            if ours.unnamed:
                asked = ours.unnamed * 2 ** min(refused, 6)
                own = SHORTEST_WAIT.total_seconds()
            await gate.throttled(TIER, asked, "429")
            return own * (1 + SPREAD * self.random.random())
        self.inside += 1
        self.admitted.append(clock())
        seconds = self.random.uniform(*ours.latency)
        asyncio.get_running_loop().call_later(seconds + ours.releases, self._release)
        await asyncio.sleep(back)
        self._hear(gate, head)
        await asyncio.sleep(seconds)
        gate.ended()
        return None

    def _refusal(self, now: float) -> float:
        """Seconds that the endpoint asks a call to wait that it refuses now; 0: it takes it."""
        ours, since = self.endpoint, now - self.began
        refused = self.random.random() < ours.chance
        refused = refused or 0 < ours.in_flight <= self.inside
        refused = refused or ours.down[0] <= since < ours.down[1]
        return ours.asked if refused else self.limiter.admit(ours.rate, ours.burst, now)

    def _quotas(self, back: float) -> dict[Any, Quota]:
        if not self.endpoint.limits:
            return {}
        remaining, seconds = self.limiter.left(self.endpoint.rate, self.endpoint.burst)
        return {"requests": Quota(self.endpoint.burst, remaining, seconds - back)}

    def _hear(self, gate: RateGate, head: Head) -> None:
        """Heads of answers are told where they say something."""
        if head.quotas:
            gate.heard(head)

    def _release(self) -> None:
        self.inside -= 1

    @property
    def seconds(self) -> float:
        """Until the last call had ended."""
        return self.ended - self.began

    @property
    def refusals(self) -> float:
        """For each call."""
        return self.refused / (self.chains * self.links)

    @property
    def later_refusals(self) -> float:
        """For each call, without what left in the first moment, when nothing was known."""
        return (self.refused - self.at_first) / (self.chains * self.links)

    @property
    def goodput(self) -> float:
        """Of what the endpoint would have taken: of its rate, without what it had saved up before;
        of its places, as somebody fills them who knows how many there are.
        """
        if self.endpoint.rate:
            taken = self.admitted[-1] - self.admitted[0]
            return (self.chains - self.endpoint.burst) / (taken * self.endpoint.rate)
        return self._ideal() / self.seconds

    def _ideal(self) -> float:
        drawn = random.Random(self.seed)
        places = [0.0] * self.endpoint.in_flight
        for _ in range(self.chains):
            seconds = drawn.uniform(*self.endpoint.latency) + self.endpoint.round_trip
            heapq.heapreplace(places, places[0] + seconds)
        return max(places)


def without(storm: Storm) -> Storm:
    """The same calls at an endpoint that refuses none."""
    calm = replace(storm.endpoint, rate=0.0, in_flight=0, chance=0.0, down=(0.0, 0.0))
    return Storm(calm, storm.chains, storm.links, storm.workers, storm.seed)


class Server:
    """What of a Temporal server a gate uses: one task queue's rate, and who asks for work."""

    namespace = "default"
    identity = "storm"

    def __init__(self, workers: int) -> None:
        self.config, self.workers = TaskQueueConfig(), workers

    @property
    def workflow_service(self) -> Server:
        return self

    async def describe_task_queue(
        self,
        request: DescribeTaskQueueRequest,
        **_: object,
    ) -> DescribeTaskQueueResponse:
        pollers = [PollerInfo(identity=str(number)) for number in range(self.workers)]
        return DescribeTaskQueueResponse(pollers=pollers, config=self.config)

    async def update_task_queue_config(
        self, request: UpdateTaskQueueConfigRequest, **_: object
    ) -> UpdateTaskQueueConfigResponse:
        update, kept = request.update_queue_rate_limit, self.config.queue_rate_limit
        kept.Clear()
        if update.HasField("rate_limit"):
            kept.rate_limit.CopyFrom(update.rate_limit)
        kept.metadata.reason = update.reason
        now = asyncio.get_running_loop().time()
        kept.metadata.update_time.FromNanoseconds(int(now * 1e9))
        return UpdateTaskQueueConfigResponse(config=self.config)


class _Leaping(selectors.SelectSelector):
    """Goes on to the next timer at once."""

    now = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "nothing will ever happen"
            self.now += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.leaping = _Leaping()
        super().__init__(self.leaping)

    def time(self) -> float:
        return self.leaping.now


def in_virtual_time(story: Coroutine[Any, Any, Result]) -> Result:
    """What comes of it, played as fast as the machine may; the gates go by the same clock."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        loop = runner.get_loop()
        with patch.object(rate_gate, "_now", loop.time):
            return runner.run(story)
