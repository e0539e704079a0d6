"""`reset`: free a run whose next step can never be taken, by going back to before what is wrong."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    WorkflowHistory,
)
from temporalio.service import RPCError

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import ERR, agrees, at_terminal, draw, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded, OpenRunId
from holdfast.cli.shared.stuck import Stuck, examine, examine_again
from holdfast.contracts import Lost, Undone, seal_word
from holdfast.contracts.signals import RESET
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.login import login
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.rendering.amounts import at_most, calls
from holdfast.replaying import undoing
from holdfast.replaying.undoing import Undoing
from holdfast.rules.timers import to_datetime

SERVER_SECONDS = 10.0
"""How long the server may take for each of the two: to write down what is undone, and to reset."""


def command(
    run_id: OpenRunId,
    event: Annotated[
        int,
        typer.Option(
            "--event",
            metavar="N",
            min=0,
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
    """Return 0 once the run goes on, 2 if there is nothing to free or nobody agreed."""
    stuck = await examine(connection, run_id, event)
    _show(stuck)
    if not yes and not await _confirm(run_id):
        return Code.REFUSED
    # What was in flight may have answered while somebody read.
    await _reset(connection, await examine_again(connection, stuck))
    say(f"{run_id} goes on from event {stuck.point}: {to_type('watch', run_id)}", "bold")
    return Code.COMPLETE


# ---------------------------------------------------------------- what it would cost


def _show(stuck: Stuck) -> None:
    """Print what is asked again, and what it had cost."""
    say(f"A reset goes back to event {stuck.point}; the answers up to there stay.")
    if not stuck.undone:
        say("Nothing was done after it.")
    else:
        draw(_table(stuck.undone), ERR)
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


async def _confirm(run_id: str) -> bool:
    if not at_terminal():
        say(f"Nothing was done; this does it: {to_type('reset', run_id)} --yes")
        return False
    agreed = await agrees("Reset it?")
    if not agreed:
        say("Nothing was done.")
    return agreed


# ---------------------------------------------------------------- doing it


async def _reset(connection: Connection, stuck: Stuck) -> None:
    """Record in the run what is undone, then reset it: the run reads that first when it goes on."""
    client = connection.client
    handle = client.get_workflow_handle(stuck.run_id, run_id=stuck.execution)
    limit = timedelta(seconds=SERVER_SECONDS)
    word = secrets.token_hex()
    told = Undone(
        execution=stuck.execution,
        at=_now(stuck.history),
        lost=_lost(stuck.undone),
        by=login(),
        seal=seal_word(word),
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
            # The run goes on as it is.
            taken_back = {"lost": (), "withdrawn": True, "seal": "", "word": word}
            withdrawn = told.model_copy(update=taken_back)
            await handle.signal(RESET, withdrawn, rpc_timeout=limit)
            raise
    except RPCError as error:
        raise Exit(f"{stuck.run_id}: not reset: {error.message}", Code.FAILED) from error
    if undoing.CANCEL in undoing.orders_after(stuck.history.events, stuck.point):
        # The server tells the execution that goes on of Signals and Updates, of this it does not.
        await connection.handle(stuck.run_id).cancel()


def _now(history: WorkflowHistory) -> datetime:
    """Return this machine's time, but nothing earlier than the last recorded event."""
    last = to_datetime(history.events[-1].event_time.ToNanoseconds())
    return max(datetime.now(UTC), last)
