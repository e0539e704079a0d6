"""What an endpoint says that it still takes of a tier, and when the next call may leave by that:
before any is refused. Times are seconds of one clock, handed in.

Each statement is a bucket that fills evenly. It counts what left before the call that it answers;
what left since is counted here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.activities.gate.refusals import Sent
from holdfast.ports import Quota, Resource

MARGIN = 0.05
"""Seconds that a call leaves later than it could: not all are on their way for equally long."""
SMALLER = 0.1
"""It is no more than this share of the time in which the bucket fills."""
MINUTE = 60.0
"""The limits of the Messages API are for each minute."""
SHORTEST = 0.05
"""Seconds: no bucket fills faster than this."""
TELLING = 0.1
"""Share of a bucket that must be used to tell how fast it fills: what remains is rounded."""
AS_IT_GOES: Sequence[Resource] = ("output_tokens", "tokens")
"""Used while an answer is written, so that calls in flight have yet to use theirs."""
UNWRITTEN = 0.25
"""Share of what an answer may have that it is taken to have, where none was seen."""
ROOMIER = 1.25
"""Answers are taken to be this many times as long as they lately were."""


def cost_of(tokens: int = 0, max_output: int = 0, wrote: float = 0.0) -> dict[Resource, float]:
    """What a call is likely to use: of tokens, those of its prompt and of an answer as long as they
    lately were, which `wrote` so many; 0: not known.
    """
    output = min(max_output, ROOMIER * wrote) if wrote else UNWRITTEN * max_output
    return {
        "requests": 1.0,
        "input_tokens": float(tokens),
        "output_tokens": output,
        "tokens": tokens + output,
    }


@dataclass
class _Bucket:
    """One statement, and what left since. `said`: when it is full but for that; `full`: with it."""

    limit: float
    pace: float
    """How much of it comes back in a second."""
    said: float
    full: float = 0.0
    since: list[Sent] = field(default_factory=list)

    def count(self, resource: Resource, workers: int) -> None:
        """Reckon anew with what left since."""
        self.full = self.said
        for sent in self.since:
            self.use(sent.at, sent.cost.get(resource, 0.0) * workers)

    def use(self, at: float, cost: float) -> None:
        """Take in that a call leaves. Each of several workers takes the others to do as it does."""
        if cost:
            self.full = max(self.full, at) + cost / self.pace

    def ready(self, cost: float) -> float:
        """When this much is there; all that can be, where that is less."""
        lasts = self.limit / self.pace
        there = self.full - lasts + min(cost, self.limit) / self.pace
        return there + min(MARGIN, SMALLER * lasts)


@dataclass
class Quotas:
    """What the endpoint of one tier says; without statements anything may leave."""

    workers: int = 1
    buckets: dict[Resource, _Bucket] = field(default_factory=dict)
    unheard: deque[Sent] = field(default_factory=lambda: deque(maxlen=2_000))
    """Calls that left after the one whose answer was heard last, in their order."""

    def left(self, sent: Sent) -> None:
        """Take in that a call leaves."""
        self.unheard.append(sent)
        for resource, bucket in self.buckets.items():
            bucket.since.append(sent)
            bucket.use(sent.at, sent.cost.get(resource, 0.0) * self.workers)

    def refused(self, sent: Sent) -> None:
        """Take in that a call was refused: it used nothing."""
        for resource, bucket in self.buckets.items():
            if sent in bucket.since:
                bucket.since.remove(sent)
                bucket.count(resource, self.workers)

    def heard(
        self, sent: Sent, quotas: Mapping[Resource, Quota], flying: Sequence[Sent], now: float
    ) -> None:
        """Take in what the head of the answer to a call says. Nothing, where a later one spoke."""
        if sent not in self.unheard:
            return
        while self.unheard.popleft() is not sent:
            pass
        before, self.buckets = self.buckets, {}
        for resource, quota in quotas.items():
            known = before.get(resource)
            bucket = _bucket(quota, known, sent.at, now)
            bucket.since = list(flying if resource in AS_IT_GOES else self.unheard)
            bucket.count(resource, self.workers)
            self.buckets[resource] = bucket

    def ready(self, cost: Mapping[Resource, float]) -> float:
        """When a call of this cost may leave."""
        return max(
            (
                bucket.ready(cost[resource] * self.workers)
                for resource, bucket in self.buckets.items()
                if cost.get(resource)
            ),
            default=0.0,
        )

    def interval(self, cost: Mapping[Resource, float]) -> float:
        """Seconds between two calls of this cost that leave this process, once nothing is left."""
        needs = (cost.get(resource, 0.0) / each.pace for resource, each in self.buckets.items())
        return self.workers * max(needs, default=0.0)

    def per_second(self, quotas: Mapping[Resource, Quota], cost: Mapping[Resource, float]) -> float:
        """Calls of this cost a second that the endpoint takes, where it is said that too little is
        left for one; 0: that is not said.
        """
        paces = [
            self.buckets[resource].pace / cost[resource]
            for resource, quota in quotas.items()
            if resource in self.buckets
            and quota.remaining < min(cost.get(resource, 0.0), quota.limit)
        ]
        return min(paces, default=0.0)

    def plainly(self, cost: Mapping[Resource, float], now: float) -> str:
        """What calls of this cost wait for, for somebody who watches a run; empty: nothing."""
        for resource, bucket in self.buckets.items():
            needed = cost.get(resource, 0.0) * self.workers
            if needed and bucket.ready(needed) > now:
                return f"held to what the endpoint says it takes: {bucket.pace:.3g} {resource}/s"
        return ""


def _bucket(quota: Quota, known: _Bucket | None, sent: float, now: float) -> _Bucket:
    """The statement that was heard now about a call that left at `sent`. The endpoint made it at
    some moment between: as slow as it can be meant, or by the minute if it can be meant so.
    """
    used = max(quota.limit - quota.remaining, 0.0)
    full = max(now + quota.seconds, sent + SHORTEST)
    slowest, fastest = used / (full - sent), used / max(full - now, SHORTEST)
    by_minute = quota.limit / MINUTE
    if known and known.limit == quota.limit and used < TELLING * quota.limit:
        pace = known.pace
    elif not used or slowest <= by_minute <= fastest:
        pace = by_minute
    else:
        pace = slowest
    lasts = used / pace
    return _Bucket(quota.limit, pace, min(max(full, sent + lasts), now + lasts))
