"""Why a call was refused: by chance, because too many were in flight, or because they came too
fast. Times are seconds of one clock, handed in.

A limit refuses the next call, too; chance seldom does. A limit in flight takes the next call as
soon as another has ended; a limit of the rate takes it as soon as time has passed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.activities.gate.flow import EXPECTED_STEPS, Flow
from holdfast.ports import Resource

AT_ONCE = 0.1
"""Seconds. A call that leaves within this time of a refusal shows whether it was chance."""
CHANCE = 0.3
"""Share of calls refused, where chance is at work."""
UNKNOWN_RATE = 10.0
"""Calls per second: the limit that is reckoned with where none was measured."""
LIKELIEST = 0.5
UNLIKELIEST = 0.1
"""Bounds of how likely a limit takes a call right after it refused one."""
MOST_LUCK = 3.0
LEAST_LUCK = -2.0
"""Bounds of the evidence for chance, in logarithms of odds: a few calls can always turn it."""
REMEMBERED = 60.0
"""Seconds after the last refusal that the evidence counts."""
SEEN = 60
"""This many calls show whether a limit in flight parts the refused from the taken."""
TELLING = 6
"""At least this many of them must have been refused to tell that."""
WRONG = 0.15
"""For each refused call, at most this many stand on the wrong side of such a limit."""
MISSES = 2
"""It is not a limit in flight after this many refusals of calls that took a freed place."""


@dataclass(eq=False)
class Sent:
    """A call that left."""

    at: float
    others: int
    """How many calls were in flight beside it when it left."""
    freed: int = 0
    """How many of those may have ended before it arrived."""
    test: bool = False
    """It left to find out why another one was refused."""
    one_more: bool = False
    """It left though as many were in flight as the endpoint takes."""
    after: Sent | None = None
    """The call that left right before, if its own fate says why that one was refused."""
    likely: float = LIKELIEST
    """How likely a limit of the rate would take this call after it refused the one before."""
    fewer: bool = False
    """Whether fewer were in flight than beside the one before, so that it may be taken for that."""
    cost: Mapping[Resource, float] = field(default_factory=dict)
    """What it is likely to use of what the endpoint limits."""
    stated: float = 0.0
    """How many such calls a second the endpoint says it takes, where it refused this one because
    too little was left; 0: it does not say so.
    """
    taken: bool = False
    refused: float = 0.0
    """When it was; 0: it was not."""


@dataclass
class Luck:
    """The evidence for chance: what became of the calls that left right after a refused one."""

    points: float = 0.0
    last: float = -REMEMBERED
    """When a call was refused last."""
    previous: Sent | None = None
    """The call that left last."""

    def good(self) -> bool:
        """Whether a refusal says nothing about a limit."""
        return self.points > 0

    def left(self, sent: Sent, in_flight: bool, rate: float) -> None:
        """Take in that a call leaves at this assumed `rate`; `in_flight`: so is the one before."""
        before, self.previous = self.previous, sent
        if before is None or sent.at - max(before.at, before.refused) > AT_ONCE:
            return
        sent.after, sent.fewer = before, sent.others - in_flight < before.others
        likely = (rate or UNKNOWN_RATE) * (sent.at - before.at)
        sent.likely = min(max(likely, UNLIKELIEST), LIKELIEST)

    def refused(self, sent: Sent, now: float) -> None:
        """Take in that a call was refused."""
        if now > self.last + REMEMBERED:
            self.points = 0.0
        elif sent.after and sent.after.refused:
            self._learn(CHANCE / (1 - sent.likely))
        self.last = sent.refused = now

    def taken(self, sent: Sent) -> None:
        """Take in that a call was taken."""
        if sent.after and sent.after.refused and not (sent.fewer or sent.freed):
            self._learn((1 - CHANCE) / sent.likely)

    def _learn(self, odds: float) -> None:
        self.points = min(max(self.points + math.log(odds), LEAST_LUCK), MOST_LUCK)


@dataclass
class Crowds:
    """How many were in flight beside the calls that were taken, and beside those refused."""

    seen: deque[tuple[int, bool]] = field(default_factory=lambda: deque(maxlen=SEEN))

    def taken(self, sent: Sent) -> None:
        """Take in that a call was taken."""
        self.seen.append((sent.others - sent.freed, False))

    def refused(self, sent: Sent) -> None:
        """Take in that a call was refused."""
        self.seen.append((sent.others, True))

    def limit(self) -> int:
        """The limit in flight that parts the refused calls from those taken; 0: none does."""
        refused = [others for others, was in self.seen if was]
        if len(refused) < TELLING:
            return 0
        wrong = {limit: self._wrong(limit) for limit in set(refused) if limit}
        best = min(wrong, key=wrong.__getitem__, default=0)
        return best if best and wrong[best] <= WRONG * len(refused) else 0

    def _wrong(self, limit: int) -> int:
        """How many calls met another fate than such a limit has for them."""
        return sum((others >= limit) != refused for others, refused in self.seen)


@dataclass
class Doubt:
    """A refusal whose cause is being found out: one call leaves at once, and if that is refused,
    too, one for each that ends. The tier is shut for all others.
    """

    before: Flow
    """What was allowed before."""
    began: float
    crowd: int
    """Calls that were in flight beside the refused one."""
    settled: bool
    """Whether that the endpoint takes fewer in flight than it did is out of the question."""
    tests: int = 1
    """How many calls may leave now to find out."""
    proven: bool = False
    """It is a limit, of the rate or in flight: the next call was refused, too."""
    others: int = 0
    """How many calls were refused meanwhile that had left before."""
    misses: int = 0
    waited: bool = False
    """The wait that was asked for is over, and nothing in flight has ended meanwhile."""

    def allows(self, now: float) -> bool:
        """Whether a call may leave to find out while the tier is shut."""
        return self.tests > 0 and (self.proven or now <= self.began + AT_ONCE)

    def left(self) -> None:
        """Take in that one does."""
        self.tests = max(self.tests - 1, 0)

    def ended(self) -> None:
        """Take in that a call in flight is over: its place is free."""
        self.waited = False
        self.tests += 1

    def opened(self) -> None:
        """Take in that the wait is over."""
        self.waited, self.tests = True, 1

    def refused(self, sent: Sent) -> int | None:
        """Take in that a test was refused. The limit in flight that this shows; 0: not clear yet;
        None: it is a limit of the rate.
        """
        if self.waited and sent.others:
            return sent.others
        if self.proven or sent.others < self.crowd:
            self.misses += 1
        self.proven, self.tests = True, 0
        self.crowd = min(self.crowd, sent.others)
        if self.settled or not self.crowd or self.misses >= MISSES:
            return None
        return 0

    def taken(self, sent: Sent) -> int:
        """Take in that a test was taken. The limit in flight that this shows; 0: none."""
        return self.crowd if sent.others - sent.freed < self.crowd else 0


def is_news(flow: Flow) -> bool:
    """Whether a refusal at this flow comes as a surprise, so that its cause is to be found out: a
    climb meets the limit where it was before.
    """
    return not flow.rate or flow.step not in EXPECTED_STEPS
