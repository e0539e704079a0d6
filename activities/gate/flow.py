"""How fast the calls of one tier may leave: shut while the endpoint asks for it, then a little less
than it took before, then a climb until the limit is lifted; or how many in flight at once. Pure;
times are seconds of one clock.

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
"""A rate that is not shut is changed no sooner than this after its last change."""
STEP_CALLS = 5
"""A slow tier changes its rate after this many calls: fewer prove nothing."""
LONGEST_STEP = 3.0
"""No slow tier waits longer than this many seconds for its calls to prove something."""
LEAST = 0.05
"""Calls per second: the slowest a tier goes while it is not shut."""
REOPENED = 0.95
"""A tier that was shut opens at this share of the rate that was measured."""
SEARCHED_FROM = 0.5
"""Calls per second: where a tier opens of which nothing is known. From there the rate doubles each
time that calls were taken at it, until a refusal tells more.
"""
BEARING_SECONDS = 0.5
"""A rate that is searched is borne when as many calls were taken at it as leave in this time."""
SEARCHED_TO = 100.0
"""Calls per second: when this is reached without a refusal, the limit is lifted."""
EXPECTED_STEPS = range(3, 6)
"""In these steps a climb is near the measured rate again, and a refusal is no surprise."""
LIFTED = 10.0
"""The limit is lifted when the climb has come to this many times the rate measured before."""
FORGOTTEN = 45.0
"""Any limit is lifted when nothing was refused for this many seconds."""
CAUSE_CHARACTERS = 160

_SHUT = re.compile(r"throttled ([\d.]+) s: (.*); then ([\d.]+)/s(?: of ([\d.]+)/s)?")
_IN_FLIGHT = re.compile(r"limited to (\d+) in flight, refused (\d+) s ago: (.*)")
_SLOWED = re.compile(
    r"slowed to ([\d.]+)/s: step (\d+), (\d+) s after a throttle(?: at ([\d.]+)/s)?"
)


@dataclass(frozen=True)
class Flow:
    """What one tier is allowed. The default is: anything."""

    rate: float | None = None
    """Calls per second; 0: shut; None: no limit."""
    measured: float = 0.0
    """Calls per second that the endpoint took before it refused; 0: not known."""
    step: int = 0
    """How many steps of the climb have been made."""
    after: float = 0.0
    """The rate when a shut tier opens."""
    until: float = 0.0
    """When that is."""
    cause: str = ""
    changed: float = 0.0
    refused: float = 0.0
    """When a call was refused last."""
    most: int = 0
    """Calls in flight at once that the endpoint takes, of all workers together; 0: any number."""
    burst: bool = False
    """Whether `measured` was seen while nothing limited the tier: calls on their way can still
    lower it, and the endpoint bears such a burst.
    """


@dataclass(frozen=True)
class Throttled:
    """The endpoint refused a call for want of capacity and asked to wait this many seconds;
    `measured` is how many calls per second it took before; 0: too few to tell.
    """

    seconds: float
    cause: str
    measured: float


@dataclass(frozen=True)
class Borne:
    """`enough` calls were taken that left at the rate that is searched."""


def next_rate(flow: Flow, event: Throttled | Borne | None, now: float) -> Flow:
    """What is allowed from now on; without an event: because time went by."""
    if isinstance(event, Borne):
        return _doubled(flow, now)
    if event is not None:
        return _shut(flow, event, now)
    if flow.rate == 0:
        return _climbed(flow, 0, flow.after, now) if now >= flow.until else flow
    if now >= flow.refused + FORGOTTEN:
        return Flow()
    if not flow.rate or not flow.measured or now < flow.changed + _step_seconds(flow):
        return flow
    step = flow.step + 1
    share = _share(step)
    return Flow() if share >= LIFTED else _climbed(flow, step, share * flow.measured, now)


def enough(flow: Flow) -> int:
    """How many calls have to be taken before the rate is doubled that is searched; 0: it is not."""
    if not flow.rate or flow.measured:
        return 0
    return max(round(flow.rate * BEARING_SECONDS), 1)


def _doubled(flow: Flow, now: float) -> Flow:
    if not flow.rate or flow.measured:
        return flow
    rate = flow.rate * 2
    return Flow() if rate >= SEARCHED_TO else _climbed(flow, flow.step + 1, rate, now)


def _step_seconds(flow: Flow) -> float:
    if not flow.rate:
        return STEP_SECONDS
    return min(max(STEP_CALLS / flow.rate, STEP_SECONDS), LONGEST_STEP)


def _share(step: int) -> float:
    """Of the measured rate: just below it at first, because that is where the limit is; then in
    growing steps, because it may be far away by now.
    """
    return 0.98 + 0.005 * (step - 1) ** 2


def _climbed(flow: Flow, step: int, rate: float, now: float) -> Flow:
    refused = max(flow.refused, flow.until)
    return Flow(_rounded(rate), flow.measured, step, changed=now, refused=refused)


def _shut(flow: Flow, event: Throttled, now: float) -> Flow:
    until = now + min(max(event.seconds, 0.0), LONGEST_SHUT)
    if flow.rate == 0:
        # A refusal of what was on its way. Of a burst, less was taken than it seemed.
        flow = replace(flow, until=max(flow.until, until))
        return _estimated(flow, min(flow.measured, event.measured)) if flow.burst else flow
    if flow.rate is None:
        measured = event.measured
    elif not flow.measured:
        # It bore half of this, at the step before.
        measured = max(event.measured, flow.rate / 2)
    else:
        # One bad second says little: no estimate falls by more than half.
        lower = max(event.measured or 0.8 * flow.measured, flow.measured / 2)
        measured = min(lower, flow.rate)
    cause = " ".join(event.cause.split())[:CAUSE_CHARACTERS]
    burst = flow.rate is None and not flow.most
    shut = Flow(rate=0.0, until=until, cause=cause, changed=now, refused=now, burst=burst)
    return _estimated(shut, measured)


def _estimated(shut: Flow, measured: float) -> Flow:
    """Shut, to open by what the endpoint seems to take; 0: not known."""
    if not measured:
        return replace(shut, measured=0.0, after=SEARCHED_FROM)
    return replace(shut, measured=_rounded(measured), after=_rounded(REOPENED * measured))


def _rounded(rate: float) -> float:
    return max(round(rate, 2), LEAST)


def regained(shut: Flow) -> int:
    """Calls that may leave one right after the other when this tier opens. A limit fills up again
    while nothing is sent; one that bore a burst bears about a second's worth.
    """
    if not shut.burst:
        return 0
    return int(shut.measured * min(shut.until - shut.changed, 1.0))


def described(tier: str, flow: Flow, now: float) -> str:
    """One readable line that says all of it."""
    since = max(now - flow.refused, 0.0)
    if flow.rate is None and flow.most:
        most = f"{tier} limited to {flow.most} in flight"
        return f"{most}, refused {since:.0f} s ago: {flow.cause}"
    if flow.rate is None:
        return f"{tier} at full speed"
    known = f"{flow.measured:.2f}/s" if flow.measured else ""
    if flow.rate == 0:
        left = math.ceil(max(flow.until - now, 0.0) * 10) / 10
        then = f"then {flow.after:.2f}/s" + (f" of {known}" if known else "")
        return f"{tier} throttled {left:g} s: {flow.cause}; {then}"
    after = f"{since:.0f} s after a throttle" + (f" at {known}" if known else "")
    return f"{tier} slowed to {flow.rate:.2f}/s: step {flow.step}, {after}"


def plainly(tier: str, flow: Flow) -> str:
    """The same for somebody who watches a run; it stays the same while the cause does."""
    if flow.rate is None and flow.most:
        return f"{tier} limited to {flow.most} in flight: {flow.cause}"
    if flow.rate is None:
        return f"{tier} at full speed"
    if flow.rate == 0:
        return f"{tier} throttled {flow.until - flow.changed:.0f} s: {flow.cause}"
    return f"{tier} slowed after a throttle" + (
        f" at {flow.measured:.1f} calls/s" if flow.measured else ""
    )


def understood(tier: str, rate: float | None, text: str, written: float, now: float) -> Flow | None:
    """What `described` said at the time `written`; None: this limit is somebody else's.

    A shut tier opens no later than its wait from now, whatever the writer's clock said.
    """
    said, when = text.removeprefix(f"{tier} "), min(written, now)
    if rate is None:
        many = _IN_FLIGHT.fullmatch(said)
        if not many:
            return Flow()
        return Flow(most=int(many[1]), cause=many[3], changed=when, refused=when - int(many[2]))
    if shut := _SHUT.fullmatch(said):
        seconds, after, measured = (float(shut[number] or 0) for number in (1, 3, 4))
        until = when + min(seconds, LONGEST_SHUT)
        return Flow(0.0, measured, 0, after, until, shut[2], when, refused=when)
    if slowed := _SLOWED.fullmatch(said):
        allowed, measured = float(slowed[1]), float(slowed[4] or 0)
        refused = when - int(slowed[3])
        return Flow(allowed, measured, int(slowed[2]), changed=when, refused=refused)
    return None
