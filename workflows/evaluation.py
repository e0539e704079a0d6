"""A run of runs: the trials of an eval, so many at once, under one cap.

`holdfast.evals.rules` decides which trial is run next; this class starts it, has what came of it
marked, and asks judges where code cannot decide. A trial whose run is there already is only marked:
so an eval that is started again under its id pays nothing twice.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ChildWorkflowError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

from holdfast.contracts.evals import (
    Asked,
    EvalGoal,
    EvalReport,
    Grading,
    Mark,
    Priced,
    Trial,
)
from holdfast.evals import rules
from holdfast.rendering.evals import standing
from holdfast.workflows import scheduling
from holdfast.workflows.supervisor import SupervisorWorkflow
from holdfast.workflows.trial import TrialWorkflow


@workflow.defn
class EvaluationWorkflow:
    """Run trials and mark them. Its name stands in histories."""

    @workflow.init
    def __init__(self, goal: EvalGoal) -> None:
        self._state = rules.first_state(goal)
        self._begun = False
        self._inbox: list[Mark] = []
        self._open: dict[str, asyncio.Task[None]] = {}
        self._started: dict[str, ChildWorkflowHandle[Any, Any]] = {}
        """The runs in flight, which a cancellation cancels, by their ids."""

    @workflow.run
    async def run(self, goal: EvalGoal) -> EvalReport:
        """Return the marks of all trials, also where the cap or a person stopped it."""
        if goal.only_prices:
            return await self._price(goal)
        self._go_on()
        while not self._state.over:
            await self._next_mark()
            self._go_on()
        return self.report()

    @workflow.query
    def report(self) -> EvalReport:
        """Return what has come of it so far."""
        return rules.report(self._state)

    async def _price(self, goal: EvalGoal) -> EvalReport:
        """Prepare and price each case once. Nothing is asked."""
        at_once = asyncio.Semaphore(goal.concurrency)

        async def price(trial: Trial) -> Priced:
            async with at_once:
                try:
                    return await scheduling.price_trial(trial)
                except ActivityError as error:
                    return rules.not_priced(trial, error)

        once = {(each.suite, each.case): each for each in goal.trials}
        tasks = [asyncio.create_task(price(trial)) for trial in once.values()]
        prices = tuple([await each for each in tasks])
        return EvalReport(name=goal.name, trials=len(goal.trials), prices=prices)

    def _go_on(self) -> None:
        """Start what may be started. A history that grows too long is left for a new one, as soon
        as nothing is open.
        """
        if not (self._begun and workflow.info().is_continue_as_new_suggested()):
            self._state, begun = rules.start(self._state)
            self._begun = self._begun or bool(begun)
            for trial in begun:
                self._open[trial.run] = asyncio.create_task(self._carry_out(trial), name=trial.run)
        elif self._state.waiting and not self._state.open:
            workflow.continue_as_new(rules.next_goal(self._state))
        workflow.set_current_details(standing(self.report()))

    async def _next_mark(self) -> None:
        try:
            await workflow.wait_condition(lambda: bool(self._inbox))
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is None or self._state.stopped == "cancelled":
                raise  # this worker only drops it from its cache
            self._state = rules.cancel(self._state)
            for child in self._started.values():
                child.cancel()
            return
        self._state = rules.close(self._state, self._inbox.pop(0))

    async def _carry_out(self, trial: Trial) -> None:
        try:
            opened = await scheduling.open_trial(trial)
            asked = rules.under_cap(self._state, trial, opened.asked)
            if self._state.stopped == "cancelled" and not opened.closed:
                mark = rules.not_run(trial, rules.WHY_NOT["cancelled"])
            elif asked is None and not opened.closed:
                mark = rules.not_run(trial, rules.WHY_NOT["cap"])
            else:
                mark = await self._marked(trial, asked or opened.asked, closed=opened.closed)
        except ActivityError as error:
            mark = rules.lost(trial, error)
        self._inbox.append(mark)
        del self._open[trial.run]

    async def _marked(self, trial: Trial, asked: Asked, *, closed: bool) -> Mark:
        if not closed:
            await self._run(asked, trial.run)
        scored = await scheduling.score_trial(trial)
        if not scored.judging or self._state.stopped == "cancelled":
            return scored.mark
        for question in scored.judging:
            await self._run(question.asked, question.run)
        runs = tuple(each.run for each in scored.judging)
        caps = max(each.asked.goal.limits.dollars for each in scored.judging)
        return await scheduling.grade_trial(Grading(mark=scored.mark, runs=runs, cap=caps))

    async def _run(self, asked: Asked, run: str) -> None:
        """Start a run, and wait until it is closed. One of this id may be there already."""
        # How it ended is read from what it closed with.
        with suppress(WorkflowAlreadyStartedError, ChildWorkflowError):
            child: ChildWorkflowHandle[Any, Any]
            if asked.case.form == "run":
                child = await scheduling.start_trial(SupervisorWorkflow.run, asked.goal, run, asked)
            else:
                child = await scheduling.start_trial(TrialWorkflow.run, asked, run, asked)
            self._started[run] = child
            if self._state.stopped == "cancelled":
                child.cancel()
            try:
                await child
            finally:
                del self._started[run]
