"""Waiting for an endpoint that cannot be reached, or that loses calls.

Meanwhile only `reach` is asked, a free activity that returns when somebody is there. Where calls
were lost that proves nothing: then `ping`, a call of a few tokens, has to be answered before any
other leaves. So an outage costs what was in flight when it began, and one small call per pause.
What is lost after `ping` was answered is the fault of the call, which has its tries. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.calling.reserving import reservation
from holdfast.calls import ping
from holdfast.calls.reach import Reached, ReachMaterial
from holdfast.contracts import Call, Tier, Unreached
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import at_lane
from holdfast.state.edits import stop_for, update, without
from holdfast.state.events import Trouble
from holdfast.state.moves import Ask, Cut, Stop, StopReason
from holdfast.state.parts import Outage, Progress
from holdfast.state.run import State

LONGEST_PAUSE_SECONDS = 30.0
"""The longest pause before another look at an endpoint that was found and lost again."""
CURE = "check ANTHROPIC_BASE_URL, then run: starter.py up (or start your worker again)"


def begin(
    state: State, unreached: Unreached, tier: Tier, purpose: str, sent: datetime | None = None
) -> State | None:
    """Take in a call that did not reach its endpoint, or was lost there. None: this run does not
    wait for it. `sent`: when the call was scheduled, where that is known.
    """
    before, loses = state.outage, unreached.lost
    if before is not None and state.out_of_reach:
        # Another call that left before the outage was known.
        lost = (*before.lost, purpose) if loses else before.lost
        return replace(state, outage=replace(before, loses=before.loses or loses, lost=lost))
    if unreached.mistaken and not state.heard:
        why = f"{unreached.address}: {unreached.why}; {CURE}"
        return stop_for(state, "endpoint", why)
    if not _waits(state) or not state.goal.limits.outage_seconds:
        return None
    if before is not None and before.found and loses and sent and sent < before.found:
        # It left before somebody answered, and was only found to be lost since.
        return state
    outage = Outage(state.now, unreached, tier) if before is None else before
    again = replace(
        outage,
        price=reservation(state.brief.model(tier), ping.MOST_TOKENS, ping.ROOM),
        since=state.now,
        unreached=unreached,
        tier=tier,
        stage="looking",
        number=1 if before is None else before.number + 1,
        loses=loses,
        lost=(purpose,) if loses else (),
    )
    return replace(state, outage=again)


def is_excused(state: State) -> bool:
    """True if the endpoint is known to be away, so that a lost call was not at fault."""
    return state.outage is not None and state.outage.sure and state.out_of_reach


def _waits(state: State) -> bool:
    """True if anything is left to wait for, such as the answer of a run without budget."""
    finishing = state.finishing
    unwritten = finishing.synthesis is None and not finishing.by_template
    answering = state.phase == "synthesizing" and unwritten
    return state.stop is None or (answering and state.stopped_by("budget", "deadline"))


# ---------------------------------------------------------------- looking, and asking


def next_look(state: State) -> Ask | None:
    """Return the look or small call that may end an outage; None if one is under way."""
    outage = state.outage
    if (
        outage is None
        or not state.out_of_reach
        or state.is_asking("reach")
        or state.is_asking("ping")
    ):
        return None
    if outage.stage == "asking":
        return _ping(state, outage)
    number = state.next_number("reach")
    material = ReachMaterial(after_seconds=_pause(outage), address=outage.unreached.address)
    call = Call(kind="reach", purpose="reach", number=number, tier=outage.tier)
    return Ask(call, material, Amount())


def _pause(outage: Outage) -> float:
    return 0.0 if outage.number == 1 else min(2.0**outage.number, LONGEST_PAUSE_SECONDS)


def _ping(state: State, outage: Outage) -> Ask:
    amount = outage.price
    model = at_lane(state.brief.model(outage.tier), "now")
    call = Call(
        kind=ping.PING.name,
        purpose="ping",
        number=state.next_number("ping"),
        tier=outage.tier,
        model=model,
        max_output=ping.ROOM,
        effort=ping.PING.policy.effort,
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
        capabilities=state.brief.capabilities,
        run=state.first_run_id,
        project=state.goal.project,
    )
    return Ask(call, ping.PingMaterial(address=outage.unreached.address), amount, state.keeps)


def needless_look(state: State) -> Cut | None:
    """Cut a look that nobody waits for: what is left to do asks no model."""
    done = state.phase == "working" and state.work.all_settled and not state.replanning.setbacks
    if not done or any(finding.status == "complete" for finding in state.findings):
        return None
    looks = tuple(
        key
        for key, flight in state.flights.items()
        if flight.move.purpose in ("reach", "ping") and not flight.cut
    )
    return Cut(looks) if looks else None


def seconds_left(state: State) -> float:
    """Return the seconds that a look may take before the run gives up."""
    assert state.outage is not None
    limit = state.goal.limits.outage_seconds
    return max(limit - seconds_lost(state.outage, state.now), 1.0)


def seconds_lost(outage: Outage, now: datetime) -> float:
    """Return the seconds since the last answer in which nobody was there."""
    return outage.before + (now - outage.since).total_seconds()


# ---------------------------------------------------------------- what came back


def end_outage(state: State) -> State:
    """Take in an answer. To a call that left before others were lost it proves nothing."""
    outage = state.outage
    if outage is not None and outage.loses and state.out_of_reach:
        return state
    return replace(state, outage=None)


def take_reached(state: State, reached: Reached | None) -> State:
    """Take in that somebody is there again. Where calls were lost, a small one shows whether any
    are answered; without money for it the next one that is due does.
    """
    outage = state.outage
    if outage is None or outage.stage != "looking":
        return state
    missed = reached is not None and reached.missed
    state = replace(state, outage=replace(outage, stage="asking", sure=outage.sure or missed))
    return state if outage.loses else note_found(state)


def note_found(state: State) -> State:
    """Take in that calls are answered again, as far as is known. The outage ends with the first
    that was due; calls lost in it without their fault have all their tries again.
    """
    outage = state.outage
    if outage is None or outage.stage == "found":
        return state
    over = replace(
        outage,
        stage="found",
        found=state.now,
        before=seconds_lost(outage, state.now),
        sure=False,
        lost=(),
    )
    return _forgive(replace(state, outage=over), outage.lost if outage.sure else ())


def _forgive(state: State, purposes: tuple[str, ...]) -> State:
    for purpose in purposes:
        state = replace(state, transport=without(state.transport, purpose))
    for key in [key for key, each in state.work.items() if each.resume.losses]:
        state = update(state, key, _excuse) if f"agent-{key}" in purposes else state
    return state


def _excuse(agent: Progress) -> Progress:
    resume = agent.resume.model_copy(update={"excused": agent.resume.losses})
    return replace(agent, resume=resume)


def take_lost_ping(state: State, trouble: Trouble) -> State:
    """Take in a small call that was lost like those before, or was refused."""
    outage = state.outage
    if outage is None or trouble.kind == "cancelled":
        return replace(state, outage=None)
    if trouble.kind in ("stopping", "allowance"):
        reason: StopReason = "endpoint" if trouble.kind == "stopping" else "allowance"
        return stop_for(replace(state, outage=None), reason, trouble.why)
    if trouble.kind in ("refused", "over_reservation"):
        return note_found(state)
    again = replace(
        outage,
        stage="looking",
        number=outage.number + 1,
        sure=outage.sure or trouble.unreached is not None,
        unreached=trouble.unreached or outage.unreached,
    )
    return replace(state, outage=again)


def give_up(state: State, trouble: Trouble) -> State:
    """Stop waiting for the endpoint: the limit is reached, or the run ends anyway."""
    outage = state.outage
    if outage is None or trouble.kind == "cancelled":
        return replace(state, outage=None)
    why = f"{describe(outage)}; {CURE}"
    if state.stop is None:
        return replace(state, outage=None, stop=Stop("endpoint", why))
    # It was stopped before: what is left is its answer, which no model can write now.
    finishing = replace(state.finishing, by_template=True, unwritten=why)
    return replace(state, outage=None, finishing=finishing)


# ---------------------------------------------------------------- what people are told


def describe(outage: Outage) -> str:
    since = f"{outage.since:%Y-%m-%d %H:%M:%S} UTC"
    what = "fails calls" if outage.loses else "cannot be reached"
    return f"the endpoint {outage.unreached.address} {what} since {since} ({outage.unreached.why})"


def describe_next_look(state: State) -> str:
    """Return what is tried next, in words that stay true until something happens."""
    flights = [each for each in state.flights.values() if each.move.purpose == "reach"]
    outage = state.outage
    if outage is None or not flights:
        return "a call of a few tokens shows whether it answers again"
    first = flights[0].started + timedelta(seconds=_pause(outage))
    paused = f"the next look is at {first:%H:%M:%S} UTC, then" if _pause(outage) else "looks follow"
    return f"{paused} at most {LONGEST_PAUSE_SECONDS:.0f} s apart"
