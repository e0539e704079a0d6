"""Subtasks whose calls begin with the same long material: one goes first, and the others read what
it has left in the endpoint's cache. Pure.
"""

from __future__ import annotations

from holdfast.calling import gathering
from holdfast.calls.changes import size_of_change
from holdfast.contracts import Call
from holdfast.contracts.replacing import replace
from holdfast.ledger.rows import worth_caching
from holdfast.state.moves import Ask
from holdfast.state.parts import Progress
from holdfast.state.run import State


def key_of(progress: Progress) -> str:
    """Return what is the same for all subtasks whose calls begin alike."""
    subtask = progress.subtask
    return "\n".join((subtask.role, progress.tier, *subtask.inputs, "", *subtask.depends_on))


def is_shared(state: State, progress: Progress) -> bool:
    """True if a call for a subtask begins with what others begin with, too, and that is long enough
    for the cache of its model.
    """
    if state.goal.by_batch or not state.brief.capabilities.caching:
        return False
    if not _may_share(state, progress):
        return False
    if state.early.plan is not None:
        # More is being written, and what begins alike is most often of one kind.
        return True
    key = key_of(progress)
    return key in state.warmed or any(
        each.finding is None and each is not progress and key_of(each) == key
        for each in state.work.values()
        if each.subtask.role == progress.subtask.role
    )


def readers(state: State, progress: Progress) -> tuple[str, ...]:
    """Return the subtasks that will read from the cache what the call for this one, the first of
    those that begin alike, leaves there.
    """
    key = key_of(progress)
    alike = (
        name
        for name, each in state.work.items()
        if each.finding is None and each.subtask.role == progress.subtask.role
        if key_of(each) == key
    )
    is_first = key not in state.warmed and next(alike) == progress.subtask.id
    return tuple(alike) if is_first else ()


def leads(state: State, progress: Progress) -> bool:
    """True if the call for a subtask is the first of those that begin alike."""
    return key_of(progress) not in state.warmed


def waits(state: State, progress: Progress) -> bool:
    """True if a call that begins alike is out, and the answer to none has begun."""
    if not state.brief.capabilities.caching or progress.stage != "work":
        return False
    key = key_of(progress)
    return key not in state.warmed and any(
        isinstance(flight.move, Ask)
        and flight.move.call.caching
        and (owner := state.work.get(flight.move.subtask_id)) is not None
        and key_of(owner) == key
        for flight in state.flights.values()
    )


def note_begun(state: State, call_id: str) -> State:
    """Let the others go as soon as the first answer begins: the cache has the beginning by then.
    Whoever says so wrongly makes them no dearer than was reserved.
    """
    flight = state.flights.get(call_id)
    return note_warm(state, flight.move.call) if flight and isinstance(flight.move, Ask) else state


def note_warm(state: State, call: Call) -> State:
    """Remember that the endpoint has read what a call and others begin with."""
    owner = state.work.get(call.subtask_id) if call.caching else None
    if owner is None or (key := key_of(owner)) in state.warmed:
        return state
    return replace(state, warmed=(*state.warmed, key))


def _may_share(state: State, progress: Progress) -> bool:
    """True if a subtask is one call whose material is worth an entry of the cache."""
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    if progress.tier == "none" or role.team or subtask.map is not None:
        return False
    given = gathering.inputs_of(state, subtask)
    size = sum(each.size if each.enclosed else size_of_change(each) for each in given)
    size += sum(len(each.content) for each in gathering.needed_findings(state, subtask))
    # By itself: for a role's prompt alone nobody waits.
    return worth_caching(state.brief.model(progress.tier, role.name), size)
