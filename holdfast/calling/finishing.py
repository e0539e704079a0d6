"""Turn findings into the answer: digests, selection, synthesis, conflicts, critique, one revision.
Pure.

Everything but the synthesis is optional: what fails, cannot be paid or comes too late is left out,
and the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.calling import context, fixing, gathering, proving, verifying
from holdfast.calling.reserving import fitting_call, least_call, tokens_of
from holdfast.calls.critique import CRITIQUE, Critique
from holdfast.calls.digest import DIGEST, Digest
from holdfast.calls.fix import FIX, TRY_FIX, Edit
from holdfast.calls.judge import JUDGE, Judgement
from holdfast.calls.kind import AnyKind, Kind
from holdfast.calls.prove import PROVE, TRY_PROOF, Script, Tried
from holdfast.calls.synthesize import SYNTHESIZE
from holdfast.contracts import (
    Call,
    Contract,
    Finding,
    Fix,
    Problem,
    Remark,
    Subtask,
    Synthesis,
)
from holdfast.contracts.data import is_data
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.state.choices import Choice
from holdfast.state.edits import update
from holdfast.state.moves import Ask
from holdfast.state.run import State

CONFLICTS_JUDGED = 3
ROLL = "ROLL"
"""Part of the id of a batch's digest; in capitals, so that no subtask's id looks like it."""
ROUNDS = 3
"""Rounds of rolling up findings before the rest is cut."""
NARROW_SHARE = 4
"""A quarter of the context can always be paid: what is kept for the synthesis counts up to a token
a byte, the context four bytes a token.
"""


@dataclass(frozen=True)
class Reading:
    """An optional call that reads the answer before it is delivered."""

    kind: AnyKind
    title: str
    """Title of its row in the price of a plan."""
    gathered: Callable[[State, Problem | None], Contract]
    """Gathers its material, with the malformed answer that it is to mend."""
    take: Callable[[State, Any], State]


def is_checked(state: State) -> bool:
    """True if code has checked the answer, and the plan asks for no critic then. Contradictions and
    another form than was asked for are for a critic all the same.
    """
    written = state.finishing.synthesis
    if state.plan is None or state.plan.critic != "unless_checked" or written is None:
        return False
    return bool(written.checked) and not (written.conflicts or written.misfit)


def _take_critique(state: State, critique: Critique) -> State:
    return replace(state, finishing=replace(state.finishing, issues=critique.issues))


READINGS: Mapping[str, Reading] = {
    reading.kind.name: reading
    for reading in (
        Reading(CRITIQUE, "a critic reads the answer", gathering.for_critique, _take_critique),
    )
}
"""Calls by the name of their kind, in the order in which they are asked."""


def next_ask(state: State) -> Ask | None:
    """Return the next call on the way to the answer. None: wait for what is in flight, or done."""
    finishing = state.finishing
    if finishing.synthesis is None:
        before = _next_proof(state) or _next_fix(state)
        if not finishing.by_template:
            before = before or next_choice(state) or _next_digest(state) or _next_roll(state)
            before = before or _next_selection(state)
        if before is not None or state.flights:
            return before
        return _synthesis(state)
    written = finishing.synthesis
    if state.flights or finishing.by_template or written.by_template or written.finding:
        return None
    return _next_conflict(state) or _next_reading(state) or _revision(state)


def close(state: State) -> State:
    """Close the run when nothing is in flight and no call is left to make."""
    if state.phase != "synthesizing" or state.flights:
        return state
    over = state.finishing.synthesis is not None and next_ask(state) is None
    if over or state.stopped_by("cancelled"):
        return replace(state, phase="closed", finished=state.now)
    return state


def single_answer(state: State) -> Synthesis | None:
    """Return the complete finding of a plan's only subtask as the answer; None: one is written."""
    return _as_it_stands(state.findings[0]) if state.single else None


def _as_it_stands(finding: Finding) -> Synthesis | None:
    """Return a finding as the answer; None: it is data, or not complete."""
    if finding.status != "complete" or is_data(finding):
        return None
    return Synthesis(
        answer=finding.content, confidence=finding.confidence, finding=finding.subtask_id
    )


# ---------------------------------------------------------------- before the synthesis


def _next_proof(state: State) -> Ask | None:
    """Return the next script to ask for or to run."""
    return _first(
        _script(state, place, remark, again) or _run_of_script(state, place, remark, again)
        for place, remark in proving.to_prove(state)
        for again in (proving.FIRST, proving.AGAIN)
    )


def _script(state: State, place: int, remark: Remark, again: str) -> Ask | None:
    if again and not proving.needs_another(state, place):
        return None
    gathered = partial(proving.material, state, place, remark, again)
    return _optional(state, PROVE, proving.purpose_of(PROVE.name, place, again), gathered)


def _run_of_script(state: State, place: int, remark: Remark, again: str) -> Ask | None:
    material = proving.try_material(state, place, remark, again)
    return _free(state, TRY_PROOF, proving.purpose_of(TRY_PROOF.name, place, again), material)


def _next_fix(state: State) -> Ask | None:
    """Return the next patch to ask for or to try, once nothing is awaited that it could rest on."""
    if any(each.move.kind not in (FIX.name, TRY_FIX.name) for each in state.flights.values()):
        return None
    return _first(
        _optional(
            state,
            FIX,
            proving.purpose_of(FIX.name, place),
            partial(fixing.material, state, place, remark),
        )
        or _free(
            state,
            TRY_FIX,
            proving.purpose_of(TRY_FIX.name, place),
            fixing.try_material(state, place, remark),
        )
        for place, remark in fixing.to_fix(state)
    )


def _free(state: State, kind: Kind[Any], purpose: str, material: Contract | None) -> Ask | None:
    """Return a call that asks no model and costs nothing; None without material, after it was made,
    or once the run stops.
    """
    flying = [flight.move.purpose for flight in state.flights.values()]
    over = purpose in state.finishing.given_up or state.stop is not None
    if material is None or over or purpose in flying:
        return None
    if len(flying) >= state.goal.limits.concurrency:
        return None
    call = Call(kind=kind.name, purpose=purpose, number=state.next_number(purpose))
    return Ask(call, material, Amount())


def next_digest_for(state: State, subtask: Subtask) -> tuple[Ask | None, bool]:
    """Return the digest to ask for next before a subtask can start, and whether it waits for one.
    A digest that was given up, or that no money can come back for, is not waited for.
    """
    waits = False
    long = [*gathering.long_findings(state, subtask)]
    flying = [flight.move.purpose for flight in state.flights.values()] if long else []
    for finding in long:
        purpose = _digest_purpose(finding)
        if finding.digest or purpose in state.finishing.given_up:
            continue
        if purpose in flying or state.out_of_reach:
            waits = True
            continue
        ask = _digest_of(state, finding)
        if ask is not None:
            return ask, True
        waits = waits or bool(state.ledger.reserved)
    return None, waits


def _digest_purpose(finding: Finding) -> str:
    return f"digest-{finding.subtask_id}"


def _digest_of(state: State, finding: Finding) -> Ask | None:
    return _optional(
        state,
        DIGEST,
        _digest_purpose(finding),
        partial(gathering.for_digest, state, (finding,)),
        subject=finding.subtask_id,
    )


def _next_digest(state: State) -> Ask | None:
    limit = context.longest(state)
    if len(state.flights) >= state.goal.limits.concurrency:
        return None
    known = dict.fromkeys(each.move.purpose for each in state.flights.values())
    known |= dict.fromkeys(state.finishing.given_up)
    aside = state.set_aside
    for finding in state.work.undigested:
        purpose = _digest_purpose(finding)
        if (
            purpose in known
            or finding.subtask_id in aside
            or not context.is_longer(finding.content, limit)
        ):
            continue
        # What surely does not fit need not be gathered to find that out.
        if not state.ledger.fits(least_call(state.brief, DIGEST, tokens_of(limit))):
            return None
        ask = _digest_of(state, finding)
        if ask is not None:
            return ask
    return None


def next_digest_ahead(state: State) -> Ask | None:
    """Return the next digest for the answer while the last subtasks are still at work. Anything
    that has yet to start comes first: it may need the money.
    """
    if not any(state.work.undigested):
        return None
    if not state.goal.use_models or state.out_of_reach or verifying.is_wanted(state):
        return None
    if any(choice not in state.finishing.chosen for choice in state.work.choices):
        return None  # an attempt that will be put aside needs none
    waits = state.replanning.setbacks or any(state.work.ready)
    if waits or not all(each.started for each in state.work.values()):
        return None
    return _next_digest(state)


def _next_roll(state: State) -> Ask | None:
    """Roll batches of findings up, in rounds, until they fit into the supervisor's context."""
    flying = (flight.move for flight in state.flights.values())
    digesting = any(isinstance(move, Ask) and move.subject for move in flying)
    if digesting or state.finishing.round >= ROUNDS or context.fits(state):
        return None
    return _first(
        _optional(
            state,
            DIGEST,
            f"digest-{roll_name(state, place)}",
            partial(gathering.for_digest, state, batch),
            place=place,
        )
        for place, batch in enumerate(context.batches(state))
        if len(batch) > 1
    )


def roll_name(state: State, place: int) -> str:
    return f"{ROLL}{state.finishing.round + 1}-{place}"


def _next_selection(state: State) -> Ask | None:
    assert state.plan is not None
    if state.plan.strategy != "select" or len(state.usable) < 2:
        return None
    wanted = state.plan.synthesis_instruction
    question = f"Which of these findings answers this best? {state.goal.text}"
    question += f"\n\nThe answer is to be so: {wanted}" if wanted else ""
    question += "\n\nThe one that wins is the answer as it stands." if state.selects else ""
    return _optional(state, JUDGE, "judge", partial(gathering.for_judge, state, question))


def next_choice(state: State) -> Ask | None:
    """Return the call that chooses the best of several attempts, once all of them have ended."""
    return _first(_choosing(state, choice) for choice in _due_choices(state))


def open_choices(state: State) -> Iterator[Choice]:
    """Yield the choices that are being made, or will be as soon as they can be paid: what depends
    on their attempts waits.
    """
    for choice in _due_choices(state):
        flying = any(each.move.purpose == _purpose(choice) for each in state.flights.values())
        if flying or state.ledger.reserved or _choosing(state, choice):
            yield choice


def _due_choices(state: State) -> Iterator[Choice]:
    if not state.goal.use_models or state.stop is not None:
        return
    for choice in state.work.choices:
        found = [each for each in state.usable if each.subtask_id in choice]
        over = all(state.is_settled(each) for each in choice)
        if over and len(found) > 1 and _purpose(choice) not in state.finishing.given_up:
            yield choice


def _purpose(choice: Choice) -> str:
    return f"judge-choice-{choice[0]}"


def _choosing(state: State, choice: Choice) -> Ask | None:
    gathered = partial(gathering.for_judge, state, _question_of(state, choice), ids=choice)
    return _optional(state, JUDGE, _purpose(choice), gathered, subject=choice[0])


def _question_of(state: State, choice: Choice) -> str:
    """Return what is asked about attempts: each was asked in its own words."""
    asked = {each: state.work[each].subtask.instruction for each in choice}
    if len({*asked.values()}) == 1:
        return f"Which of these findings carries out this instruction best? {asked[choice[0]]}"
    listed = "\n".join(f"- {name}: {words}" for name, words in asked.items())
    assert state.plan is not None, "only a plan has choices"
    goal, wanted = state.plan.goal, state.plan.synthesis_instruction
    goal += f"\nThe answer to it is to be so: {wanted}" if wanted else ""
    return (
        "Each of these findings attempts the same part of a larger goal, as it was told in its own"
        " words. Which of them serves that goal best, by what all of them were told? Where their"
        f" instructions differ, no one's own words are the measure.\n{listed}\nThe goal: {goal}"
    )


# ---------------------------------------------------------------- the synthesis and after


def _synthesis(state: State) -> Ask:
    over = state.deadline is not None and state.now >= state.deadline
    if not (state.finishing.by_template or over):
        for share in (1, NARROW_SHARE):
            material = gathering.for_synthesis(state, context.room(state) // share)
            ask = fitting_call(state, SYNTHESIZE, "synthesize", material, keep=False)
            if state.ledger.fits(ask.amount, keep=False):
                return ask
    # By a template: no model, and no cost.
    number = state.next_number("synthesize")
    call = Call(kind=SYNTHESIZE.name, purpose="synthesize", number=number)
    return Ask(call, gathering.for_synthesis(state), Amount())


def _next_conflict(state: State) -> Ask | None:
    synthesis = state.finishing.synthesis
    assert synthesis is not None
    playbook = state.brief.playbook
    told = state.finishing.revised or (playbook and playbook.contradictions == "tell")
    listed = () if told else synthesis.conflicts[:CONFLICTS_JUDGED]
    return _first(
        _optional(
            state,
            JUDGE,
            f"judge-conflict{place + 1}",
            partial(gathering.for_judge, state, _conflict_question(state, conflict)),
            place=place,
        )
        for place, conflict in enumerate(listed)
    )


def _conflict_question(state: State, conflict: str) -> str:
    if _is_within_one(state, conflict):
        return (
            "Both sides of this contradiction stand in one finding. Which of them do the inputs"
            f" bear out? {conflict}"
        )
    return f"Which side of this contradiction is right? {conflict}"


def _is_within_one(state: State, conflict: str) -> bool:
    """True if a contradiction names one subtask alone: then no winner tells its sides apart."""
    named = {each for each in re.findall(r"[\w-]+", conflict) if each in state.work}
    return len(named) == 1


def _next_reading(state: State) -> Ask | None:
    return _first(
        _optional(state, each.kind, name, partial(each.gathered, state))
        for name, each in READINGS.items()
        if not (each.kind is CRITIQUE and is_checked(state))
    )


def _revision(state: State) -> Ask | None:
    finishing = state.finishing
    serious = [each for each in finishing.issues or () if each.severity != "info"]
    hopeless = finishing.revised or "revision" in finishing.given_up or state.stop is not None
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
) -> Ask | None:
    """Return a call, unless it was given up, does not fit or comes too late. `gathered` makes its
    material, with the malformed answer that it is to mend.
    """
    if purpose in state.finishing.given_up or state.stop is not None:
        return None
    flying = [flight.move.purpose for flight in state.flights.values()]
    if purpose in flying or len(flying) >= state.goal.limits.concurrency:
        return None
    keep = state.keeps
    material = gathered(gathering.last_malformed(state, purpose))
    ask = fitting_call(state, kind, purpose, material, keep=keep)
    return (
        replace(ask, subject=subject, place=place)
        if state.ledger.fits(ask.amount, keep=keep)
        else None
    )


def _first(asks: Iterable[Ask | None]) -> Ask | None:
    return next((ask for ask in asks if ask is not None), None)


def note_cut(state: State, ask: Ask) -> State:
    """Remember which findings were cut for a call, for the report."""
    cut = getattr(ask.material, "cut", ())
    if not cut:
        return state
    known = tuple(dict.fromkeys((*state.finishing.cut, *cut)))
    return replace(state, finishing=replace(state.finishing, cut=known))


# ---------------------------------------------------------------- what came back


def take(state: State, ask: Ask, value: Contract | None, why: str) -> State:
    """Take in the reply to an optional call; without a value it is left out, with a note."""
    finishing = replace(state.finishing, given_up=(*state.finishing.given_up, ask.purpose))
    state = replace(state, finishing=finishing)
    if value is None:
        note = f"{ask.call.kind} was left out: {why}"
        return replace(state, notes=(*state.notes, note))
    match value:
        case Digest():
            return _take_digest(state, ask, value)
        case Judgement():
            return _take_judgement(state, ask, value)
        case Script() | Tried() | Edit() | Fix():
            return proving.take(state, ask.purpose, value)
        case _:
            return READINGS[ask.call.kind].take(state, value)


def _take_digest(state: State, ask: Ask, digest: Digest) -> State:
    if ask.place is not None:
        return _take_roll(state, ask.place, digest)
    finding = state.work[ask.subject].finding
    assert finding is not None
    shorter = finding.model_copy(update={"digest": digest.text, "claims": digest.claims})
    return update(state, ask.subject, lambda each: replace(each, finding=shorter))


def _take_roll(state: State, place: int, digest: Digest) -> State:
    """Take in the digest of a batch. The last batch of more than one ends the round."""
    finishing = state.finishing
    rolled = Finding(
        subtask_id=roll_name(state, place),
        status="complete",
        content=digest.text,
        claims=digest.claims,
        confidence=None,
    )
    rolling = {**finishing.rolling, place: rolled}
    batches = list(enumerate(context.batches(state)))
    if any(len(batch) > 1 and place not in rolling for place, batch in batches):
        return replace(state, finishing=replace(finishing, rolling=rolling))
    whole = tuple(rolling[place] if len(batch) > 1 else batch[0] for place, batch in batches)
    finishing = replace(finishing, rolled=whole, rolling={}, round=finishing.round + 1)
    return replace(state, finishing=finishing)


def _take_judgement(state: State, ask: Ask, judgement: Judgement) -> State:
    finishing = state.finishing
    if ask.place is None:
        return _take_choice(state, ask, judgement)
    assert finishing.synthesis is not None
    conflict = finishing.synthesis.conflicts[ask.place]
    ruled = f"judged for {judgement.winner}" if judgement.winner else "could not be decided"
    if _is_within_one(state, conflict):
        ruled = "judged by the inputs"
    said = f"{conflict} ({ruled}: {judgement.why})"
    return replace(state, finishing=replace(finishing, conflicts=(*finishing.conflicts, said)))


def _take_choice(state: State, ask: Ask, judgement: Judgement) -> State:
    whole = tuple(state.work)
    choice = next((each for each in state.work.choices if ask.subject == each[0]), whole)
    chosen = {**state.finishing.chosen, choice: judgement}
    finishing, winner = replace(state.finishing, chosen=chosen), judgement.winner
    if choice == whole and winner and state.selects:
        finding = state.work[winner].finding
        assert finding is not None, "only what was found is judged"
        finishing = replace(finishing, synthesis=_as_it_stands(finding))
    ruled = f"{winner or 'none'} was chosen"
    ruled += ", and its finding is the answer" if finishing.synthesis else ""
    note = f"Of {', '.join(choice)}, attempts at one question, {ruled}: {judgement.why}"
    return replace(state, finishing=finishing, notes=(*state.notes, note))


def take_synthesis(state: State, synthesis: Synthesis | None, why: str) -> State:
    if synthesis is None:
        return no_synthesis(state, why)
    finishing = state.finishing
    revised = finishing.synthesis is not None
    if revised and synthesis.misfit:
        return no_synthesis(state, synthesis.misfit)
    if synthesis.by_template:
        synthesis = _take_unformed(state) or synthesis
    return replace(state, finishing=replace(finishing, synthesis=synthesis, revised=revised))


def keep_unformed(state: State, value: Contract | None) -> State:
    """Keep a complete answer that is to be mended: it is paid, and its repair may not come."""
    if not isinstance(value, Synthesis):
        return state
    return replace(state, finishing=replace(state.finishing, unformed=value))


def _take_unformed(state: State) -> Synthesis | None:
    """Return the last complete answer in another form that was not mended, if any."""
    unformed = state.finishing.unformed
    if unformed is None:
        return None
    rest = "the rest of the budget does not cover another call"
    why = state.finishing.unwritten or ("work was stopped" if state.stop else rest)
    said = f"{unformed.misfit.rstrip('.')}; it was not mended, because {why}"
    return unformed.model_copy(update={"misfit": said})


def no_synthesis(state: State, why: str) -> State:
    """Replace a first synthesis by a template's; without a revision, keep the answer there is."""
    finishing = state.finishing
    if finishing.synthesis is not None:
        note = f"The answer could not be revised: {why}"
        finishing = replace(finishing, given_up=(*finishing.given_up, "revision"))
    elif finishing.by_template:
        written = _take_unformed(state) or Synthesis(answer="", by_template=True)
        finishing = replace(finishing, synthesis=written)
        # Of an answer that a model wrote it is said already why it was not mended.
        why = why if written.by_template else finishing.unwritten
        return replace(state, finishing=replace(finishing, unwritten=why))
    else:
        # What the gap says is in no note as well.
        return replace(state, finishing=replace(finishing, by_template=True, unwritten=why))
    return replace(state, finishing=finishing, notes=(*state.notes, note))
