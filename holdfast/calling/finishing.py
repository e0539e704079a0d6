"""From findings to the answer: digests, selection, synthesis, conflicts, critique, one revision.
Pure.

Everything but the synthesis is optional: what fails, is not affordable or comes too late is left
out and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.calling import context, gathering, verifying
from holdfast.calling.reserving import fitting_call, free_call, least
from holdfast.calls.critique import CRITIQUE, Critique
from holdfast.calls.digest import DIGEST
from holdfast.calls.judge import JUDGE
from holdfast.calls.kind import AnyKind
from holdfast.calls.synthesize import SYNTHESIZE
from holdfast.calls.verify import VERIFY
from holdfast.contracts import Contract, Problem, Tier
from holdfast.contracts.replacing import replace
from holdfast.state.moves import Ask
from holdfast.state.run import State

CONFLICTS_JUDGED = 3
ROLL = "ROLL"
"""In the name of a batch's digest, in capitals so that no subtask's id looks like it."""
ROUNDS = 3
"""How often batches of findings are rolled up before the rest is cut."""
NARROW_SHARE = 4
"""A quarter of the context can always be paid: what is kept for the synthesis counts up to a token
a byte, the context four bytes a token.
"""


@dataclass(frozen=True)
class Reading:
    """An optional call that reads the answer before it is delivered."""

    kind: AnyKind
    title: str
    """Of its row in the price of a plan."""
    gathered: Callable[[State, Problem | None], Contract]
    """Its material, of the answer that it is to mend."""
    take: Callable[[State, Any], State]
    """What follows from its reply."""


def _criticised(state: State, critique: Critique) -> State:
    return replace(state, finishing=replace(state.finishing, issues=critique.issues))


READINGS: Mapping[str, Reading] = {
    reading.kind.name: reading
    for reading in (
        Reading(CRITIQUE, "a critic reads the answer", gathering.for_critique, _criticised),
    )
}
"""In the order in which they are asked, each by the name of its kind."""


def next_ask(state: State) -> Ask | None:
    """The next call on the way to the answer; None: wait for what is in flight, or done."""
    if state.finishing.synthesis is None:
        verification = _next_verification(state)
        if verification is not None:
            return verification
    if not state.finishing.by_template and state.finishing.synthesis is None:
        before = _next_digest(state) or _next_roll(state) or _next_selection(state)
        if before is not None:
            return before
    if state.flights:
        return None
    if state.finishing.synthesis is None:
        return _synthesis(state)
    if state.finishing.by_template or state.finishing.synthesis.by_template:
        return None
    return _next_conflict(state) or _next_reading(state) or _revision(state)


def close(state: State, now: datetime) -> State:
    """A run is over when nothing is in flight and no call is left to make."""
    if state.phase != "synthesizing" or state.flights:
        return state
    over = state.finishing.synthesis is not None and next_ask(state) is None
    if over or state.stopped_by("cancelled"):
        return replace(state, phase="closed", finished=now)
    return state


# ---------------------------------------------------------------- before the synthesis


def _next_verification(state: State) -> Ask | None:
    for place in range(verifying.batches(state)):
        ask = _optional(
            state,
            VERIFY,
            f"verify-{place + 1}",
            partial(verifying.material, state, place),
            place=place,
        )
        if ask is not None:
            return ask
    return _next_second_verification(state)


def _next_second_verification(state: State) -> Ask | None:
    """What was left undecided is shown to the strongest model, once."""
    first = [f"verify-{place + 1}" for place in range(verifying.batches(state))]
    if not {*first} <= {*state.finishing.given_up}:
        return None
    for number, place in enumerate(verifying.second_batches(state), start=1):
        ask = _optional(
            state,
            VERIFY,
            f"verify-again-{number}",
            partial(verifying.material, state, place),
            place=place,
            first="opus",
        )
        # A model that was asked before knows no more.
        if ask is not None and ask.call.tier == "opus":
            return ask
    return None


def _next_digest(state: State) -> Ask | None:
    limit = state.goal.limits.digest_above_tokens * context.EXPECTED_BYTES_PER_TOKEN
    if len(state.flights) >= state.goal.limits.concurrency:
        return None
    known = dict.fromkeys(each.move.purpose for each in state.flights.values())
    known |= dict.fromkeys(state.finishing.given_up)
    for finding in state.usable:
        purpose = f"digest-{finding.subtask_id}"
        if finding.digest or purpose in known or not context.is_longer(finding.content, limit):
            continue
        if not state.ledger.fits(least(state, DIGEST, limit)):
            return None
        ask = _optional(
            state,
            DIGEST,
            purpose,
            partial(gathering.for_digest, state, (finding,)),
            subject=finding.subtask_id,
        )
        if ask is not None:
            return ask
    return None


def _next_roll(state: State) -> Ask | None:
    """Rounds of digests over batches, until the findings fit into the supervisor's context."""
    flying = (flight.move for flight in state.flights.values())
    digesting = any(isinstance(move, Ask) and move.subject for move in flying)
    if digesting or state.finishing.round >= ROUNDS or context.fits(state):
        return None
    for place, batch in enumerate(context.batches(state)):
        if len(batch) < 2:
            continue
        ask = _optional(
            state,
            DIGEST,
            f"digest-{roll_name(state, place)}",
            partial(gathering.for_digest, state, batch),
            place=place,
        )
        if ask is not None:
            return ask
    return None


def roll_name(state: State, place: int) -> str:
    """The name of a batch of this round."""
    return f"{ROLL}{state.finishing.round + 1}-{place}"


def _next_selection(state: State) -> Ask | None:
    assert state.plan is not None
    if state.plan.strategy != "select" or len(state.usable) < 2:
        return None
    question = state.plan.synthesis_instruction or state.goal.text
    return _optional(state, JUDGE, "judge", partial(gathering.for_judge, state, question))


# ---------------------------------------------------------------- the synthesis and after


def _synthesis(state: State) -> Ask:
    over = state.deadline is not None and state.now >= state.deadline
    if not (state.finishing.by_template or over):
        for share in (1, NARROW_SHARE):
            material = gathering.for_synthesis(state, context.room(state) // share)
            ask = fitting_call(state, SYNTHESIZE, "synthesize", material, keep=False)
            if state.ledger.fits(ask.amount, keep=False):
                return ask
    return free_call(state, SYNTHESIZE, "synthesize", gathering.for_synthesis(state))


def _next_conflict(state: State) -> Ask | None:
    synthesis = state.finishing.synthesis
    assert synthesis is not None
    listed = () if state.finishing.revised else synthesis.conflicts[:CONFLICTS_JUDGED]
    for place, conflict in enumerate(listed):
        question = f"Which side of this contradiction is right? {conflict}"
        ask = _optional(
            state,
            JUDGE,
            f"judge-conflict{place + 1}",
            partial(gathering.for_judge, state, question),
            place=place,
        )
        if ask is not None:
            return ask
    return None


def _next_reading(state: State) -> Ask | None:
    for reading in READINGS.values():
        kind = reading.kind
        ask = _optional(state, kind, kind.name, partial(reading.gathered, state))
        if ask is not None:
            return ask
    return None


def _revision(state: State) -> Ask | None:
    finishing = state.finishing
    serious = [each for each in finishing.issues or () if each.severity != "info"]
    hopeless = finishing.revised or "revision" in finishing.given_up or _late(state)
    if hopeless or not (serious or finishing.conflicts):
        return None
    material = gathering.for_synthesis(state, context.room(state))
    ask = fitting_call(state, SYNTHESIZE, "synthesize", material, keep=False)
    return ask if state.ledger.fits(ask.amount, keep=False) else None


def _optional(
    state: State,
    kind: AnyKind,
    purpose: str,
    gathered: Callable[[Problem | None], Contract],
    *,
    subject: str = "",
    place: int | None = None,
    first: Tier | None = None,
) -> Ask | None:
    """A call that is left out when it was given up, does not fit or comes too late. `gathered`
    makes its material, of the answer that it is to mend.
    """
    if purpose in state.finishing.given_up or _late(state):
        return None
    flying = [flight.move.purpose for flight in state.flights.values()]
    if purpose in flying or len(flying) >= state.goal.limits.concurrency:
        return None
    keep = state.finishing.synthesis is None
    material = gathered(gathering.broken(state, purpose))
    ask = fitting_call(state, kind, purpose, material, keep=keep, first=first)
    return (
        replace(ask, subject=subject, place=place)
        if state.ledger.fits(ask.amount, keep=keep)
        else None
    )


def _late(state: State) -> bool:
    return state.stop is not None


def note_cut(state: State, ask: Ask) -> State:
    """Remember what had to be cut for a call, so that the report can say it."""
    cut = getattr(ask.material, "cut", ())
    if not cut:
        return state
    known = tuple(dict.fromkeys((*state.finishing.cut, *cut)))
    return replace(state, finishing=replace(state.finishing, cut=known))


# ---------------------------------------------------------------- what came back
