"""What the supervisor does next: `moves = next_moves(state)`. Pure; its clock is `state.now`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from holdfast.calling import finishing, gathering, outages, warming
from holdfast.calling.reserving import fitting_call, reservation, work_call
from holdfast.calls.choose import CHOOSE
from holdfast.calls.kind import AnyKind
from holdfast.calls.plan import PLAN
from holdfast.calls.refine import REFINE
from holdfast.calls.replan import REPLAN
from holdfast.calls.review import REVIEW
from holdfast.calls.work import WORK
from holdfast.contracts import Contract, policies
from holdfast.ledger.ledger import Amount
from holdfast.rules import (
    agents,
    early,
    keeping,
    map_orders,
    maps,
    notices,
    passing,
    teams,
    templates,
)
from holdfast.rules.phases import ids_held_back
from holdfast.rules.reducer import apply
from holdfast.state.events import Started
from holdfast.state.moves import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Examine,
    Hold,
    Move,
    Prepare,
    StartAgent,
    StartMap,
    Stop,
)
from holdfast.state.parts import Progress
from holdfast.state.run import State

LOOKED_AT = 30
"""Subtasks that are tried for one that the money of the moment covers: what is in flight gives some
back, and then they are tried again.
"""


def next_moves(state: State) -> tuple[Move, ...]:
    """Return everything that can start now; each move allows for the ones before it."""
    return tuple(_moves(state))


def _moves(state: State) -> Iterator[Move]:
    while (
        move := _next(state) or teams.tell_above(state) or notices.next_notice(state)
    ) is not None:
        yield move
        state = apply(state, Started(move))


def _next(state: State) -> Move | None:
    if state.stopped_by("cancelled"):
        return _cut(state, state.flights)
    if state.phase == "preparing":
        return Prepare() if not state.flights and not state.stop else None
    # Before the pause, which starts nothing but keeps no person from ending a subtask.
    ending = _cut_ending(state)
    if ending is not None:
        return ending
    taken_back = _cut(state, state.early.back)
    if taken_back is not None:
        return taken_back
    if state.paused:
        return _hold(state)
    skipped = map_orders.with_open_skipped(state)
    if skipped:
        return Cut(skipped)
    ordered = map_orders.with_new_orders(state)
    if ordered:
        return Hold(ordered)
    deadline = state.work_deadline
    if state.phase in ("planning", "working") and deadline and state.now >= deadline:
        return _cut(state, state.flights) if state.stop else Stop("deadline", state.work_over)
    match state.phase:
        case "planning":
            return outages.next_look(state) or _plan(state) or _early(state)
        case "working":
            return outages.needless_look(state) or outages.next_look(state) or _work(state)
        case "synthesizing":
            return _overdue(state) or outages.next_look(state) or _finish(state)
        case _:
            return None


def _finish(state: State) -> Move | None:
    return None if state.out_of_reach else finishing.next_ask(state)


def _overdue(state: State) -> Move | None:
    """Cut a model's synthesis at the last deadline; the template's costs nothing and is not cut."""
    if state.deadline is None or state.now < state.deadline:
        return None
    if not state.stop:
        total = state.goal.limits.deadline_seconds
        return Stop(
            "deadline", f"the deadline of {total} s was reached before the answer was there"
        )
    return _cut(state, state.ledger.reserved)


def _plan(state: State) -> Move | None:
    if state.stop or any(not each.move.subtask_id for each in state.flights.values()):
        return None
    match = templates.next_match(state)
    if match is not None:
        return match
    material = gathering.for_plan(state)
    # The last go, after all others were refused, is the strongest model's.
    first = policies.STRONGEST if state.plan_tries == policies.REPAIRS else None
    ask = fitting_call(state, PLAN, "plan", material, first=first)
    choice = _choice(state)
    if choice is not None:
        return choice
    if not state.ledger.fits(ask.amount):
        if state.short:
            return None
        why = keeping.why_short(state.goal, state.brief, state.ledger.cap)
        return _out_of_money(state, why, least=keeping.usual_cap(state.goal, state.brief))
    return ask


def _early(state: State) -> Move | None:
    """Start a subtask that stands, while the rest of the plan is being written."""
    if state.stop or state.short or len(state.flights) >= state.goal.limits.concurrency:
        return None
    if state.early.call not in state.flights or state.out_of_reach:
        return None
    move = _first(early.as_if_whole(state))
    starts = isinstance(move, Ask | StartAgent) and early.may_start(state, move)
    return move if starts else None


def _choice(state: State) -> Ask | None:
    """Return the call that chooses which roles the planner is shown, where there are too many and
    the cap pays for it beside the least that the run must ask for.
    """
    asked = state.groups is not None or state.numbers.get("plan")
    if asked or not gathering.is_large_menu(state):
        return None
    ask = fitting_call(state, CHOOSE, "choose", gathering.for_groups(state))
    rest = keeping.least(state.goal, state.brief)
    return ask if state.ledger.fits(ask.amount + rest, keep=False) else None


def _work(state: State) -> Move | None:
    if state.stop:
        return None
    ordered = maps.start_ordered(state)
    if ordered is not None:
        return ordered
    if state.short or len(state.flights) >= state.goal.limits.concurrency:
        return None
    # The replan comes first, because whatever is started before it cannot be changed any more.
    chosen = None if state.out_of_reach else finishing.next_choice(state)
    due = _replan(state) or chosen or _first(state) or _without_replan(state)
    return due or finishing.next_digest_ahead(state)


def _cut(state: State, keys: Iterable[str]) -> Cut | None:
    """Cut these flights, except those that are cut already."""
    ids = tuple(key for key in keys if not state.flights[key].cut)
    return Cut(ids) if ids else None


def _cut_ending(state: State) -> Cut | None:
    if not state.work.ending:
        return None
    owners = {key: state.work.get(flight.move.subtask_id) for key, flight in state.flights.items()}
    return _cut(state, [key for key, owner in owners.items() if owner and owner.ending])


def _hold(state: State) -> Move | None:
    """Hold agents and maps: a call in flight ends by itself, but they would go on with the next."""
    ids = tuple(
        key
        for key, flight in state.flights.items()
        if isinstance(flight.move, StartAgent | StartMap) and not (flight.cut or flight.held)
    )
    return Hold(ids) if ids else None


def _replan(state: State) -> Move | None:
    if not state.replanning.setbacks or state.is_asking("replan") or state.out_of_reach:
        return None
    ask = _changing(state)
    return ask if state.ledger.fits(ask.amount) else None


def _changing(state: State) -> Ask:
    material = gathering.for_replan(state)
    first = policies.STRONGEST if material.errors else None
    return fitting_call(state, REPLAN, "replan", material, first=first)


def _without_replan(state: State) -> Move | None:
    """Stop, or wait for money, once nothing but an unpaid replan is left to do."""
    if state.flights or state.waiting_since or state.out_of_reach or not state.replanning.setbacks:
        return None
    return _short(state, "changing the plan", _changing(state).amount)


def _first(state: State) -> Move | None:
    """Return the move of the first subtask, by its remaining chain, that can be made now."""
    late = False
    looked = 0
    too_dear: dict[tuple[str, str, bool, int], bool] = {}
    for progress in _ready(state):
        tools, most = agents.uses_tools(state, progress), progress.subtask.max_output
        like = progress.subtask.role, progress.tier, tools, most
        if progress.stage == "work" and too_dear.get(like):
            continue
        if progress.stage == "person":
            return AskPerson(progress.subtask.id, progress.why)
        elsewhere = passing.pass_over(state, progress)
        if elsewhere is not None:
            return elsewhere
        if _cannot_finish(state, progress):
            late = True
            continue
        if warming.waits(state, progress):
            continue
        digest, waits = _digest_first(state, progress)
        if digest is not None:
            return digest
        if waits:
            continue
        move = _start(state, progress)
        if move is not None:
            return move
        too_dear[like] = _too_dear(state, progress)
        looked += not state.out_of_reach
        if looked == LOOKED_AT:
            break
    if late and not state.flights:
        return Stop("deadline", "what is left could not have finished before the deadline")
    return None


def _digest_first(state: State, progress: Progress) -> tuple[Ask | None, bool]:
    """Return the digest of a long finding that an agent is to be given, and whether it waits for
    one. None is asked for with the money of the agent's own first call.
    """
    team = state.brief.role(progress.subtask.role).team
    if progress.stage != "work" or progress.tier == "none" or team:
        return None, False
    digest, waits = finishing.next_digest_for(state, progress.subtask)
    if digest and not state.ledger.fits(digest.amount + agents.one_turn(state, progress)):
        return None, bool(state.ledger.reserved)
    return digest, waits


def _ready(state: State) -> Iterator[Progress]:
    """Return the subtasks that can start now, the one with the longest remaining chain first."""
    held = ids_held_back(state)
    return (each for each in state.work.ready if each.subtask.id not in held)


def _cannot_finish(state: State, progress: Progress) -> bool:
    """True if a call would end after the deadline, by the mean of this run's finished ones."""
    if state.work_deadline is None or progress.tier == "none" or progress.subtask.map is not None:
        return False
    pace = state.work.pace
    return pace is not None and state.now + pace > state.work_deadline


def _too_dear(state: State, progress: Progress) -> bool:
    """True if even a try with the shortest prompt could not be paid as planned, while what is in
    flight may give something back: no subtask like it need be tried.
    """
    role = gathering.role_of(state, progress.subtask)
    if progress.tier == "none" or role.team or role.tools or not state.ledger.reserved:
        return False
    if progress.subtask.map is not None:
        return False
    tokens = policies.PROMPT_OVERHEAD_TOKENS + role.prompt_bytes
    model = state.brief.model(progress.tier, role.name)
    one = reservation(model, tokens, _room_due(progress))
    return not state.ledger.fits(one)


def _room_due(progress: Progress) -> int:
    return progress.subtask.max_output or WORK.policy.max_output


def _start(state: State, progress: Progress) -> Move | None:
    """Return the move that starts a subtask; None: what is in flight may release money."""
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    if progress.tier == "none":
        material = gathering.for_work(state, progress)
        return Examine(subtask.id, state.next_number(f"examine-{subtask.id}"), material)
    if state.out_of_reach:
        return None
    if role.team and progress.stage == "work":
        return teams.start(state, progress) or _wait_or_stop(state, teams.LEAST)
    if progress.stage != "work":
        return _affordable(state, _ask(state, progress))
    if progress.subtask.map is not None:
        below = keeping.least_below(state, subtask.id)
        started = maps.start(state, progress, below)
        return started or _wait_or_stop(state, maps.least_free(state, progress, below))
    if agents.uses_tools(state, progress):
        return agents.start(state, progress) or _wait_or_stop(
            state, agents.one_turn(state, progress)
        )
    ask = work_call(state, progress)
    less = ask.call.tier != progress.tier or ask.call.max_output < _room_due(progress)
    if less and state.ledger.reserved:
        # What is in flight may give back enough to ask as was planned.
        return None
    return _affordable(state, ask)


def _affordable(state: State, ask: Ask) -> Move | None:
    if state.ledger.fits(ask.amount):
        return ask
    return _wait_or_stop(state, ask.amount)


def _wait_or_stop(state: State, needed: Amount) -> Move | None:
    return None if state.ledger.reserved else _short(state, "another call", needed)


def _short(state: State, what: str, needed: Amount) -> Move:
    short_of = keeping.limits_short_of(state.ledger, needed)
    why = keeping.describe_shortage(state.ledger, what, short_of)
    return _out_of_money(state, why, short_of, keeping.cap_for(state.ledger, needed))


def _out_of_money(
    state: State, why: str, short_of: tuple[str, ...] = (), least: Decimal | None = None
) -> Move:
    if state.goal.wait_for_raise:
        return AskRaise(why, short_of, least)
    return Stop("budget", why, short_of, least)


def _ask(state: State, progress: Progress) -> Ask:
    if progress.stage == "review":
        kind: AnyKind = REVIEW
        material: Contract = gathering.for_review(state, progress)
    else:
        kind, material = REFINE, gathering.for_refine(state, progress)
    purpose = f"{kind.name}-{progress.subtask.id}"
    return fitting_call(state, kind, purpose, material, progress=progress)
