"""An endpoint that cannot be reached costs nothing: the run waits, says so, and goes on by itself.

Nothing is asked meanwhile but `reach`, a free activity that returns when the endpoint answers.
"""

from __future__ import annotations

from datetime import datetime

from orchestrator.calls.reach import ReachMaterial
from orchestrator.contracts import Call, Tier, Unreached
from orchestrator.events import Trouble
from orchestrator.money.ledger import Amount
from orchestrator.moves import Ask, Cut, Stop
from orchestrator.replacing import replace
from orchestrator.rules.parts import Outage
from orchestrator.rules.state import State

LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause before another look at an endpoint that was found and lost again."""
CURE = "check ANTHROPIC_BASE_URL, then run: starter.py up (or start your worker again)"


def begun(state: State, unreached: Unreached, tier: Tier, now: datetime) -> State | None:
    """The state after a call that did not reach its endpoint; None: this run waits for none."""
    before = state.outage
    if before is not None and not before.found:
        # Another call that left before the outage was known.
        return state
    if unreached.unknown_host and not state.heard:
        why = f"no host has the name in {unreached.address} ({unreached.why}); {CURE}"
        return replace(state, stop=state.stop or Stop("endpoint", why))
    if not _waits(state) or not state.goal.limits.outage_seconds:
        return None
    if before is None:
        return replace(state, outage=Outage(now, unreached, tier))
    lost_again = replace(
        before, since=now, unreached=unreached, number=before.number + 1, found=False
    )
    return replace(state, outage=lost_again)


def _waits(state: State) -> bool:
    """Whether the run has something left that is worth waiting for: a run that was stopped at its
    budget or deadline still has its answer to be written.
    """
    finishing = state.finishing
    unwritten = finishing.synthesis is None and not finishing.by_template
    answering = state.phase == "synthesizing" and unwritten
    return state.stop is None or (answering and state.stopped_by("budget", "deadline"))


def next_reach(state: State) -> Ask | None:
    """The look at the endpoint that ends an outage; None: one is under way, or none is needed."""
    outage = state.outage
    if outage is None or outage.found or state.asking("reach"):
        return None
    number = state.next_number("reach")
    pause = 0.0 if outage.number == 1 else min(2.0**outage.number, LONGEST_PAUSE_SECONDS)
    material = ReachMaterial(after_seconds=pause, address=outage.unreached.address)
    call = Call(kind="reach", purpose="reach", number=number, tier=outage.tier)
    return Ask(call, material, Amount())


def needless_look(state: State) -> Cut | None:
    """The end of a look that nobody waits for: what is left to do asks no model."""
    done = state.phase == "working" and state.all_settled and not state.replanning.setbacks
    if not done or any(finding.status == "complete" for finding in state.findings):
        return None
    looks = tuple(
        key
        for key, flight in state.flights.items()
        if flight.move.purpose == "reach" and not flight.cut
    )
    return Cut(looks) if looks else None


def seconds_left(state: State) -> float:
    """How long a look at the endpoint may take before the run gives up."""
    assert state.outage is not None
    limit = state.goal.limits.outage_seconds
    return max(limit - lost_for(state.outage, state.now), 1.0)


def lost_for(outage: Outage, now: datetime) -> float:
    """Seconds since the last answer in which nobody was there."""
    return outage.before + (now - outage.since).total_seconds()


def found(state: State) -> State:
    """The endpoint answers again. The outage is over with the first answer of a model."""
    outage = state.outage
    if outage is None:
        return state
    lost = lost_for(outage, state.now)
    return replace(state, outage=replace(outage, found=True, before=lost))


def not_found(state: State, trouble: Trouble) -> State:
    """Nobody waits for the endpoint any more: the limit is reached, or the run ends anyway."""
    outage = state.outage
    if outage is None or trouble.kind == "cancelled":
        return replace(state, outage=None)
    why = f"{said(outage)}; {CURE}"
    if state.stop is None:
        return replace(state, outage=None, stop=Stop("endpoint", why))
    # It was stopped before: what is left is its answer, which no model can write now.
    finishing = replace(state.finishing, by_template=True, unwritten=why)
    return replace(state, outage=None, finishing=finishing)


def said(outage: Outage) -> str:
    """What a person must know of it."""
    since = f"{outage.since:%Y-%m-%d %H:%M:%S} UTC"
    unreached = outage.unreached
    return f"the endpoint {unreached.address} cannot be reached since {since} ({unreached.why})"
