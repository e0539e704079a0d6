"""One tier as this process sees it: what its calls meet, and when the next one may leave. Times are
seconds of one clock, handed in.

A refusal is put down to chance, which holds nobody back, if enough are taken of the calls that
nothing held back; else to a limit in flight, if at least as many calls were refused as taken beside
so many others; else to a limit of the rate.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

from holdfast.activities.gate.quotas import Cost, Quotas, Sent
from holdfast.activities.gate.throttle import FULL_SPEED, Throttle, shut_for
from holdfast.ports import Head

GLANCE_SECONDS = 0.02
"""Pause between two looks whether a call in flight has ended."""
AT_ONCE = 0.1
"""Seconds. One call may leave within this time of a refusal, to find out if it was chance; and a
call was taken if nothing came back for at least this long.
"""
CHANCE = 0.4
"""Share of calls that is taken at least where chance refuses; where a limit does, it is less."""
RECENT = 30
"""So many calls tell what refuses them."""
FIRST_RATE = 1.0
"""Calls per second where a tier opens of which nothing is known."""
STEP_SECONDS = 1.0
"""A limit is raised after this long at least, once a call was taken."""
FIRST_STEP, LAST_STEP = 0.05, 4.0
"""Shares by which it is raised: after a refusal, and before it is lifted. A share doubles each time
that it was borne.
"""
FORGOTTEN = 45.0
"""Seconds after which a refusal says nothing any more."""


@dataclass
class Lane:
    """State of one tier."""

    throttle: Throttle = FULL_SPEED
    endpoint: str = ""
    """Address of the endpoint that its calls go to."""
    workers: int = 1
    quotas: Quotas = field(default_factory=Quotas)
    flying: list[Sent] = field(default_factory=list)
    """Calls that left and have not come back, in the order in which they left."""
    recent: deque[Sent] = field(default_factory=lambda: deque(maxlen=RECENT))
    """Calls that left last, in their order."""
    untested: Throttle | None = None
    """Throttle before a refusal that a call may test now."""
    suspected: float = 0.0
    """When the first call left of those that tell chance from a limit."""
    refused_at: float = -math.inf
    """When a call was refused last."""
    step: float = FIRST_STEP
    stepped: float = 0.0
    """When the limit was changed last."""
    borne: bool = False
    """True if a call was taken since."""
    back: float = 0.0
    """Seconds that a refusal lately took to come back."""
    lasted: float = 0.0
    """Seconds that a call lately took."""
    wrote: float = 0.0
    """Tokens that an answer lately had."""

    def interval(self, cost: Cost) -> float:
        """Return the seconds between two calls of this process, once they have to wait."""
        held, pace = self.throttle, 0.0
        if held.rate:
            pace = self.workers / held.rate
        elif held.most:
            pace = self.lasted * self.workers / held.most
        return max(pace, self.quotas.interval(cost))

    def ready(self, now: float, cost: Cost) -> float:
        """Return when the next call may leave, as far as that is known."""
        held, stated = self.throttle, max(now, self.quotas.ready(cost))
        if held.shut(now):
            tested = self.untested is None or now > held.since + AT_ONCE
            return max(stated, held.until) if tested else stated
        if held.most and len(self.flying) >= max(round(held.most / self.workers), 1):
            return max(stated, now + GLANCE_SECONDS)
        if held.rate and self.recent:
            return max(stated, self.recent[-1].at + self.workers / held.rate)
        return stated

    def advance(self, now: float) -> float:
        """Take in that it is now."""
        self.quotas.workers = self.workers
        settled = now - max(3 * self.back, AT_ONCE)
        for sent in self.flying:
            if sent.at > settled:
                break
            self._take(sent)
        held = self.throttle
        if held.by_hand or held.shut(now):
            return now
        if not (held.rate or held.most) or now >= max(self.refused_at, held.until) + FORGOTTEN:
            self.throttle = FULL_SPEED
        elif self.borne and now >= self.stepped + STEP_SECONDS:
            self._raise(now)
        return now

    def _raise(self, now: float) -> None:
        held, more = self.throttle, 1 + self.step
        self.step, self.stepped, self.borne = 2 * self.step, now, False
        self.throttle = replace(held, rate=held.rate * more, most=held.most * more)
        if self.step > LAST_STEP:
            self.throttle = FULL_SPEED

    def left(self, now: float, cost: Cost) -> Sent:
        """Take in that a call leaves."""
        test = self.throttle.shut(now)
        free = test or self.throttle == FULL_SPEED
        sent = Sent(now, cost, len(self.flying), free, self.untested if test else None)
        self.untested = None
        self.flying.append(sent)
        self.recent.append(sent)
        self.quotas.left(sent)
        return sent

    def heard(self, sent: Sent, head: Head, now: float) -> None:
        """Take in the head of the answer to a call."""
        self.quotas.heard(sent, head.quotas, self.flying, now)
        if head.taken:
            self._take(sent)

    def ended(self, sent: Sent, now: float, tokens: int) -> None:
        """Take in that a call is over, and how many tokens its answer has."""
        self._take(sent)
        self.flying.remove(sent)
        self.lasted = _smoothed(self.lasted, now - sent.at)
        self.wrote = _smoothed(self.wrote, tokens)

    def _take(self, sent: Sent) -> None:
        if sent.taken:
            return
        sent.taken = True
        self.borne = self.borne or sent.at > self.stepped
        if self.throttle.by_hand:
            return
        if sent.free and self._is_chance():
            self.throttle = FULL_SPEED
        elif sent.tests is not None:
            self.throttle = sent.tests

    def refused(self, sent: Sent | None, seconds: float, cause: str, now: float) -> None:
        """Take in that a call was refused for want of capacity; None: one that nobody let leave."""
        others = self._remove(sent, now) if sent else 0
        held, shut = self.throttle, shut_for(seconds, cause, now, self.endpoint)
        if held.by_hand or (sent and not sent.stated and self._is_chance()):
            return
        self.stepped, self.borne = now, False
        if held.shut(now):
            # It left before the tier was shut, or to test.
            most = min(held.most, max(len(self.flying), 1) * self.workers)
            self.throttle = replace(held, until=max(held.until, shut.until), most=most)
            return
        self.step, self.untested = FIRST_STEP, None
        if sent and sent.stated:
            self.throttle = replace(shut, rate=sent.stated)
        elif not (others and self._is_crowded(others)):
            self.throttle, self.untested = (
                replace(shut, rate=self._rate(now)),
                held if sent else None,
            )
        elif held.most:
            # It left to find out if more may be in flight by now.
            self.throttle = replace(held, most=min(held.most, others * self.workers))
        else:
            self.throttle, self.untested = replace(shut, most=others * self.workers), held

    def _remove(self, sent: Sent, now: float) -> int:
        """Take a refused call out of those in flight; return how many were beside it."""
        self.back = max(now - sent.at, 0.8 * self.back)
        if now > self.refused_at + FORGOTTEN:
            self.suspected = sent.at
        sent.refused, self.refused_at = True, now
        place = self.flying.index(sent)
        del self.flying[place]
        for later in self.flying[place:]:
            later.others -= 1
        return sent.others

    def _is_chance(self) -> bool:
        free = [each for each in self.recent if each.free and each.at >= self.suspected]
        taken = sum(each.taken for each in free)
        return taken > 0 and taken >= CHANCE * (taken + sum(each.refused for each in free))

    def _is_crowded(self, others: int) -> bool:
        since = self.throttle.since
        beside = [each for each in self.recent if each.at >= since and each.others >= others]
        return sum(each.refused for each in beside) >= sum(each.taken for each in beside)

    def _rate(self, now: float) -> float:
        """Return the calls per second to go on with: as many as were taken since the tier was last
        shut, but no less than half of the rate before.
        """
        since = max(self.throttle.since, self.recent[0].at if self.recent else now)
        taken = sum(each.at > since and each.taken for each in self.recent)
        held = self.throttle.rate
        if not taken:
            return held or FIRST_RATE
        measured = self.workers * taken / (now - since)
        return max(min(measured, held), held / 2) if held else max(measured, FIRST_RATE)


def _smoothed(before: float, value: float) -> float:
    return 0.8 * before + 0.2 * value if before and value else before or value
