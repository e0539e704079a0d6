"""How fast the calls of one tier may leave: shut while the endpoint asks for it, then half of what
it took before, then a climb until the limit is lifted. Pure; times are seconds of one clock.

The whole state fits into the reason that Temporal keeps with a task queue's rate, so that a person
reads it in the Web UI, and any worker goes on from where another one died.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

LONGEST_SHUT = 300.0
"""Seconds. Whatever a server asks, a few calls try again after this long."""
STEP_SECONDS = 1.0
"""Between two changes of a rate that is not shut."""
LEAST = 0.05
"""Calls per second: the slowest a tier goes while it is not shut."""
GUESS = 1.0
"""Calls per second that a tier is taken to bear when it is refused before anything is known."""
LIFTED = 10.0
"""The limit is lifted when the climb has come to this many times the rate measured before."""
CAUSE_CHARACTERS = 160

_SHUT = re.compile(r"throttled ([\d.]+) s: (.*); then ([\d.]+)/s of ([\d.]+)/s")
_SLOWED = re.compile(r"slowed to ([\d.]+)/s: step (\d+) after a throttle at ([\d.]+)/s")


@dataclass(frozen=True)
class Flow:
    """What one tier is allowed. The default is: anything."""

    rate: float | None = None
    """Calls per second; 0: shut; None: no limit."""
    measured: float = 0.0
    """Calls per second that the endpoint took before it refused; 0: not known."""
    step: int = 0
    """Of the climb."""
    after: float = 0.0
    """The rate when a shut tier opens."""
    until: float = 0.0
    """When that is."""
    cause: str = ""
    changed: float = 0.0


@dataclass(frozen=True)
class Throttled:
    """The endpoint refused a call for want of capacity and asked to wait so many seconds;
    `measured` is how many calls per second it took before.
    """

    seconds: float
    cause: str
    measured: float


def next_rate(flow: Flow, event: Throttled | None, now: float) -> Flow:
    """What is allowed from now on; without an event: because time went by."""
    if event is not None:
        return _shut(flow, event, now)
    if flow.rate == 0:
        return _climbed(flow, 0, flow.after, now) if now >= flow.until else flow
    if flow.rate is None or now < flow.changed + STEP_SECONDS:
        return flow
    step = flow.step + 1
    share = _share(step)
    return Flow() if share >= LIFTED else _climbed(flow, step, share * flow.measured, now)


def _share(step: int) -> float:
    """Of the measured rate: just below it at first, because that is where the limit is; then in
    growing steps, because it may be far away by now.
    """
    return 0.98 + 0.005 * (step - 1) ** 2


def _climbed(flow: Flow, step: int, rate: float, now: float) -> Flow:
    return Flow(rate=_rounded(rate), measured=flow.measured, step=step, changed=now)


def _shut(flow: Flow, event: Throttled, now: float) -> Flow:
    until = now + min(max(event.seconds, 0.0), LONGEST_SHUT)
    cause = " ".join(event.cause.split())[:CAUSE_CHARACTERS]
    if flow.rate == 0:
        # Refusals of what was on its way. Less was taken than it seemed.
        measured = min(flow.measured, max(_rounded(event.measured), _rounded(flow.measured / 2)))
        after = _rounded(flow.after * measured / flow.measured)
        return replace(flow, until=max(flow.until, until), measured=measured, after=after)
    known = flow.measured if flow.rate is not None else 0.0
    # One bad second says little: no estimate falls by more than half.
    measured = _rounded(max(event.measured, known / 2 if known else GUESS))
    # A rate that was measured while it was limited is the endpoint's own; any other is a guess.
    after = _rounded(measured * (0.95 if known else 0.5))
    return Flow(0.0, measured, 0, after, until, cause, now)


def _rounded(rate: float) -> float:
    return max(round(rate, 2), LEAST)


def described(tier: str, flow: Flow, now: float) -> str:
    """One readable line that says all of it."""
    if flow.rate is None:
        return f"{tier} at full speed"
    if flow.rate == 0:
        left = math.ceil(max(flow.until - now, 0.0) * 10) / 10
        return (
            f"{tier} throttled {left:g} s: {flow.cause}; "
            f"then {flow.after:.2f}/s of {flow.measured:.2f}/s"
        )
    return (
        f"{tier} slowed to {flow.rate:.2f}/s: step {flow.step} after a throttle at "
        f"{flow.measured:.2f}/s"
    )


def plainly(tier: str, flow: Flow) -> str:
    """The same for somebody who watches a run; it stays the same while the cause does."""
    if flow.rate is None:
        return f"{tier} at full speed"
    if flow.rate == 0:
        return f"{tier} throttled {flow.until - flow.changed:.0f} s: {flow.cause}"
    return f"{tier} slowed after a throttle at {flow.measured:.1f} calls/s"


def understood(tier: str, rate: float | None, text: str, written: float, now: float) -> Flow | None:
    """What `described` said at the time `written`; None: this limit is somebody else's.

    A shut tier opens no later than its wait from now, whatever the writer's clock said.
    """
    if rate is None:
        return Flow()
    said = text.removeprefix(f"{tier} ")
    if shut := _SHUT.fullmatch(said):
        seconds, after, measured = (float(shut[number]) for number in (1, 3, 4))
        until = min(written, now) + min(seconds, LONGEST_SHUT)
        return Flow(0.0, measured, 0, after, until, shut[2], min(written, now))
    if slowed := _SLOWED.fullmatch(said):
        allowed, measured = float(slowed[1]), float(slowed[3])
        return Flow(allowed, measured, int(slowed[2]), changed=min(written, now))
    return None
