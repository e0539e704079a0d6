"""How many calls of one tier an endpoint took, as one process sees it. Times are seconds of one
clock, handed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from holdfast.activities.gate.flow import Flow

MEASURED_SECONDS = 5.0
"""How far back a rate is measured."""
ENOUGH = 2
"""Calls that must have been taken, for a rate."""
FILLED_SECONDS = 1.0
"""A limit that nothing was sent against holds about this many seconds' worth of calls, at most."""


@dataclass
class Measured:
    """The calls of one tier that left this process, and those that were refused."""

    sent: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    refused: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    opened: float = 0.0
    """When the tier was."""
    bears_bursts: bool = True
    """Whether the endpoint took several calls at once before it first refused one."""
    rested: float = FILLED_SECONDS
    """Seconds' worth of calls that the endpoint's limit held when the tier was opened."""

    def open(self, shut: Flow, interval: float, now: float) -> None:
        """Take in that a tier opens that was shut like this; `interval` is between two calls."""
        self.opened = now
        if shut.burst:
            self.bears_bursts = shut.measured > 0
        filled = min(shut.until - shut.changed, FILLED_SECONDS)
        self.rested = filled if self.bears_bursts else interval

    def per_second(self, end: float, interval: float) -> float:
        """Calls per second that left and were not refused, not before the tier was last opened or
        rested, `interval` being the seconds between two calls. 0: too few to tell.
        """
        began = self._began(end, max(FILLED_SECONDS, 2 * interval))
        start = max(end - MEASURED_SECONDS, self.opened, began)
        taken = sum(at >= start for at in self.sent) - sum(at >= start for at in self.refused)
        if taken < ENOUGH:
            return 0.0
        # What the limit held at the start was taken too, and does not come again; and the call that
        # was refused came, on average, half a call too early.
        held = self.rested if start == self.opened else FILLED_SECONDS if start == began else 0.0
        return (taken + 0.5) / (end - start + held)

    def _began(self, end: float, pause: float) -> float:
        """When the calls began that left without such a pause until then."""
        began = end
        for at in reversed(self.sent):
            if began - at > pause or began < end - MEASURED_SECONDS:
                break
            began = at
        return began
