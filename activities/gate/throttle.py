"""What holds a tier back, and the line that says so. Pure; times are Unix seconds.

The line is the reason that Temporal keeps with a task queue's rate: people read it in the Web UI
and on a run's board, and a worker that reads it goes on from where another one died.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

LONGEST_SHUT = 300.0
"""Seconds. Whatever a server asks, a few calls try again after this long."""
CAUSE_CHARACTERS = 160

_LINE = re.compile(
    r"(?:at (\S+) )?(?:throttled ([\d.]+) s, then (?:full speed|([\d.]+)/s|(\d+) in flight)"
    r"|slowed after a throttle|held to (\d+) in flight after a refusal): (.*)"
)


@dataclass(frozen=True)
class Throttle:
    """The default holds nothing back."""

    cause: str = ""
    since: float = 0.0
    """When the tier was shut."""
    until: float = 0.0
    """When it opens."""
    rate: float = 0.0
    """Calls per second that may leave then; 0: any number."""
    most: float = 0.0
    """Calls of all workers together that may be in flight then; 0: any number."""
    endpoint: str = ""
    """Address of the endpoint that refused; of another one it says nothing."""
    by_hand: bool = False
    """True if a person has set it: no refusal changes it."""

    def shut(self, now: float) -> bool:
        return now < self.until

    def per_second(self, now: float) -> float | None:
        """Return how many calls may leave in a second: 0 while shut, None for any number."""
        return 0.0 if self.shut(now) else self.rate or None


FULL_SPEED = Throttle()


def shut_for(seconds: float, cause: str, now: float, endpoint: str = "") -> Throttle:
    """Return what an endpoint asks for that refuses a call and names these seconds."""
    said = " ".join(cause.split())[:CAUSE_CHARACTERS]
    until = now + min(max(seconds, 0.0), LONGEST_SHUT)
    return Throttle(said, now, until, endpoint=endpoint)


def describe(tier: str, held: Throttle, now: float) -> str:
    """Return a line that stays the same while a rate climbs: the rate is kept beside it."""
    places = f"{held.most:.0f} in flight" if held.most else ""
    if held.by_hand:
        why = f": {held.cause}" if held.cause else ""
        return f"{tier} limited to {held.rate:g} calls/s by hand{why}"
    name = f"{tier} at {held.endpoint}" if held.endpoint else tier
    if held.shut(now):
        then = places or (f"{held.rate:.2f}/s" if held.rate else "full speed")
        seconds = round(held.until - held.since, 1)
        return f"{name} throttled {seconds:g} s, then {then}: {held.cause}"
    if places:
        return f"{name} held to {places} after a refusal: {held.cause}"
    return f"{name} slowed after a throttle: {held.cause}" if held.rate else f"{tier} at full speed"


def parse(tier: str, rate: float | None, line: str, written: float, now: float) -> Throttle:
    """Return what `describe` said at the time `written`, with the rate that is kept beside it; a
    rate with any other line was set by hand.

    A shut tier opens no later than its wait from now, whatever the writer's clock said.
    """
    found = _LINE.fullmatch(line.removeprefix(f"{tier} "))
    if found is None and rate is None:
        return FULL_SPEED
    if found is None:
        return Throttle(line, until=0.0 if rate else math.inf, rate=rate or 0.0, by_hand=True)
    endpoint, *figures, cause = found.groups()
    shut, then, later, most = (float(each or 0) for each in figures)
    since = min(written, now)
    until = since + min(shut, LONGEST_SHUT)
    return Throttle(cause, since, until, then or rate or 0.0, later or most, endpoint or "")
