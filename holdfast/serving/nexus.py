"""Runs as a Nexus service, for callers on other queues and in other namespaces:

runs = workflow.create_nexus_client(service=Runs, endpoint="holdfast")
report = await runs.execute_operation(Runs.start, RunRequest(goal="..."))
"""

from __future__ import annotations

import hashlib

import nexusrpc
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from pydantic import BaseModel, ConfigDict
from temporalio import nexus

from holdfast.client.holdfast import Holdfast
from holdfast.client.runs import Run
from holdfast.contracts import Order, Report
from holdfast.contracts.view import RunView
from holdfast.deployment.settings import Settings
from holdfast.errors import HoldfastError, Unreachable
from holdfast.intake.connection import Connection
from holdfast.intake.launch import prepare_start
from holdfast.intake.requests import RunRequest
from holdfast.temporal.connection import Target
from holdfast.workflows.supervisor import SupervisorWorkflow


class OrderFor(BaseModel):
    """An order, and the run that it is for."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    command: str
    """As the command line has it: approve, reject, answer, …"""
    order: Order = Order()


@nexusrpc.service(name="holdfast")
class Runs:
    """Start runs, look at them, and tell them what to do."""

    start: nexusrpc.Operation[RunRequest, Report]
    """Starts a run; the operation ends when it does, with its report."""
    look: nexusrpc.Operation[str, RunView]
    """Returns the run of an id as it stands."""
    order: nexusrpc.Operation[OrderFor, str]
    """Gives an order, and says what came of it."""


@service_handler(service=Runs)
class RunsHandler:
    """Serves `Runs` in a worker, for runs on that worker's queue."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self._target = target
        self._settings = settings

    def _holdfast(self) -> Holdfast:
        return Holdfast.on(Connection(self._settings, self._target, nexus.client()))

    @nexus.workflow_run_operation
    async def start(
        self, ctx: nexus.WorkflowRunOperationContext, request: RunRequest
    ) -> nexus.WorkflowHandle[Report]:
        """Start a run. The same request of Nexus again is the same run."""
        hf = self._holdfast()
        try:
            goal, shown = await prepare_start(hf.connection, await hf.goal_of(request))
        except HoldfastError as error:
            raise _failed(error) from error
        once = hashlib.sha256(ctx.request_id.encode()).hexdigest()[:20]
        return await ctx.start_workflow(
            SupervisorWorkflow.run,
            goal,
            id=request.id or f"nexus-{once}",
            task_queue=self._target.task_queue,
            **shown,
        )

    @sync_operation
    async def look(self, _ctx: StartOperationContext, run_id: str) -> RunView:
        try:
            return await Run(self._holdfast().connection, run_id).look()
        except HoldfastError as error:
            raise _failed(error) from error

    @sync_operation
    async def order(self, _ctx: StartOperationContext, given: OrderFor) -> str:
        try:
            run = Run(self._holdfast().connection, given.run_id)
            return await run.order(given.command, given.order)
        except HoldfastError as error:
            raise _failed(error) from error


def _failed(error: HoldfastError) -> nexusrpc.HandlerError:
    """Return what a caller is told; only what may pass by itself is tried again."""
    kind = nexusrpc.HandlerErrorType
    passes = isinstance(error, Unreachable)
    type = kind.UNAVAILABLE if passes else kind.BAD_REQUEST
    return nexusrpc.HandlerError(str(error), type=type, retryable_override=passes)
