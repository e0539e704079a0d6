"""Subtasks that start while the rest of their plan is being written. Pure.

What stands is started as if it were the whole plan. The plan that the run works on at last decides:
what it would have asked in the same words goes on, everything else is taken back, cut and paid.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.calling import gathering
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Bill, Subtask
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.ledger.ranges import format_price
from holdfast.plans.composing import composable
from holdfast.state import paying
from holdfast.state.edits import begin_subtask, forget_losses, without
from holdfast.state.events import AgentEnded, Answered, PlanGrew, Trouble, Unanswered
from holdfast.state.moves import Ask, StartAgent
from holdfast.state.parts import Early, Progress
from holdfast.state.paying import TAKEN_BACK
from holdfast.state.run import State
from holdfast.state.settling import note_setback
from holdfast.state.work import Work
from holdfast.text import group_lines, one_line

Started = Ask | StartAgent
Landed = Answered | Unanswered | AgentEnded
UNTOLD = ("timeout_seconds", "max_output", "title", "why", "secondary")
"""What no prompt of a subtask's first call has."""
MOST_QUOTED = 200
"""Letters of what was wrong with a plan."""
OF_NOBODY = {"subtask_id": "", "kind": TAKEN_BACK}
"""What a call that was taken back is settled as: another subtask may have its id."""


def grow(state: State, event: PlanGrew) -> State:
    """Take in what stands of the plan that a call in flight is writing."""
    flight = state.flights.get(event.call)
    if flight is None or flight.move.kind != "plan" or state.stop:
        return state
    stands = [each for each in event.plan.subtasks if _may_start(state, each)]
    subtasks = tuple(stands[: gathering.most_early(state)])
    plan = event.plan.model_copy(update={"subtasks": subtasks, "choices": (), "roles": ()})
    return replace(state, early=replace(state.early, call=event.call, plan=plan))


def _may_start(state: State, subtask: Subtask) -> bool:
    """True if a subtask needs nobody else's finding, and its agent changes nothing and asks nobody:
    to take it back is then a matter of money alone.
    """
    role = next((each for each in state.brief.roles if each.name == subtask.role), None)
    if role is None or role.tier == "none" or role.team or subtask.map is not None:
        return False
    known = [each.name for each in state.brief.inputs]
    harmless = not role.tools or composable(role) == role.tools
    return harmless and not subtask.depends_on and all(each in known for each in subtask.inputs)


def as_if_whole(state: State) -> State:
    """Return the state in which what stands and was not started, or was lost, is all that there is
    to do, beside what is in flight.
    """
    plan = state.early.plan
    assert plan is not None, "nothing stands of the plan yet"
    open_ = {
        key: each
        for key, each in state.work.items()
        if each.flight or (_waits(each) and each.subtask in plan.subtasks)
    }
    left = [each for each in plan.subtasks if each.id not in state.early.begun]
    work = Work(open_ | {each.id: begin_subtask(state, each) for each in left})
    return replace(state, plan=plan, phase="working", work=work)


def _waits(progress: Progress) -> bool:
    return progress.finding is None and progress.stage == "work"


def may_start(state: State, move: Started) -> bool:
    """True if the cap pays for it, and it is one of the early starts that there may be, or asks
    again, in the same words, for what was lost.
    """
    begun = state.early.begun.get(move.subtask_id)
    if begun is None and len(state.early.begun) >= gathering.most_early(state):
        return False
    return (begun is None or _asked(begun) == _asked(move)) and _can_pay(state, move)


def _can_pay(state: State, move: Started) -> bool:
    """True if the cap also pays for another plan, and a call like it for each subtask that this may
    have: all that was started may be taken back.
    """
    amount, limits = move.amount, state.goal.limits
    calls = max(amount.calls, 1)
    one = Amount(amount.dollars / calls, 1, amount.tokens // calls)
    return state.ledger.fits(
        amount + one * limits.subtasks + state.ledger.reserved[state.early.call]
    )


def begin(state: State, move: Started) -> State:
    subtask = _asked(move).subtask
    early = replace(state.early, begun={**state.early.begun, subtask.id: move})
    progress = state.work.get(subtask.id) or begin_subtask(state, subtask)
    work = Work({**state.work, subtask.id: progress})
    return replace(state, early=early, work=work)


def _asked(move: Started) -> WorkMaterial:
    material = move.goal.work if isinstance(move, StartAgent) else move.material
    assert isinstance(material, WorkMaterial), "only work starts early"
    return material


def quote_errors(state: State) -> str:
    """Return in a line why the last plan could not be used."""
    said = one_line(group_lines(state.plan_errors))
    return said if len(said) <= MOST_QUOTED else f"{said[:MOST_QUOTED]}…"


def why_otherwise(state: State) -> str:
    """Return why a valid plan may have otherwise what was started for it."""
    if state.plan_errors:
        before = f"the plan before could not be used ({quote_errors(state)})"
        return f"{before}, and the next asks otherwise"
    if state.numbers.get("plan", 0) > 1:
        return "the plan before did not come whole, and the next asks otherwise"
    return "the whole plan asks otherwise"


def end_writing(state: State, why: str) -> State:
    """Return the state in which no plan is being written any more. `why`: why the plan may have
    otherwise what was started; what a stop took back before keeps its own reason.
    """
    why = why if state.early.begun else state.early.why
    return replace(state, early=replace(state.early, call="", plan=None, why=why))


def join(state: State, begun: Work) -> State:
    """Hand a plan what was started for it; take back what it would not have asked so."""
    early = state.early
    state = replace(state, early=replace(early, begun={}))
    for key, progress in begun.items():
        fresh = state.work.get(key)
        if fresh is None or not _is_same(state, fresh, early.begun[key]):
            state = _take_back(state, early.begun[key], progress)
            continue
        state = replace(state, early=replace(state.early, kept=state.early.kept + 1))
        own = replace(progress, subtask=fresh.subtask)
        state = replace(state, work=state.work.with_progress(key, own))
        if own.finding is not None:
            # Only now it is known who needs it.
            state = note_setback(state, own.finding)
    return state


def _is_same(state: State, fresh: Progress, move: Started) -> bool:
    """True if the plan would ask this in the same words. Its bounds, which are written last and
    only narrow, hold from the next call on; and how the answer is made is another call's task.
    """
    asked = _asked(move)
    untold = {name: getattr(asked.subtask, name) for name in UNTOLD}
    subtask = fresh.subtask.model_copy(update=untold)
    # What came back may have been malformed meanwhile, which is in the material of the next try.
    due = gathering.for_work(state, replace(fresh, subtask=subtask))
    about = due.about.model_copy(update={"answer": asked.about.answer})
    return due.model_copy(update={"broken": None, "about": about}) == asked


def drop(state: State) -> State:
    """Take back all that was started for a plan that nobody works on, as the run stops."""
    assert state.stop is not None, "a run that goes on waits for its plan"
    begun, why = state.early.begun, state.stop.why
    for key, progress in state.work.items():
        state = _take_back(state, begun[key], progress)
    early = replace(state.early, call="", plan=None, begun={}, why=why)
    return replace(state, early=early, work=Work())


def _take_back(state: State, move: Started, progress: Progress) -> State:
    early, key = state.early, progress.subtask.id
    purpose = f"work-{key}"
    state = paying.take_back(state, move, progress)
    state = replace(
        forget_losses(state, key),
        broken=without(state.broken, purpose),
        roomier=tuple(each for each in state.roomier if each != purpose),
    )
    flying = (progress.flight,) if progress.flight else ()
    early = replace(
        early,
        taken=(*early.taken, key),
        titles=(*early.titles, f"{key} ({progress.subtask.title})"),
        moves=(*early.moves, move.id),
        back=(*early.back, *flying),
        dollars=early.dollars + (progress.paid.dollars or 0),
    )
    return replace(state, early=early)


def is_anew(state: State, move: Started) -> bool:
    """True if what its subtask had begun with was taken back, and this is the next that it has."""
    number = move.call.number if isinstance(move, Ask) else move.number
    return f"{move.purpose}-{number - 1}" in state.early.moves


def settle(state: State, event: Landed) -> State:
    """Pay for what was taken back, and judge nothing of it."""
    id, before = event.move.id, state
    match event:
        case Answered(move=move, reply=reply):
            call = move.call.model_copy(update=OF_NOBODY)
            state = paying.pay(state, call, reply.bill)
        case Unanswered(move=move, trouble=trouble):
            call = move.call.model_copy(update=OF_NOBODY)
            bill = paying.bill_of_loss(trouble)
            freed = replace(state, ledger=state.ledger.release(id)) if bill is None else state
            state = freed if bill is None else paying.pay(state, call, bill)
            state = paying.note_no_answer(before, state, call, trouble.why)
        case AgentEnded(move=move, report=None):
            priced = bool(move.goal.model.prices)
            state = paying.book_lost(state, event, priced=priced, kind=TAKEN_BACK)
        case AgentEnded(move=move, report=report):
            assert report is not None
            share = paying.share_of(report.bill, TAKEN_BACK, move.tier)
            state = paying.book(state, id, report.bill, [share], report.tokens)
    paid = state.ledger.spent.dollars - before.ledger.spent.dollars
    back = tuple(each for each in state.early.back if each != id)
    early = replace(state.early, back=back, dollars=state.early.dollars + paid)
    return replace(state, early=early, flights=without(state.flights, id))


def abandon(state: State, move: Started, why: str) -> State:
    """Count at its reservation what was taken back and does not answer."""
    if isinstance(move, StartAgent):
        return settle(state, AgentEnded(move, None, why))
    return settle(state, Unanswered(move, Trouble("cancelled", why, Bill(calls=1))))


def notes(early: Early) -> Iterator[str]:
    """Yield what was taken back, and what was paid for it, once that is known."""
    if early.taken and not early.back:
        were = "were" if len(early.taken) > 1 else "was"
        yield (
            f"{', '.join(early.titles)} {were} started before the plan was whole, and taken back"
            f" ({format_price(early.dollars)}): {early.why}."
        )
