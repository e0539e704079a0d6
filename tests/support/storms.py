"""Storms in virtual time: calls of one tier, the gates of one or more workers, and an endpoint that
refuses by chance, beyond a rate, or beyond a number in flight. Seeded, so the same one comes again.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from holdfast.activities.asking.sending import SHORTEST_WAIT
from holdfast.activities.gate.flow import Flow, described, understood
from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.queue_rates import QueueRate
from holdfast.activities.gate.refusals import Sent
from holdfast.ports import Head, Quota
from simulator.limiter import Limiter

GLANCE = 0.05
"""Seconds after which a call that waits looks again whether it may leave."""
LATE = (0.0, 1.0)
"""Seconds that Temporal is late with a call that is tried again."""
SPREAD = 0.25
AGREED_EVERY = 1.0
NEXT_LINK = 0.05
"""Seconds between the end of a call and the start of the one that needs it."""


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
    latency: tuple[float, float] = (0.2, 0.6)
    """Seconds of an answer."""
    round_trip: float = 0.015
    """Seconds until a refusal is back."""
    asked: float = 1.0
    """Seconds to wait, as a refusal says."""
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
    now: float = 1_000.0
    lanes: list[Lane] = field(default_factory=list)
    """What the gates remember; may be handed on to a later storm."""
    began: float = 0.0
    admitted: list[float] = field(default_factory=list)
    refused: int = 0
    at_first: int = 0
    """How many of those had left in the storm's first moment."""
    ended: int = 0
    inside: int = 0

    def run(self) -> Storm:
        """Until all have ended."""
        self.began = self.now
        self.random = random.Random(self.seed)
        self.limiter = Limiter()
        self.lanes = self.lanes or [Lane() for _ in range(self.workers)]
        self.waiting: list[list[tuple[int, int]]] = [[] for _ in self.lanes]
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()
        self.held = QueueRate()
        for lane in self.lanes:
            lane.workers = len(self.lanes)
        for _ in range(self.chains):
            self._at(0.0, lambda: self._arrive(self.links - 1))
        if len(self.lanes) > 1:
            self._at(AGREED_EVERY, self._agree)
        while self.ended < self.chains * self.links:
            self._step()
        return self

    def _at(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + seconds, next(self.numbers), happens))

    def _step(self) -> None:
        """The next event, or the next call that may leave."""
        if self.events and self.events[0][0] <= self.now:
            heapq.heappop(self.events)[2]()
            return
        wake = math.inf
        # Workers send at the same time: none of them has sent all before another begins.
        pairs = zip(self.lanes, self.waiting, strict=True)
        for lane, waiting in sorted(pairs, key=lambda pair: len(pair[0].flying)):
            if not waiting:
                continue
            lane.waiting = len(waiting)
            lane.advance(self.now)
            ready = lane.ready(self.now)
            if ready <= self.now:
                self._leave(lane, *waiting.pop(0))
                return
            wake = min(wake, max(min(ready, self.now + GLANCE), self.now + 0.001))
        self.now = max(self.now, min(wake, self.events[0][0] if self.events else math.inf))

    def _arrive(self, left: int, refused: int = 0) -> None:
        self.random.choice(self.waiting).append((left, refused))

    def _leave(self, lane: Lane, left: int, refused: int) -> None:
        sent = lane.left(self.now)
        self._at(self.endpoint.round_trip / 2, lambda: self._meet(lane, sent, left, refused))

    def _meet(self, lane: Lane, sent: Sent, left: int, before: int) -> None:
        """A call is at the endpoint."""
        ours = self.endpoint
        back = ours.round_trip / 2
        refused = self.random.random() < ours.chance
        refused = refused or 0 < ours.in_flight <= self.inside
        refused = refused or bool(self.limiter.admit(ours.rate, ours.burst, self.now))
        if ours.limits:
            remaining, seconds = self.limiter.left(ours.rate, ours.burst)
            quota = Quota(ours.burst, remaining, seconds - back)
            head = Head(not refused, {"requests": quota})
            self._at(back, lambda: lane.heard(sent, head, lane.advance(self.now)))
        if refused:
            self._at(back, lambda: self._refuse(lane, sent, left, before + 1))
            return
        self.inside += 1
        self.admitted.append(self.now)
        seconds = self.random.uniform(*ours.latency)
        self._at(seconds + ours.releases, self._release)
        self._at(seconds + back, lambda: self._end(lane, sent, left))

    def _release(self) -> None:
        self.inside -= 1

    def _refuse(self, lane: Lane, sent: Sent, left: int, refused: int) -> None:
        self.refused += 1
        self.at_first += sent.at == self.began
        asked = own = self.endpoint.asked
        if self.endpoint.unnamed:
            asked = self.endpoint.unnamed * 2 ** min(refused - 1, 4)
            own = SHORTEST_WAIT.total_seconds()
        lane.shut(asked, "429", lane.advance(self.now), sent)
        wait = own * (1 + SPREAD * self.random.random()) + self.random.uniform(*LATE)
        self._at(wait, lambda: self._arrive(left, refused))

    def _end(self, lane: Lane, sent: Sent, left: int) -> None:
        self.ended += 1
        lane.ended(sent, lane.advance(self.now))
        if left:
            self._at(NEXT_LINK, lambda: self._arrive(left - 1))

    def _agree(self) -> None:
        """What `RateGate` does at the server, once a second."""
        for number, lane in enumerate(self.lanes):
            lane.advance(self.now)
            if self.held.stamp != lane.newest.stamp:
                lane.newest = self.held
                shared = understood("haiku", self.held.rate, self.held.reason, self.now, self.now)
                lane.adopt(shared or Flow())
            if lane.certain != lane.told:
                lane.told = lane.certain
                text = described("haiku", lane.told, self.now)
                stamp = f"{number} {self.now}"
                self.held = lane.newest = QueueRate(lane.told.rate, text, stamp, self.now)
        self._at(AGREED_EVERY, self._agree)

    @property
    def seconds(self) -> float:
        """Until the last call had ended."""
        return self.now - self.began

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
    calm = replace(storm.endpoint, rate=0.0, in_flight=0, chance=0.0)
    return Storm(calm, storm.chains, storm.links, storm.workers, storm.seed)
