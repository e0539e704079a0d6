"""Telling a run what to do: an Order as an Update, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.invocation import STARTER, to_type
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.reading import Reader, no_such_run
from holdfast.contracts import Order
from holdfast.intake.connection import Connection
from holdfast.intake.login import login
from holdfast.state.run import State

PATIENCE_SECONDS = 3.0
"""After which the waiting itself is worth a line."""
POLL_SECONDS = 0.4
ANSWER_SECONDS = 60.0
"""How long a run may take to say what came of a command; ending a subtask waits for its call."""


async def run(connection: Connection, run_id: str, update: str, order: Order) -> int:
    """Send an order to a run and print the outcome. Exit with the reason if it was refused."""
    say(f"{run_id}: {await send(connection, run_id, update, order)}", "bold")
    return Code.COMPLETE


async def send(connection: Connection, run_id: str, update: str, order: Order) -> str:
    """Send an order to a run; return the outcome. Exit if the run refuses it, is closed or unknown,
    or does not answer.
    """
    order = order.model_copy(update={"by": login()})
    handle = connection.handle(run_id)
    asking = asyncio.ensure_future(_send(handle, update, order))
    try:
        await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
        done = asking.done()
        if not done:
            say(f"Waiting for {run_id} to answer …", "dim")
            done = await _wait_for_answer(connection, run_id, asking)
        if not done:
            raise Exit(
                f"{run_id}: no answer within {ANSWER_SECONDS:.0f} s;"
                f" {STARTER} doctor says whether a worker runs",
                Code.UNREACHABLE,
            )
        said: str = asking.result()
        return said
    except WorkflowUpdateFailedError as error:
        why = error.cause.message if isinstance(error.cause, ApplicationError) else error.cause
        raise Exit(f"{run_id}: refused: {why}") from error
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise await _explain_absence(connection, run_id) from error
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _wait_for_answer(
    connection: Connection, run_id: str, asking: asyncio.Future[str]
) -> bool:
    """True if a run answers in time. Exit as soon as it is known that it cannot."""
    reader = Reader(connection, run_id)
    until = asyncio.get_running_loop().time() + ANSWER_SECONDS
    while not asking.done() and asyncio.get_running_loop().time() < until:
        stuck = (await reader.look()).stuck
        if stuck:
            raise Exit(f"{run_id}: {stuck}", Code.FAILED)
        await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
    return asking.done()


async def _send(handle: WorkflowHandle[Any, Any], update: str, order: Order) -> str:
    while True:
        try:
            said: str = await handle.execute_update(update, order, result_type=str)
            return said
        except RPCError as error:
            # "No poller seen recently": nothing was taken, and the worker may be coming back.
            if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                raise
        await asyncio.sleep(POLL_SECONDS)


async def state_of(connection: Connection, run_id: str) -> State:
    """Return the state of an open run. Exit if it is closed, unknown, or has not begun in time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ANSWER_SECONDS
    reader = Reader(connection, run_id)
    said = False
    while True:
        look = await reader.look()
        if look.closed:
            raise _over(run_id)
        if look.state:
            return look.state
        if loop.time() > until:
            raise Exit(f"{run_id}: {'; '.join(look.notes)}", Code.UNREACHABLE)
        if not said:
            said = True
            say(f"Waiting for {run_id} to answer …", "dim")
        await asyncio.sleep(POLL_SECONDS)


async def _explain_absence(connection: Connection, run_id: str) -> Exit:
    """Return why a run takes no orders: it is closed, or was never there."""
    try:
        await connection.handle(run_id).describe()
    except RPCError as error:
        return no_such_run(run_id) if error.status is RPCStatusCode.NOT_FOUND else Exit(str(error))
    return _over(run_id)


def _over(run_id: str) -> Exit:
    return Exit(f"run {run_id} is over; its report: {to_type('show', run_id)}")
