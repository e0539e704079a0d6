"""How far apart the calls of one tier leave this process, whatever its rate, and when one of them
was taken. Pure.
"""

from __future__ import annotations

SPACING = 0.01
"""Seconds between two calls of a limited tier that leave this process, at least."""
LATE_SECONDS = 0.02
"""More than timers and the event loop are late."""
SETTLED_SECONDS = 0.1
"""A call was taken when no refusal has come back for at least this many seconds."""
SETTLED_TIMES = 3
"""A call was taken only after this many times as long as a refusal lately took to come back."""
LONGEST_SETTLED = 2.0
"""After this many seconds without a refusal a call was taken, however slow refusals are."""


def following(free: float, now: float, gap: float) -> float:
    """When the next call may leave after one that could at `free` and does now. What leaves a
    little late does not make the next one late.
    """
    on_time = now - free <= min(LATE_SECONDS, gap)
    return (free if on_time else now) + gap


def settling(back: float) -> float:
    """Seconds after which a call that was not refused was taken; a refusal lately took `back`."""
    return min(max(SETTLED_SECONDS, SETTLED_TIMES * back), LONGEST_SETTLED)
