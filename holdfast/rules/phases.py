"""Move a run from phase to phase, and keep its clock. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.calling import finishing, verifying
from holdfast.contracts.replacing import replace
from holdfast.rules import early, maps, planning
from holdfast.state.moves import Stop, StopReason
from holdfast.state.run import State
from holdfast.state.settling import accept, leave_as_is, settle, skip, status_words

HOPELESS: tuple[StopReason, ...] = ("endpoint", "no json", "allowance")
"""After such a stop no model answers either."""


def skip_blocked(state: State) -> State:
    """Skip what needs a finding that will not come; what a replan may still save waits."""
    if not state.work.blocked:
        return state
    held = ids_held_back(state)
    # Until nothing changes: what is skipped takes along what needs it, wherever that stands.
    blocked = True
    while blocked:
        blocked = False
        for key, progress in state.work.items():
            if progress.finding is not None or progress.flight or key in held:
                continue
            needed = progress.subtask.depends_on
            cause = next((each for each in needed if state.work.is_lost(each)), "")
            if cause:
                finding = state.work[cause].finding
                assert finding is not None
                state = skip(state, key, f"needs {cause}, which {status_words(finding.status)}")
                blocked = True
    return state


def ids_held_back(state: State) -> tuple[str, ...]:
    """Return what depends on a setback that a replan is about to deal with, or on attempts of
    which the best is still to be chosen.
    """
    held: dict[str, None] = {}
    causes = [each.subtask_id for each in state.replanning.setbacks]
    causes += [choice[0] for choice in finishing.open_choices(state)]
    for cause in causes:
        held |= dict.fromkeys(state.work.below(cause))
    return tuple(held)


def advance(state: State) -> State:
    if state.phase == "working":
        if state.stop:
            # Nobody will replan: what was held back for that is blocked like the rest.
            state = replace(state, replanning=replace(state.replanning, setbacks=()))
        state = skip_blocked(state)
    if state.phase == "planning" and state.stop and state.early.begun:
        state = early.drop(state)
    state = _set_clock(state)
    if state.flights or state.phase == "closed":
        return state
    if state.stop and state.phase in ("preparing", "planning", "approval"):
        return replace(state, phase="closed", finished=state.now)
    if state.phase == "working":
        return _end_of_work(state)
    return state


def _end_of_work(state: State) -> State:
    if state.stop:
        state = leave_undone(state, state.stop)
    if not state.work.all_settled or state.replanning.setbacks:
        return state
    if state.stopped_by("cancelled") or not state.usable:
        return replace(state, phase="closed", finished=state.now)
    if (answer := finishing.single_answer(state)) is not None:
        done = replace(state.finishing, synthesis=answer)
        return replace(state, phase="closed", finished=state.now, finishing=done)
    state, verifications = verifying.share_out(state)
    complete = any(finding.status == "complete" for finding in state.findings)
    if verifications and complete and not state.stop:
        return planning.add_subtasks(state, verifications)
    # Nothing complete: what there is is shown, and nothing is paid for it.
    free = not complete or not state.goal.use_models or state.stopped_by(*HOPELESS)
    # A template's answer that a model verifies is not written anew by one.
    free = free or verifying.is_wanted(state)
    done = replace(state.finishing, by_template=state.finishing.by_template or free)
    return replace(state, phase="synthesizing", finishing=done)


def move_clock(state: State, now: datetime, unserved: timedelta) -> State:
    """Move the run's clock. The deadline stood still for as long as no worker served the run."""
    counts = state.first_paid is not None and state.waiting_since is None
    seconds = unserved.total_seconds() if counts else 0.0
    return replace(state, now=now, waited=state.waited + seconds)


def _set_clock(state: State) -> State:
    """Stop the deadline while only a person, a lost endpoint or a waiting team keeps the run."""
    kept = state.phase == "approval" or state.paused or bool(state.short or state.work.asking)
    kept = kept or state.out_of_reach
    waits = (kept or bool(state.waiting_teams)) and not state.at_work and state.phase != "closed"
    if waits and state.waiting_since is None:
        return replace(state, waiting_since=state.now)
    if not waits and state.waiting_since is not None:
        return replace(_end_wait(state, state.waiting_since), waiting_since=None)
    return state


def _end_wait(state: State, since: datetime) -> State:
    """Count a wait that is over; before the first paid call no deadline runs."""
    paid = max(since, min(state.first_paid or state.now, state.now))
    before = state.waited_before + (paid - since).total_seconds()
    return replace(
        state, waited=state.waited + (state.now - paid).total_seconds(), waited_before=before
    )


def leave_undone(state: State, stop: Stop) -> State:
    """Settle what a stop left over; what was begun keeps its bill and its partial result."""
    for key, progress in state.work.items():
        if state.is_settled(key):
            continue
        if progress.undecided:
            state = leave_as_is(state, key)
        elif progress.stage == "review":
            # The draft passed every check; that nobody read it is said in its last try.
            state = accept(state, key, f"not reviewed: {stop.why}")
        elif progress.started and progress.subtask.map is not None:
            state = maps.leave_undone(state, key, stop.why)
        elif progress.started:
            why = f"{progress.why}; then {stop.why}" if progress.why else stop.why
            state = settle(state, key, "failed", f"not finished: {why}")
        else:
            state = skip(state, key, f"not started: {stop.why}")
    return state
