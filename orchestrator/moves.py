"""What the supervisor does next: `moves = next_moves(state, now)`, pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from orchestrator import finishing, graph, material, teams
from orchestrator.calls import free_call, paid_call
from orchestrator.contracts import RoleTier, Tier
from orchestrator.events import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Move,
    Started,
    StartTeam,
    Stop,
    UseTool,
)
from orchestrator.reducer import apply
from orchestrator.settling import held_back
from orchestrator.state import Progress, State

DOWNGRADE: dict[RoleTier, Tier] = {"opus": "sonnet", "sonnet": "haiku"}


def next_moves(state: State, now: datetime) -> tuple[Move, ...]:
    """Everything that can start now, in order; each move takes the ones before it into account."""
    return tuple(_moves(state, now))


def _moves(state: State, now: datetime) -> Iterator[Move]:
    while (move := _next(state, now)) is not None:
        yield move
        state = apply(state, Started(move), now)


def _next(state: State, now: datetime) -> Move | None:
    if state.stopped_by("cancelled"):
        return _cut(state)
    ending = _cut_ending(state)
    if ending is not None:
        return ending
    if state.paused:
        return None
    deadline = state.work_deadline
    if state.phase in ("planning", "working") and deadline and now >= deadline:
        return _cut(state) if state.stop else Stop("deadline", "the deadline was reached")
    if state.phase == "planning":
        return _plan(state)
    if state.phase == "working":
        return _work(state, now)
    if state.phase == "synthesizing":
        return _overdue(state, now) or finishing.next_ask(state)
    return None


def _overdue(state: State, now: datetime) -> Move | None:
    """At the last deadline a model's synthesis is cut; the template's costs nothing and is not."""
    if state.deadline is None or now < state.deadline:
        return None
    if not state.stop:
        return Stop("deadline", "the deadline was reached")
    paid = tuple(key for key in state.ledger.reserved if not state.flights[key].cut)
    return Cut(paid) if paid else None


def _plan(state: State) -> Move | None:
    if state.flights or state.stop:
        return None
    wanted = material.for_plan(state)
    if wanted.ready is not None or not state.goal.use_models:
        return free_call(state, "plan", "plan")
    ask = paid_call(state, "plan", "plan", wanted)
    if not state.ledger.fits(ask.amount):
        if state.short:
            return None
        return _out_of_money(state, "the cap does not cover a plan and a synthesis")
    return ask


def _work(state: State, now: datetime) -> Move | None:
    if state.stop or state.short or len(state.flights) >= state.goal.limits.concurrency:
        return None
    return _replan(state) or _first(state, now) or _without_replan(state)


def _cut(state: State) -> Move | None:
    ids = tuple(key for key, flight in state.flights.items() if not flight.cut)
    return Cut(ids) if ids else None


def _cut_ending(state: State) -> Move | None:
    """Cut the activities of subtasks that a person ended."""
    ids = tuple(
        key
        for key, flight in state.flights.items()
        if not flight.cut and (each := _owner(state, flight.move)) is not None and each.ending
    )
    return Cut(ids) if ids else None


def _owner(state: State, move: Ask | UseTool | StartTeam) -> Progress | None:
    return state.work.get(move.call.subtask_id if isinstance(move, Ask) else move.subtask_id)


def _replan(state: State) -> Move | None:
    flying = any(key.startswith("replan-") for key in state.flights)
    if not state.replanning.setbacks or flying:
        return None
    ask = paid_call(state, "replan", "replan", material.for_replan(state))
    return ask if state.ledger.fits(ask.amount) else None


def _without_replan(state: State) -> Move | None:
    """What failed takes down what needs it, but only once everything else has been done."""
    if state.flights or state.waiting_since or not state.replanning.setbacks:
        return None
    return _out_of_money(state, "the rest of the budget does not cover changing the plan")


def _first(state: State, now: datetime) -> Move | None:
    """The move of the first subtask, by the longest remaining chain, that can be made now."""
    late = False
    for progress in _ready(state):
        if progress.stage == "person":
            return AskPerson(progress.subtask.id, progress.reason)
        if _cannot_finish(state, progress, now):
            late = True
            continue
        move = _start(state, progress)
        if move is not None:
            return move
    if late and not state.flights:
        return Stop("deadline", "what is left could not have finished before the deadline")
    return None


def _ready(state: State) -> list[Progress]:
    """Subtasks that can start now, the one with the longest remaining chain first."""
    below = graph.chain_below([progress.subtask for progress in state.work.values()])
    held = held_back(state)
    ready = [
        progress
        for key, progress in state.work.items()
        if progress.finding is None
        and not progress.flight
        and key not in held
        and not (progress.stage == "person" and progress.asked)
        and all(state.settled(edge) for edge in progress.subtask.depends_on)
    ]
    return sorted(ready, key=lambda progress: -below[progress.subtask.id])


def _cannot_finish(state: State, progress: Progress, now: datetime) -> bool:
    """Whether a call would end after the deadline, going by the mean of this run's finished
    ones.
    """
    if state.work_deadline is None or progress.tier == "none":
        return False
    spans = [
        (each.finished - each.started).total_seconds() / max(len(each.tries), 1)
        for each in state.findings
        if each.started and each.finished and each.status == "complete"
    ]
    if not spans:
        return False
    return now + timedelta(seconds=sum(spans) / len(spans)) > state.work_deadline


def _start(state: State, progress: Progress) -> Move | None:
    """The move that starts a subtask; None: wait, because something in flight may release money."""
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    if progress.tier == "none":
        number = state.numbers.get(f"use_tool-{subtask.id}", 0) + 1
        return UseTool(f"use_tool-{subtask.id}-{number}", subtask.id, role.tools[0])
    if role.team and progress.stage == "work":
        return teams.start(state, progress) or _wait_or_stop(state)
    if progress.stage != "work":
        return _affordable(state, _ask(state, progress))
    ask = _ask(state, progress, progress.tier)
    if state.ledger.fits(ask.amount) or state.ledger.reserved or role.fixed_tier:
        return _affordable(state, ask)
    cheaper = DOWNGRADE.get(progress.tier)
    while cheaper is not None:
        ask = _ask(state, progress, cheaper)
        if state.ledger.fits(ask.amount):
            return ask
        cheaper = DOWNGRADE.get(cheaper)
    return _affordable(state, ask)


def _affordable(state: State, ask: Ask) -> Move | None:
    if state.ledger.fits(ask.amount):
        return ask
    return _wait_or_stop(state)


def _wait_or_stop(state: State) -> Move | None:
    if state.ledger.reserved:
        return None
    return _out_of_money(state, "the rest of the budget does not cover another call")


def _out_of_money(state: State, why: str) -> Move:
    return AskRaise(why) if state.goal.wait_for_raise else Stop("budget", why)


def _ask(state: State, progress: Progress, tier: RoleTier | None = None) -> Ask:
    subtask_id = progress.subtask.id
    role = state.brief.role(progress.subtask.role)
    wanted = material.for_subtask(state, progress)
    if progress.stage == "review":
        return paid_call(state, "review", f"review-{subtask_id}", wanted, progress=progress)
    if progress.stage == "refine":
        return paid_call(state, "refine", f"refine-{subtask_id}", wanted, progress=progress)
    what = "repair" if f"work-{subtask_id}" in state.broken else "work"
    assert tier is not None and tier != "none", "work without a model is a tool's"
    return paid_call(
        state, "work", f"{what}-{subtask_id}", wanted, tier=tier, progress=progress, role=role
    )
