"""`cancel`: end a run early, or one subtask of it; waits until what was in flight has settled."""

from __future__ import annotations

from typing import Any

from temporalio.client import (
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared import orders
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.follow import display, watch
from holdfast.cli.shared.options import Embedded, OpenRunId, SubtaskId
from holdfast.client.ended import is_damaged, read_end
from holdfast.client.reading import agent_of, no_such_run
from holdfast.contracts import Order
from holdfast.contracts.evals import EVALUATION
from holdfast.contracts.search import WORKFLOW
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.history.executions import AGENT
from holdfast.intake.connection import Connection
from holdfast.intake.login import login


def command(run_id: OpenRunId, subtask: SubtaskId = "", embedded: Embedded = False) -> int:
    """End a run early, or one subtask of it; returns when every call in flight has settled."""
    order = Order(subtask_id=subtask)
    return with_connection(
        Settings(),
        embedded,
        lambda connection: (
            orders.run(connection, run_id, "cancel_subtask", order)
            if subtask
            else run(connection, run_id)
        ),
    )


async def run(connection: Connection, run_id: str) -> int:
    """Return 0 when the run is closed, cancelled now or ended before. Exit if it is stuck: the
    cancel stands and is carried out once the run is free.
    """
    handle = connection.handle(run_id)
    try:
        before = await handle.describe()
        an_agent = before.workflow_type == AGENT
        if not an_agent and before.workflow_type not in (WORKFLOW, EVALUATION):
            raise no_such_run(run_id)
        if an_agent and before.status is not WorkflowExecutionStatus.RUNNING:
            raise Exit(agent_of(before))
        if before.workflow_type == EVALUATION:
            return await _cancel_eval(handle, before)
        if before.status is not WorkflowExecutionStatus.RUNNING:
            say(f"Run {run_id} had already closed. Its report: {to_type('show', run_id)}")
            return Code.COMPLETE
        await handle.cancel(reason=login())
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise
    say(f"Cancelling {run_id}; calls in flight settle first.")
    if an_agent:
        # A run that is stuck takes no order, and is only reset once its agents are over.
        say(agent_of(before))
        return Code.COMPLETE
    with display() as shown:
        look = await watch(connection, run_id, shown, lambda _: False, while_stuck=False)
    if not look.closed:
        raise Exit(f"The cancel of {run_id} waits until it is free: {look.stuck}", Code.FAILED)
    ended = read_end(run_id, look)
    if is_damaged(look):
        say(f"It has closed: {ended.reason}")
    elif ended.report and ended.report.status == "cancelled":
        say(f"Cancelled. What it had found: {to_type('show', run_id)}")
    else:
        say(f"It ended before the cancel arrived. Its report: {to_type('show', run_id)}")
    return Code.COMPLETE


async def _cancel_eval(
    handle: WorkflowHandle[Any, Any], before: WorkflowExecutionDescription
) -> int:
    if before.status is not WorkflowExecutionStatus.RUNNING:
        say(f"Eval {handle.id} had already closed.")
        return Code.COMPLETE
    await handle.cancel(reason=login())
    say(f"Cancelling {handle.id}; calls in flight settle first. The same --id goes on with it.")
    return Code.COMPLETE
