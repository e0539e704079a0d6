"""One tier as this process sees it: what may leave when, and what that says about the endpoint.
Times are seconds of one clock, handed in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from orchestrator.gate import Flow, Throttled, next_rate, regained
from orchestrator.rate_limits import QueueRate

SPACING = 0.01
"""Seconds between two calls of a tier that leave this process, at least."""
FIRST_SPACING = 0.02
"""The same for the first calls after a pause: the first refusal comes back before a wide fan-out
has left.
"""
FIRST_CALLS = 20
MEASURED_SECONDS = 5.0
"""How far back a rate is measured."""
ENOUGH = 2
"""Calls that must have been taken, for a rate."""
FILLED_SECONDS = 1.0
"""A limit that nothing was sent against holds about so many seconds' worth of calls, at most."""
LATE_SECONDS = 0.02
"""More than timers and the event loop are late."""


@dataclass
class Lane:
    """One tier as this process sees it."""

    flow: Flow = field(default_factory=Flow)
    told: Flow = field(default_factory=Flow)
    """What the server holds, as far as known."""
    newest: QueueRate = field(default_factory=QueueRate)
    """What was last read or written there."""
    by_hand: QueueRate | None = None
    """The limit at the server, when it is a person's: it is left alone."""
    workers: int = 1
    free: float = 0.0
    """When the next call may leave."""
    waiting: int = 0
    door: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call whose turn is next; the others queue for it in order."""
    at_once: int = 0
    """How many calls may leave one right after the other, because the tier was shut before."""
    opened: float = 0.0
    bears_bursts: bool = True
    """Whether the endpoint took several calls at once before it first refused one."""
    rested: float = FILLED_SECONDS
    """Seconds' worth of calls that the endpoint's limit held when the tier was opened."""
    sent: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    refused: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def advance(self, now: float) -> float:
        """Take in that it is now."""
        before, self.flow = self.flow, next_rate(self.flow, None, now)
        if before.rate == 0 and self.flow.rate != 0:
            self.opened = now
            if before.burst:
                self.bears_bursts = before.measured > 0
            shut = min(before.until - before.changed, FILLED_SECONDS)
            self.rested = shut if self.bears_bursts else self.interval
            self.at_once = regained(before) // self.workers
        return now

    def shut(self, seconds: float, cause: str, now: float) -> None:
        """Take in a refusal."""
        self.refused.append(now)
        self.at_once = 0
        self.flow = next_rate(self.flow, Throttled(seconds, cause, self._measured(now)), now)
        self.woken.set()

    def adopt(self, shared: Flow) -> None:
        """Take over what another worker decided, and keep what it cannot know yet."""
        ours_is_news = self.flow.rate == 0 and self.flow != self.told
        self.told = shared
        if not ours_is_news:
            self.flow = shared
        elif shared.rate == 0:
            self.flow = replace(shared, until=max(shared.until, self.flow.until))

    def ready(self) -> float:
        """When the next call may leave."""
        return max(self.free, self.flow.until if self.flow.rate == 0 else 0.0)

    def left(self, now: float) -> None:
        """Take in that a call leaves."""
        self.sent.append(now)
        if self.at_once:
            self.at_once -= 1
            self.free = now + SPACING
        else:
            # What leaves a little late does not make the next one late.
            gap = max(self.interval, self._spacing(now))
            on_time = now - self.free <= min(LATE_SECONDS, gap)
            self.free = (self.free if on_time else now) + gap

    @property
    def interval(self) -> float:
        """Seconds between two calls of this process."""
        rate = self.flow.after if self.flow.rate == 0 else self.flow.rate
        return max(SPACING, self.workers / rate if rate else 0.0)

    def _spacing(self, now: float) -> float:
        known = len(self.sent) >= FIRST_CALLS
        busy = known and self.sent[-FIRST_CALLS] > now - MEASURED_SECONDS
        return SPACING if busy else FIRST_SPACING

    def _measured(self, now: float) -> float:
        """Calls per second that left and were not refused, all workers together: until it was
        shut, not before it was last opened. 0: too few to tell.
        """
        end = self.flow.changed if self.flow.rate == 0 else now
        first = self.sent[0] if self.sent else end
        start = max(end - MEASURED_SECONDS, self.opened, first)
        taken = sum(at >= start for at in self.sent) - sum(at >= start for at in self.refused)
        if taken < ENOUGH:
            return 0.0
        # What the limit held at the start was taken too, and does not come again; and the call that
        # was refused came, on average, half a call too early.
        held = self.rested if start == max(self.opened, first) else 0.0
        return self.workers * (taken + 0.5) / (end - start + held)
