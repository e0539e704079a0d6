"""`reset`: free a run whose next step can never be taken, by going back to before what is wrong."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHistory,
)
from temporalio.service import RPCError, RPCStatusCode

from cli.connection import with_connection
from cli.exits import Code, Exit
from cli.invocation import STARTER, to_type
from cli.options import Embedded, OpenRunId
from cli.reading import STUCK_ATTEMPTS, no_such_run
from cli.screen.streams import ERR, Safe, ask, at_terminal, say, typed
from deployment import undoing
from deployment.settings import Settings
from deployment.undoing import Fault, Undoing
from intake.connection import Connection
from intake.launch import login
from orchestrator.contracts import Lost, Undone
from orchestrator.money.ledger import Amount, Ledger
from orchestrator.recorded.signals import RESET
from orchestrator.rules.timers import moment
from orchestrator.views.amounts import at_most, calls

SERVER_SECONDS = 10.0
"""How long the server may take for each of the two: to write down what is undone, and to reset."""


@dataclass(frozen=True)
class Stuck:
    """An open run, why it does not go on, and where it would go on from."""

    run_id: str
    execution: str
    history: WorkflowHistory
    point: int
    undone: tuple[Undoing, ...]


def command(
    run_id: OpenRunId,
    event: Annotated[
        int,
        typer.Option(
            "--event",
            metavar="N",
            help="Go back to this WorkflowTaskCompleted event, also if the run is not stuck.",
        ),
    ] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    embedded: Embedded = False,
) -> int:
    """Free a run that is stuck: its history cannot be followed, or a result in it is lost.

    Shows why, what would be asked again and what that had cost, and asks before it does it.
    """
    return with_connection(
        Settings(), embedded, lambda connection: run(connection, run_id, event, yes=yes)
    )


async def run(connection: Connection, run_id: str, event: int, *, yes: bool) -> int:
    """0 once the run goes on; 2 when there is nothing to free, or nobody agreed to it."""
    stuck = await _examined(connection, run_id, event)
    _show(stuck)
    if not yes and not await _agreed(run_id):
        return Code.REFUSED
    # What was in flight may have answered while somebody read.
    await _reset(connection, await _again(connection, stuck))
    say(f"{run_id} goes on from event {stuck.point}: {to_type('watch', run_id)}", "green")
    return Code.COMPLETE


# ---------------------------------------------------------------- what happened


async def _examined(connection: Connection, run_id: str, event: int) -> Stuck:
    """Say what is wrong, and find the point. Exit where there is nothing to free."""
    description, history = await _open(connection, run_id)
    fault = await undoing.fault_of(history, connection.store)
    say(_state(run_id, description, history))
    if fault is not None:
        say(f"Why: {fault.why}")
    point = (
        _by_hand(history, event)
        if event
        else _found(run_id, _failures(description, history), fault)
    )
    undone = await _undone(connection, description, history, point)
    return Stuck(run_id, description.run_id or "", history, point, undone)


async def _again(connection: Connection, stuck: Stuck) -> Stuck:
    """The same, as it stands now. Exit if the run has closed, or somebody else has reset it."""
    description, history = await _open(connection, stuck.run_id)
    if description.run_id != stuck.execution:
        raise Exit(f"{stuck.run_id}: somebody else has reset it meanwhile")
    undone = await _undone(connection, description, history, stuck.point)
    return replace(stuck, history=history, undone=undone)


async def _undone(
    connection: Connection,
    description: WorkflowExecutionDescription,
    history: WorkflowHistory,
    point: int,
) -> tuple[Undoing, ...]:
    converter = connection.client.data_converter
    return await undoing.undone_by(history.events, point, converter, _under_way(description))


async def _open(
    connection: Connection, run_id: str
) -> tuple[WorkflowExecutionDescription, WorkflowHistory]:
    try:
        description = await connection.handle(run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise
    if description.status is not WorkflowExecutionStatus.RUNNING:
        raise Exit(f"run {run_id} is over; a new run goes on from it: {to_type('fork', run_id)}")
    teams = [each.workflow_id for each in description.raw_description.pending_children]
    if teams:
        raise Exit(
            f"{run_id}: its team {teams[0]} is at work, and a reset would start another of that"
            f" name; end it first: {to_type('cancel', teams[0])}"
        )
    handle = connection.client.get_workflow_handle(run_id, run_id=description.run_id)
    return description, await handle.fetch_history()


def _state(run_id: str, description: WorkflowExecutionDescription, history: WorkflowHistory) -> str:
    failed = _failures(description, history)
    if not failed:
        return f"{run_id} is not stuck: no step of it has failed."
    why = undoing.last_failure(history.events)
    often = f"{failed} time{'s' * (failed != 1)}"
    return f"{run_id}: its next step failed {often}{f'; the first time: {why}' * bool(why)}"


def _failures(description: WorkflowExecutionDescription, history: WorkflowHistory) -> int:
    """How often the present workflow task was tried in vain; the server counts from one again when
    something comes in meanwhile.
    """
    tried = description.raw_description.pending_workflow_task.attempt - 1
    return max(tried, 1 if undoing.last_failure(history.events) else 0)


def _found(run_id: str, failed: int, fault: Fault | None) -> int:
    if fault is None and failed < STUCK_ATTEMPTS:
        raise Exit(f"{run_id}: nothing to free; today's code follows its history")
    if fault is None:
        raise Exit(
            f"{run_id}: today's code follows all that is recorded, so a reset would not help:"
            " its next step fails until a worker with a fixed version takes it;"
            f" going back by hand all the same: {to_type('reset', run_id)} --event N"
        )
    if not fault.point:
        raise Exit(f"{run_id}: no workflow task was completed before that; start the run anew")
    if not failed:
        raise Exit(
            f"{run_id}: not stuck yet, but whoever takes it over will be; free it with:"
            f" {to_type('reset', run_id)} --event {fault.point}"
        )
    return fault.point


def _by_hand(history: WorkflowHistory, event: int) -> int:
    known = undoing.points(history.events)
    if event not in known:
        listed = ", ".join(str(each) for each in known[-20:])
        raise Exit(f"--event {event}: no WorkflowTaskCompleted event; the latest: {listed}")
    return event


def _under_way(description: WorkflowExecutionDescription) -> frozenset[str]:
    pending = description.raw_description.pending_activities
    return frozenset(each.activity_id for each in pending if each.HasField("last_started_time"))


# ---------------------------------------------------------------- what it would cost


def _show(stuck: Stuck) -> None:
    """What is asked again, and what that had cost."""
    say(f"A reset goes back to event {stuck.point}; the answers up to there stay.")
    if not stuck.undone:
        say("Nothing was done after it.")
    else:
        ERR.print(Safe(_table(stuck.undone)))
    say(_paid(Ledger(Amount(), lost=_lost(stuck.undone))))
    flying = [each.id for each in stuck.undone if each.in_flight]
    if flying:
        say(
            f"In flight, and cut: {', '.join(flying)}; what of it may have been paid counts at its"
            " reservation."
        )
    orders = undoing.orders_after(stuck.history.events, stuck.point)
    if orders:
        say(f"Told to the run since then, and told again: {', '.join(orders)}.")


def _paid(lost: Ledger) -> str:
    if not lost.paid.calls:
        return "Nothing was paid after that point."
    dollars = lost.paid.dollars if lost.all_priced else None
    return (
        f"Paid after that point: {at_most(dollars, lost.all_assumed)}, {calls(lost.paid.calls)}."
        " It stays in the run's bill. An answer that the worker's journal still has is not paid"
        " again; any other is, within the cap."
    )


def _lost(undone: tuple[Undoing, ...]) -> tuple[Lost, ...]:
    return tuple(each.lost for each in undone if each.lost is not None)


def _table(undone: tuple[Undoing, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("done again", no_wrap=True)
    table.add_column("tier", no_wrap=True)
    table.add_column("had cost", justify="right", no_wrap=True)
    table.add_column("")
    for each in undone:
        cost = at_most(each.bill.dollars, each.bill.assumed) if each.bill.calls else "nothing"
        table.add_row(
            Text(each.id), Text(each.tier or "no model"), cost, "in flight" * each.in_flight
        )
    return table


async def _agreed(run_id: str) -> bool:
    if not at_terminal():
        say(f"Nothing was done; this does it: {to_type('reset', run_id)} --yes")
        return False
    ask("Reset it? [y/N]")
    try:
        agreed = (await typed()).lower() in ("y", "yes")
    except EOFError:
        agreed = False
    if not agreed:
        say("Nothing was done.")
    return agreed


# ---------------------------------------------------------------- doing it


async def _reset(connection: Connection, stuck: Stuck) -> None:
    """Write down what is undone, then reset: the run as it goes on reads that before all else."""
    client = connection.client
    handle = client.get_workflow_handle(stuck.run_id, run_id=stuck.execution)
    limit = timedelta(seconds=SERVER_SECONDS)
    told = Undone(
        execution=stuck.execution, at=_now(stuck.history), lost=_lost(stuck.undone), by=login()
    )
    request = ResetWorkflowExecutionRequest(
        namespace=connection.target.namespace,
        workflow_execution=WorkflowExecution(workflow_id=stuck.run_id, run_id=stuck.execution),
        reason=f"freed by {login() or 'a person'} with {STARTER} reset",
        workflow_task_finish_event_id=stuck.point,
        request_id=str(uuid.uuid4()),
        reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE,
    )
    try:
        await handle.signal(RESET, told, rpc_timeout=limit)
        try:
            await client.workflow_service.reset_workflow_execution(request, timeout=limit)
        except RPCError:
            # The run goes on as it is: what was said last counts.
            withdrawn = told.model_copy(update={"lost": (), "withdrawn": True})
            await handle.signal(RESET, withdrawn, rpc_timeout=limit)
            raise
    except RPCError as error:
        raise Exit(f"{stuck.run_id}: not reset: {error.message}", Code.FAILED) from error
    if undoing.CANCEL in undoing.orders_after(stuck.history.events, stuck.point):
        # The server tells the execution that goes on of Signals and Updates, of this it does not.
        await connection.handle(stuck.run_id).cancel()


def _now(history: WorkflowHistory) -> datetime:
    """By this machine's clock, and not before anything that is recorded."""
    last = moment(history.events[-1].event_time.ToNanoseconds())
    return max(datetime.now(UTC), last)
