"""One time of a schedule: it starts a run and stays until that has ended, so that Temporal knows
what overlaps.
"""

from __future__ import annotations

from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)

from holdfast.contracts.schedules import Due, Outcome, Scheduled
from holdfast.state.moves import Notify
from holdfast.workflows import scheduling
from holdfast.workflows.notify import NotifyWorkflow
from holdfast.workflows.supervisor import SupervisorWorkflow


@workflow.defn
class ScheduledWorkflow:
    """Start the run that a schedule asks for. Its name stands in histories and in schedules."""

    @workflow.run
    async def run(self, scheduled: Scheduled) -> Outcome:
        """Return what became of it, which also stands in the memo. One that could not be started
        fails.
        """
        due = await scheduling.prepare_scheduled(scheduled)
        outcome = await self._run(due)
        workflow.upsert_memo(outcome.model_dump())
        if outcome.status == "refused":
            raise ApplicationError(outcome.why, type="Refused", non_retryable=True)
        return outcome

    async def _run(self, due: Due) -> Outcome:
        if due.notice is not None:
            await scheduling.start_notifier(NotifyWorkflow.run, Notify(due.notice))
        if due.goal is None:
            return due.outcome
        try:
            child = await scheduling.start_scheduled(SupervisorWorkflow.run, due)
        except WorkflowAlreadyStartedError:
            taken = {"run": "", "status": "refused", "why": "its id is in use by another run"}
            return due.outcome.model_copy(update=taken)
        workflow.upsert_memo(due.outcome.model_dump())
        # How it ended is read from what lists know of it.
        with suppress(ChildWorkflowError):
            await child
        return await scheduling.read_outcome(due.outcome)
