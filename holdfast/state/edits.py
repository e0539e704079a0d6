"""Small changes of a run's state that several rules make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from holdfast.contracts import Bill, NoAnswer, RoleTier, Subtask, Try
from holdfast.contracts.replacing import replace
from holdfast.state.moves import Stop, StopReason
from holdfast.state.parts import Progress
from holdfast.state.run import State

Held = TypeVar("Held")


def begin_subtask(state: State, subtask: Subtask) -> Progress:
    role = state.brief.role(subtask.role)
    tier: RoleTier = "none" if role.tier == "none" else subtask.tier or role.tier
    return Progress(subtask, tier=role.tier if role.fixed_tier else tier)


def record_try(progress: Progress, verdict: str, why: str) -> Progress:
    dollars, assumed = _since(progress)
    last = Try(
        number=len(progress.tries) + 1,
        tier=progress.called,
        verdict=verdict,
        why=why,
        dollars=dollars,
        assumed=assumed,
        role=progress.subtask.role if progress.former else "",
    )
    return replace(progress, tries=(*progress.tries, last))


def _since(progress: Progress) -> tuple[Decimal | None, Decimal]:
    """Return dollars paid since the last try, and the assumed part; without unanswered calls."""
    before: tuple[Try | NoAnswer, ...] = (*progress.tries, *progress.unanswered)
    assumed = progress.paid.assumed - sum((each.assumed for each in before), Decimal(0))
    known = [each.dollars for each in before if each.dollars is not None]
    if progress.paid.dollars is None or len(known) < len(before) or not progress.paid.calls:
        return None, assumed
    return progress.paid.dollars - sum(known, Decimal(0)), assumed


def update(state: State, subtask_id: str, change: Callable[[Progress], Progress]) -> State:
    return replace(state, work=state.work.with_progress(subtask_id, change(state.work[subtask_id])))


def land(state: State, flight_id: str) -> State:
    """Take an activity out of those in flight."""
    subtask_id = state.flights[flight_id].move.subtask_id
    state = replace(
        state,
        flights=without(state.flights, flight_id),
        standing=without(state.standing, flight_id),
    )
    if subtask_id:
        return update(state, subtask_id, lambda each: replace(each, flight=""))
    return state


def stop_for(state: State, reason: StopReason, why: str) -> State:
    """Stop the run, unless it has stopped already."""
    return replace(state, stop=state.stop or Stop(reason, why))


def forget_losses(state: State, subtask_id: str) -> State:
    """Forget the calls for a subtask that brought no answer: it begins anew."""
    left = {
        purpose: count
        for purpose, count in state.transport.items()
        if purpose.partition("-")[2] != subtask_id
    }
    return replace(state, transport=left)


def add_bill(progress: Progress, bill: Bill) -> Progress:
    """Add the cost of a call for a subtask, whatever kind of call it was."""
    before = progress.paid
    unknown = bill.dollars is None or before.dollars is None
    total = None if unknown else (before.dollars or 0) + (bill.dollars or 0)
    paid = Bill(
        model=bill.model,
        calls=before.calls + bill.calls,
        dollars=total,
        assumed=before.assumed + bill.assumed,
    )
    return replace(progress, paid=paid, usage=progress.usage + bill.usage)


def note_author(progress: Progress, model: str, *, draft: bool) -> Progress:
    """Note the model that wrote a draft of a subtask; without a draft, the model that was asked for
    one. Who reviews a draft or refines an instruction is not its author.
    """
    if not model or not (draft or progress.last is None):
        return progress
    return replace(progress, model=model)


def without(mapping: Mapping[str, Held], key: str) -> dict[str, Held]:
    return {each: value for each, value in mapping.items() if each != key}
