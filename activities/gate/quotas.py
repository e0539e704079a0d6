"""What an endpoint says that it still takes of a tier, and when the next call may leave by that:
before any is refused. Times are seconds of one clock, handed in.

Each statement is a bucket that fills evenly. It counts what left before the call that it answers;
what left since is counted here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.activities.gate.throttle import Throttle
from holdfast.ports import Quota, Resource

MARGIN = 0.05
"""Seconds that a call leaves later than it could: not all are on their way for equally long."""
MINUTE = 60.0
"""The limits of the Messages API are for each minute."""
TELLING = 0.1
"""Share of a bucket that must be used to tell how fast it fills: what remains is rounded."""
UNWRITTEN = 0.25
"""Share of what an answer may have that it is taken to have, where none was seen."""
AS_IT_GOES: Sequence[Resource] = ("output_tokens", "tokens")
"""Used while an answer is written, so that calls in flight have yet to use theirs."""

Cost = Mapping[Resource, float]


@dataclass(eq=False)
class Sent:
    """A call that left."""

    at: float
    cost: Cost
    others: int = 0
    """Calls in flight beside it when it left that were not refused."""
    free: bool = True
    """True if it left although, or while, nothing held it back."""
    tests: Throttle | None = None
    """Throttle to restore if the call is accepted: it left to test a refusal."""
    taken: bool = False
    refused: bool = False
    stated: float = 0.0
    """Such calls per second that come back, if the endpoint said that too little was left for it;
    0: it did not say so.
    """


def cost_of(tokens: int = 0, max_output: int = 0, wrote: float = 0.0) -> Cost:
    """Return what a call is likely to use, `wrote` being the tokens of an answer lately, or 0."""
    output = min(max_output, wrote or UNWRITTEN * max_output)
    return {
        "requests": 1.0,
        "input_tokens": float(tokens),
        "output_tokens": output,
        "tokens": tokens + output,
    }


@dataclass
class _Bucket:
    limit: float
    pace: float
    """Amount that comes back in a second."""
    full: float
    """When it is full, if nothing else leaves."""

    def use(self, at: float, cost: float) -> None:
        if cost:
            self.full = max(self.full, at) + cost / self.pace

    def ready(self, cost: float) -> float:
        """Return when this much is there; all that can be, where that is less."""
        lasts = self.limit / self.pace
        there = self.full - lasts + min(cost, self.limit) / self.pace
        return there + min(MARGIN, lasts / 10)


@dataclass
class Quotas:
    """The limits that the endpoint of one tier states; without any, calls may leave. Each of
    several workers assumes that the others do as it does.
    """

    workers: int = 1
    buckets: dict[Resource, _Bucket] = field(default_factory=dict)
    newest: float = 0.0
    """When the call left whose answer they are from."""

    def left(self, sent: Sent) -> None:
        for bucket, cost in self._shares(sent.cost):
            bucket.use(sent.at, cost)

    def heard(
        self, sent: Sent, quotas: Mapping[Resource, Quota], flying: Sequence[Sent], now: float
    ) -> None:
        """Take in what the head of the answer to a call says. Nothing, where a later one spoke."""
        if sent.at < self.newest:
            return
        self.newest, buckets = sent.at, {}
        since = flying[flying.index(sent) + 1 :]
        for resource, quota in quotas.items():
            bucket = _bucket(quota, self.buckets.get(resource), sent.at, now)
            for other in flying if resource in AS_IT_GOES else since:
                bucket.use(other.at, other.cost.get(resource, 0.0) * self.workers)
            buckets[resource] = bucket
            needed = sent.cost.get(resource, 0.0)
            if quota.remaining < min(needed, quota.limit):
                sent.stated = min(sent.stated or math.inf, bucket.pace / needed)
        self.buckets = buckets

    def ready(self, cost: Cost) -> float:
        """Return when a call of this cost may leave."""
        return max((bucket.ready(needed) for bucket, needed in self._shares(cost)), default=0.0)

    def interval(self, cost: Cost) -> float:
        """Return the seconds between two calls of this process, once nothing is left."""
        return max((needed / bucket.pace for bucket, needed in self._shares(cost)), default=0.0)

    def explain(self, cost: Cost, now: float) -> str:
        """Return what calls of this cost wait for; empty: nothing."""
        for resource, bucket in self.buckets.items():
            if self.ready({resource: cost.get(resource, 0.0)}) > now:
                return f"held to what the endpoint says it takes: {bucket.pace:.3g} {resource}/s"
        return ""

    def _shares(self, cost: Cost) -> Iterator[tuple[_Bucket, float]]:
        for resource, bucket in self.buckets.items():
            if needed := cost.get(resource, 0.0) * self.workers:
                yield bucket, needed


def _bucket(quota: Quota, known: _Bucket | None, sent: float, now: float) -> _Bucket:
    """Return the statement that was heard now about a call that left at `sent`. The endpoint made
    it at some moment between: it is taken as slow as it can be meant.
    """
    used = max(quota.limit - quota.remaining, 0.0)
    full = max(now + quota.seconds, sent + MARGIN)
    pace = quota.limit / MINUTE
    if used >= TELLING * quota.limit:
        pace = used / (full - sent)
    elif known and known.limit == quota.limit:
        pace = known.pace
    return _Bucket(quota.limit, pace, min(full, now + used / pace))
