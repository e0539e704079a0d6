"""A worker's part of evals: it opens trials, prices them, and marks the runs that they were."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.activities import activities_of
from holdfast.activities.evals import Evals
from holdfast.activities.wiring import Served
from holdfast.client.ended import read_end
from holdfast.client.reading import Reader
from holdfast.contracts import Briefing, Goal
from holdfast.contracts.errors import BadGoal
from holdfast.contracts.evals import (
    Answered,
    Asked,
    Grading,
    Mark,
    Opened,
    Priced,
    Scored,
    Trial,
)
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.evals import pricing, single
from holdfast.evals.marking import mark_outcome, with_grades
from holdfast.evals.outcomes import Outcome, of_answer, of_report
from holdfast.intake.connection import Connection
from holdfast.ledger.ranges import range_of
from holdfast.temporal.connection import Target

OVER = (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED)
"""Ends of a run that is not started again."""
Prepare = Callable[[Goal], Awaitable[Briefing]]


def with_evals(served: Served, settings: Settings, target: Target) -> Served:
    """Return what a worker serves, with what evals need of it."""
    prepare = next(each for each in served.preparing if each.__name__ == "prepare")
    examiner = Examiner(settings, target, prepare)
    more = activities_of(Evals(examiner.open, examiner.price, examiner.score, examiner.grade))
    return replace(served, preparing=[*served.preparing, *more])


@dataclass(frozen=True)
class Examiner:
    """Opens trials and marks them, as a client of the server that this worker serves."""

    settings: Settings
    target: Target
    prepare: Prepare

    async def open(self, trial: Trial) -> Opened:
        """Return what a trial is started with."""
        return Opened(asked=await self._asked(trial), closed=await self._is_there(trial.run))

    async def price(self, trial: Trial) -> Priced:
        """Return what a trial is expected to cost, or why it cannot be prepared."""
        asked = await self._asked(trial)
        named = Priced(suite=trial.suite, case=trial.case)
        if asked.case.tool:
            return named
        started = datetime.now(UTC)
        try:
            briefing = await self.prepare(asked.goal)
        except (BadGoal, ApplicationError) as error:
            return named.model_copy(update={"why": " ".join(str(error).split())})
        state, _ = single.begin(asked.goal, trial.run, trial.run, started)
        state = single.prepared(state, briefing)
        judge = pricing.price_judge(state, asked) if asked.goal.use_models else Decimal(0)
        found = range_of(*pricing.price_case(state, asked))
        return named.model_copy(update={**found, "judge": judge})

    async def score(self, trial: Trial) -> Scored:
        """Return the mark by code of a trial that has run."""
        asked = await self._asked(trial)
        return mark_outcome(trial, asked, await self._outcome(trial, asked))

    async def grade(self, grading: Grading) -> Mark:
        """Return the mark with what judges decided."""
        answers = [await self._answer(run, grading.cap) for run in grading.runs]
        return with_grades(grading.mark, answers)

    async def _asked(self, trial: Trial) -> Asked:
        kept = await self._connection.store.get(trial.asked)
        return Asked.model_validate_json(kept)

    async def _is_there(self, run: str) -> bool:
        """True if a run is open, or has ended by itself."""
        try:
            found = await self._connection.handle(run).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return found.status is WorkflowExecutionStatus.RUNNING or found.status in OVER

    async def _outcome(self, trial: Trial, asked: Asked) -> Outcome:
        # It may have begun with less than its own cap.
        most = min(trial.cap, asked.goal.limits.dollars)
        if asked.case.form != "run":
            answered = await self._answer(trial.run, most)
            text = ""
            if answered.text:
                text = (await self._connection.store.get(answered.text)).decode()
            return of_answer(answered, asked.case, text)
        handle = self._connection.handle(trial.run)
        # How it failed, its history tells.
        with suppress(WorkflowFailureError):
            return of_report(await handle.result())
        ended = read_end(trial.run, await Reader(self._connection, trial.run).look())
        if ended.report is None:
            # What was refused has paid nothing; of what cannot be read nobody knows.
            cap = Decimal(0) if isinstance(ended.failure, Refused) else most
            return Outcome(status="failed", why=ended.reason, dollars=cap, assumed=cap)
        return of_report(ended.report)

    async def _answer(self, run: str, cap: Decimal) -> Answered:
        """Return what a single call brought; where nobody knows, at all that it may have cost."""
        client = self._connection.client
        handle: WorkflowHandle[Any, Answered] = client.get_workflow_handle(
            run, result_type=Answered
        )
        try:
            return await handle.result()
        except WorkflowFailureError as error:
            return single.closed(error.cause, cap)

    @property
    def _connection(self) -> Connection:
        return Connection(self.settings, self.target, activity.client())
