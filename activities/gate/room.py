"""How many calls of one tier may be in flight, and when one more is tried. Times are seconds of one
clock, handed in.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PATIENCE = 1.0
"""After this many seconds at its limit in flight a tier tries one call more; each time that it is
refused, it waits twice as long.
"""
SHORT_PATIENCE = 0.25
"""The same where the limit is one call."""
LONGEST_PATIENCE = 15.0
"""No tier waits longer than this many seconds to try one call more."""
ENOUGH_WAITING = 3.0
"""Seconds' worth of calls that wait, so that nothing is lost while a refused one is away."""


@dataclass
class Room:
    """What is known of the limit in flight that holds now; `Flow.most` is the limit."""

    one_more: float = 0.0
    """When one call more is tried."""
    patience: float = FIRST_PATIENCE
    borne: bool = False
    """Whether as many as the limit allows were taken."""
    firm: bool = False
    """Whether one call more was refused."""

    @property
    def between(self) -> float:
        """How far between the call before and the next end one more leaves: half-way, and later
        once that was refused.
        """
        return 0.8 if self.firm else 0.5

    def limited(self, now: float, most: int) -> None:
        """Take in a limit that was found now. Of a limit of one call little is known: the rate may
        be limited, without a burst.
        """
        self.patience = SHORT_PATIENCE if most == 1 else FIRST_PATIENCE
        self.one_more = now if most == 1 else now + self.patience
        self.borne = self.firm = False

    def left(self, now: float) -> None:
        """Take in that one call more leaves."""
        self.one_more = now + self.patience

    def refused(self, now: float) -> None:
        """Take in that one call more was refused."""
        self.patience = min(2 * self.patience, LONGEST_PATIENCE)
        self.one_more = now + self.patience
        self.firm = True

    def taken(self, now: float) -> None:
        """Take in that one call more was taken: the next may follow."""
        self.patience, self.one_more = FIRST_PATIENCE, now
        self.firm = False
