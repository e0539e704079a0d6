"""A storm in virtual time: one worker's gate, as fast as it may, against endpoints with limits of
different make. What it costs in real time is measured by `bench/storm.py`.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import pytest

from activities.lane import Lane
from simulator.limiter import Limiter

ROUND_TRIP = 0.015
"""Seconds until a refusal is back."""
GLANCE = 0.05


@dataclass
class Storm:
    """So many calls that want to leave at once, against an endpoint that admits `rate` a second
    and `burst` at once.
    """

    rate: float
    burst: int
    calls: int = 60
    lane: Lane = field(default_factory=Lane)
    endpoint: Limiter = field(default_factory=Limiter)
    now: float = 1_000.0
    admitted: list[float] = field(default_factory=list)
    refused: int = 0

    def run(self) -> Storm:
        """Until all were admitted."""
        waiting = [self.now] * self.calls
        replies: list[tuple[float, int]] = []
        while len(self.admitted) < self.calls:
            leaves = max(self.lane.ready(), waiting[0], self.now) if waiting else float("inf")
            if replies and replies[0][0] <= leaves:
                self.now, wait = heapq.heappop(replies)
                self.lane.advance(self.now)
                self.lane.shut(wait, "429", self.now)
                self.refused += 1
                heapq.heappush(waiting, self.now + wait)
            elif leaves > self.now:
                # Not all at once: the tier may go faster meanwhile.
                self.now = min(leaves, self.now + GLANCE)
                self.lane.advance(self.now)
            else:
                heapq.heappop(waiting)
                self.lane.left(self.now)
                wait = self.endpoint.admit(self.rate, self.burst, self.now + ROUND_TRIP / 2)
                if wait:
                    heapq.heappush(replies, (self.now + ROUND_TRIP, wait))
                else:
                    self.admitted.append(self.now)
        return self

    @property
    def goodput(self) -> float:
        """Of what the endpoint would have admitted; what it had saved up before is taken off."""
        seconds = self.admitted[-1] - self.admitted[0]
        return (self.calls - self.burst) / (seconds * self.rate)


@pytest.mark.parametrize(("rate", "burst"), [(2, 2), (5, 5), (10, 10), (2, 10), (3, 30)])
def test_a_storm_is_admitted_at_nearly_the_endpoints_rate_with_few_refusals(
    rate: int, burst: int
) -> None:
    storm = Storm(rate, burst).run()
    assert storm.goodput >= 0.9
    assert storm.refused <= 0.15 * storm.calls


@pytest.mark.parametrize(("rate", "least"), [(1, 0.75), (2, 0.75), (5, 0.55), (10, 0.4)])
def test_an_endpoint_that_bears_no_burst_is_found_out_by_doubling(rate: int, least: float) -> None:
    storm = Storm(rate, burst=1).run()
    assert storm.goodput >= least
    assert storm.refused <= 0.2 * storm.calls


def test_a_longer_storm_comes_closer_to_the_rate() -> None:
    assert Storm(10, 10, calls=600).run().goodput >= 0.95
    assert Storm(10, 1, calls=600).run().goodput >= 0.7
