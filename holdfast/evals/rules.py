"""Decide which trials of an eval are run next, under its one cap. Pure.

A trial reserves its own cap before it starts, and what it has not spent is free again once it has
its mark. So all trials together never cost more than the eval may. With less left, trials go on one
by one, each under a cap of what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from temporalio.exceptions import ActivityError

from holdfast.contracts import Bill
from holdfast.contracts.evals import Asked, EvalGoal, EvalReport, Mark, Priced, Trial
from holdfast.contracts.replacing import replace
from holdfast.evals.tally import NOT_RUN
from holdfast.history.troubles import describe_error
from holdfast.ledger.ledger import Amount, Ledger

UNBOUND = 10**15
"""Calls and tokens: each run is bound by its own limits."""
LEAST_SHARE = 10
"""A trial is not begun with less than this part of its own cap: it would fail for want of money."""
WHY_NOT = {
    "cap": "the cap of the eval left no money for it",
    "cancelled": "the eval was cancelled before it began",
}


@dataclass(frozen=True)
class EvalState:
    goal: EvalGoal
    ledger: Ledger
    waiting: tuple[Trial, ...]
    open: Mapping[str, Trial] = field(default_factory=dict)
    """By the ids of their runs."""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    stopped: Literal["", "cap", "cancelled"] = ""

    @property
    def over(self) -> bool:
        return not (self.open or self.waiting)


def first_state(goal: EvalGoal) -> EvalState:
    marks = {each.run: each for each in goal.marks}
    ledger = Ledger(Amount(goal.dollars, UNBOUND, UNBOUND))
    for mark in goal.marks:
        # What was paid needs no room any more.
        ledger = replace(ledger, reserved={mark.run: Amount()}).settle(mark.run, _bill(mark))
    waiting = tuple(each for each in goal.trials if each.run not in marks)
    return EvalState(goal, ledger, waiting, marks=marks)


def next_goal(state: EvalState) -> EvalGoal:
    """Return the goal with which an eval goes on in a new history."""
    return state.goal.model_copy(update={"marks": tuple(state.marks.values())})


def start(state: EvalState) -> tuple[EvalState, tuple[Trial, ...]]:
    """Return the trials to start now, taken off. One that no money is left for is not run: with
    others open, their rest may do.
    """
    begun: list[Trial] = []
    while state.waiting and len(state.open) < state.goal.concurrency:
        trial, *rest = state.waiting
        left = state.goal.dollars - state.ledger.spent.dollars
        if not state.open and trial.cap > left >= trial.cap / LEAST_SHARE:
            trial = trial.model_copy(update={"cap": left})
        amount = Amount(trial.cap)
        if state.ledger.fits(amount):
            ledger = state.ledger.reserve(trial.run, amount)
            taken = {**state.open, trial.run: trial}
            state = replace(state, waiting=tuple(rest), open=taken, ledger=ledger)
            begun.append(trial)
        elif state.open:
            break
        else:
            state = _leave(replace(state, waiting=tuple(rest), stopped="cap"), trial, "cap")
    return state, tuple(begun)


def under_cap(state: EvalState, trial: Trial, asked: Asked) -> Asked | None:
    """Return what is asked, for a trial that was begun with less than its own cap; what its judges
    may cost stays as it is. None if that leaves it nothing.
    """
    whole = next(each.cap for each in state.goal.trials if each.run == trial.run)
    if trial.cap == whole:
        return asked
    dollars = asked.goal.limits.dollars - (whole - trial.cap)
    if dollars <= 0:
        return None
    limits = asked.goal.limits.model_copy(update={"dollars": dollars})
    goal = asked.goal.model_copy(update={"limits": limits})
    return asked.model_copy(update={"goal": goal})


def close(state: EvalState, mark: Mark) -> EvalState:
    """Take in the mark of an open trial, and pay for it."""
    return replace(
        state,
        open={run: each for run, each in state.open.items() if run != mark.run},
        marks={**state.marks, mark.run: mark},
        ledger=state.ledger.settle(mark.run, _bill(mark)),
    )


def _bill(mark: Mark) -> Bill:
    dollars = None if mark.dollars is None else mark.dollars + mark.judged
    return Bill(dollars=dollars, calls=1, assumed=mark.assumed)


def cancel(state: EvalState) -> EvalState:
    """Run nothing more; what is open gets its mark."""
    waiting = state.waiting
    state = replace(state, waiting=(), stopped="cancelled")
    for trial in waiting:
        state = _leave(state, trial, "cancelled")
    return state


def _leave(state: EvalState, trial: Trial, why: Literal["cap", "cancelled"]) -> EvalState:
    return replace(state, marks={**state.marks, trial.run: not_run(trial, WHY_NOT[why])})


def not_run(trial: Trial, why: str) -> Mark:
    """Return the mark of a trial that was not run."""
    return Mark(run=trial.run, suite=trial.suite, case=trial.case, status=NOT_RUN, wrong=(why,))


def lost(trial: Trial, error: ActivityError) -> Mark:
    """Return the mark of a trial of which nobody knows what it cost: all that it may."""
    return Mark(
        run=trial.run,
        suite=trial.suite,
        case=trial.case,
        status="lost",
        wrong=(describe_error(error),),
        dollars=trial.cap,
        assumed=trial.cap,
    )


def not_priced(trial: Trial, error: ActivityError) -> Priced:
    return Priced(suite=trial.suite, case=trial.case, why=describe_error(error))


def report(state: EvalState) -> EvalReport:
    """Return what has come of the eval so far, in the order of its trials."""
    ledger, marks = state.ledger, state.marks
    ordered = tuple(marks[each.run] for each in state.goal.trials if each.run in marks)
    return EvalReport(
        name=state.goal.name,
        marks=ordered,
        trials=len(state.goal.trials),
        stopped=state.stopped,
        dollars=None if ledger.unpriced else ledger.spent.dollars,
        assumed=ledger.assumed,
        judged=sum((each.judged for each in ordered), Decimal(0)),
    )
