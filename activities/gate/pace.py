"""How far apart the calls of one tier leave this process, whatever its rate. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SPACING = 0.01
"""Seconds between two calls of a tier that leave this process, at least."""
FIRST_SPACING = 0.02
"""The same for the first calls after a pause: the first refusal is back before many have left."""
FIRST_CALLS = 20
BUSY_SECONDS = 5.0
"""A pause is: fewer calls than that in so many seconds."""
LATE_SECONDS = 0.02
"""More than timers and the event loop are late."""


def spacing(sent: Sequence[float], now: float) -> float:
    """Seconds to the next call after one that leaves now; `sent`: when the calls so far left."""
    busy = len(sent) >= FIRST_CALLS and sent[-FIRST_CALLS] > now - BUSY_SECONDS
    return SPACING if busy else FIRST_SPACING


def following(free: float, now: float, gap: float) -> float:
    """When the next call may leave after one that could at `free` and does now. What leaves a
    little late does not make the next one late.
    """
    on_time = now - free <= min(LATE_SECONDS, gap)
    return (free if on_time else now) + gap
