"""What became of the calls on the way to the answer. Pure."""

from __future__ import annotations

from holdfast.calling import context, verifying
from holdfast.calling.finishing import READINGS, roll_name
from holdfast.calls.digest import Digest
from holdfast.calls.judge import Judgement
from holdfast.calls.verify import Verdicts
from holdfast.contracts import Contract, Finding, Synthesis
from holdfast.contracts.replacing import replace
from holdfast.state.edits import update
from holdfast.state.moves import Ask
from holdfast.state.run import State


def take(state: State, ask: Ask, value: Contract | None, why: str) -> State:
    """The reply to an optional call; None: it is left out, and the report says why."""
    finishing = replace(state.finishing, given_up=(*state.finishing.given_up, ask.purpose))
    state = replace(state, finishing=finishing)
    if value is None:
        note = f"{ask.call.kind} was left out: {why}"
        return replace(state, notes=(*state.notes, note))
    match value:
        case Digest():
            return _take_digest(state, ask, value)
        case Verdicts():
            assert ask.place is not None, "remarks are verified in batches"
            return verifying.take_verdicts(state, ask.place, value)
        case Judgement():
            return _take_judgement(state, ask, value)
        case _:
            return READINGS[ask.call.kind].take(state, value)


def _take_digest(state: State, ask: Ask, digest: Digest) -> State:
    if ask.place is not None:
        return _take_roll(state, ask.place, digest)
    finding = state.work[ask.subject].finding
    assert finding is not None
    shorter = finding.model_copy(update={"digest": digest.text})
    return update(state, ask.subject, lambda each: replace(each, finding=shorter))


def _take_roll(state: State, place: int, digest: Digest) -> State:
    """A batch was rolled up; the round is over when every batch of more than one has been."""
    finishing = state.finishing
    rolled = Finding(
        subtask_id=roll_name(state, place),
        status="complete",
        content=digest.text,
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
        return replace(state, finishing=replace(finishing, judgement=judgement))
    assert finishing.synthesis is not None
    conflict = finishing.synthesis.conflicts[ask.place]
    ruled = f"judged for {judgement.winner}" if judgement.winner else "could not be decided"
    said = f"{conflict} ({ruled}: {judgement.why})"
    return replace(state, finishing=replace(finishing, conflicts=(*finishing.conflicts, said)))


def take_synthesis(state: State, synthesis: Synthesis | None, why: str) -> State:
    if synthesis is None:
        return no_synthesis(state, why)
    finishing = state.finishing
    revised = finishing.synthesis is not None
    if revised and synthesis.misfit:
        return no_synthesis(state, synthesis.misfit)
    if synthesis.by_template:
        synthesis = _unmended(state) or synthesis
    return replace(state, finishing=replace(finishing, synthesis=synthesis, revised=revised))


def keep_unformed(state: State, value: Contract | None) -> State:
    """Keep a complete answer that is to be mended: it is paid, and what mends it may not come."""
    if not isinstance(value, Synthesis):
        return state
    return replace(state, finishing=replace(state.finishing, unformed=value))


def _unmended(state: State) -> Synthesis | None:
    """The last complete answer that is not in its form, where no model mended it; None: a template
    has nothing better to give way to.
    """
    unformed = state.finishing.unformed
    if unformed is None:
        return None
    rest = "the rest of the budget does not cover another call"
    why = state.finishing.unwritten or ("work was stopped" if state.stop else rest)
    said = f"{unformed.misfit.rstrip('.')}; it was not mended, because {why}"
    return unformed.model_copy(update={"misfit": said})


def no_synthesis(state: State, why: str) -> State:
    """The first synthesis is replaced by a template; a failed revision leaves what there is."""
    finishing = state.finishing
    if finishing.synthesis is not None:
        note = f"The answer could not be revised: {why}"
        finishing = replace(finishing, given_up=(*finishing.given_up, "revision"))
    elif finishing.by_template:
        written = _unmended(state) or Synthesis(answer="", by_template=True)
        finishing = replace(finishing, synthesis=written)
        # Of an answer that a model wrote it is said already why it was not mended.
        why = why if written.by_template else finishing.unwritten
        return replace(state, finishing=replace(finishing, unwritten=why))
    else:
        # What the gap says is in no note as well.
        return replace(state, finishing=replace(finishing, by_template=True, unwritten=why))
    return replace(state, finishing=finishing, notes=(*state.notes, note))
