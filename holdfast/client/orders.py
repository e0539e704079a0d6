"""Telling a run what to do: an Order as an Update, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import JsonValue, ValidationError
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.client.reading import Reader, describe_run
from holdfast.contracts import Order
from holdfast.contracts.orders import RowsWhich
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.errors import (
    HoldfastError,
    NoAnswer,
    NoSuchRun,
    OrderRefused,
    Refused,
    RunOver,
    RunStuck,
)
from holdfast.intake.connection import Connection, Tell, tell_nobody
from holdfast.intake.login import login
from holdfast.state.run import State
from holdfast.text import says_something

PATIENCE_SECONDS = 3.0
"""After which the waiting itself is worth a line."""
POLL_SECONDS = 0.4
LONGEST_BY = 200
ANSWER_SECONDS = 60.0
"""How long a run may take to say what came of a command; ending a subtask waits for its call."""


def order_of(**fields: Any) -> Order:
    """Return the order with these fields. Refused if it cannot have them."""
    try:
        made = Order(**fields)
    except ValidationError as error:
        # Only who is refused needs the words for it.
        from holdfast.intake.requests import explain

        raise Refused(f"order: {explain(error)}") from error
    if len(made.by) > LONGEST_BY:
        raise Refused(f"order: by: at most {LONGEST_BY} characters")
    return made


STANDS: tuple[str, ...] = get_args(RowsWhich)
"""Words for all rows of a map that stand so, where ids of items may stand."""
MOST_ROWS = 1_000
"""Ids in one order."""


def about_rows(rows: str | Sequence[str]) -> dict[str, Any]:
    """Return the fields of an order about rows of a map: a word for how they stand, such as
    `failed`, or the ids of items, also in one text with commas; none of either: it is about the
    whole subtask. Refused for no id among them.
    """
    if not rows:
        return {}
    if isinstance(rows, str) and rows.strip() in STANDS:
        return {"rows": True, "which": rows.strip()}
    each = rows.split(",") if isinstance(rows, str) else rows
    ids = tuple(dict.fromkeys(filter(None, (one.strip() for one in each))))
    if not ids:
        raise Refused("rows: say failed, or the ids of items with commas between them")
    if len(ids) > MOST_ROWS:
        raise Refused(f"rows: {len(ids):,} ids, one order names at most {MOST_ROWS:,}")
    return {"rows": True, "ids": ids}


def supply_order(subtask: str, text: str = "", row: str = "", value: JsonValue = None) -> Order:
    """Return the order that gives a finding in words, or the result of one row of a map. Refused if
    it gives neither, or both.
    """
    if row and text:
        raise Refused("supply: a row's result is a JSON value; leave the text out")
    if row and value is None:
        raise Refused(f"supply: give the result of row {row!r:.80} as a JSON value, not null")
    if not row and value is not None:
        raise Refused("supply: say whose result the value is: the id of an item as the row")
    if not row and not says_something(text):
        raise Refused("supply: the finding is empty; say something")
    ids = (row,) if row else ()
    return order_of(subtask_id=subtask, text=text, rows=bool(row), ids=ids, value=value)


async def send(
    connection: Connection,
    run_id: str,
    update: str,
    order: Order,
    tell: Tell = tell_nobody,
) -> str:
    """Send an order to a run; return the outcome. It is given by `order.by`, else by this login.

    Raise OrderRefused if the run refuses it, RunOver or NoSuchRun if it takes none, RunStuck or
    NoAnswer if it does not say in time what came of it, and MissingKey if it is encrypted with a
    key that is not here.
    """
    order = order.model_copy(update={"by": order.by or login()})
    seen = await describe_run(connection, run_id)
    # Whoever cannot read what the run is about would write into it in plain.
    await seen.static_summary()
    handle = connection.handle(run_id)
    if order.rows and seen.status is WorkflowExecutionStatus.RUNNING:
        # Only who speaks of rows reads them.
        from holdfast.client.rows import why_unfit

        unfit = await why_unfit(connection, run_id, update, order)
        if unfit:
            raise OrderRefused(f"{run_id}: refused: {unfit}")
    asking = asyncio.ensure_future(_send(handle, update, order))
    try:
        await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
        done = asking.done()
        if not done:
            tell(f"Waiting for {run_id} to answer …")
            done = await _wait_for_answer(connection, run_id, asking)
        if not done:
            raise NoAnswer(
                f"{run_id}: no answer within {ANSWER_SECONDS:.0f} s;"
                f" {STARTER} doctor says whether a worker runs"
            )
        said: str = asking.result()
        return said
    except WorkflowUpdateFailedError as error:
        why = error.cause.message if isinstance(error.cause, ApplicationError) else error.cause
        raise OrderRefused(f"{run_id}: refused: {why}") from error
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise await _explain_absence(connection, run_id, order) from error
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _wait_for_answer(
    connection: Connection, run_id: str, asking: asyncio.Future[str]
) -> bool:
    """True if a run answers in time. Raise RunStuck as soon as it is known that it cannot."""
    reader = Reader(connection, run_id)
    until = asyncio.get_running_loop().time() + ANSWER_SECONDS
    while not asking.done() and asyncio.get_running_loop().time() < until:
        stuck = (await reader.look()).stuck
        if stuck:
            raise RunStuck(f"{run_id}: {stuck}")
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


async def state_of(connection: Connection, run_id: str, tell: Tell = tell_nobody) -> State:
    """Return the state of an open run. Raise RunOver if it is closed, NoSuchRun if it is unknown,
    NoAnswer if it has not begun in time.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + ANSWER_SECONDS
    reader = Reader(connection, run_id)
    said = False
    while True:
        look = await reader.look()
        if look.closed:
            raise run_over(run_id)
        if look.state:
            return look.state
        if loop.time() > until:
            raise NoAnswer(f"{run_id}: {'; '.join(look.notes)}")
        if not said:
            said = True
            tell(f"Waiting for {run_id} to answer …")
        await asyncio.sleep(POLL_SECONDS)


async def _explain_absence(connection: Connection, run_id: str, order: Order) -> HoldfastError:
    """Return why a run takes no orders: it is closed, or is gone."""
    try:
        await describe_run(connection, run_id)
    except NoSuchRun as error:
        return error
    except RPCError as error:
        return OrderRefused(str(error))
    return run_over(run_id, rows=order.rows)


def run_over(run_id: str, *, rows: bool = False) -> RunOver:
    """Return the refusal of an order for a closed run. `rows`: it is about rows of a map."""
    report = f"run {run_id} is over; its report: {to_type('show', run_id)}"
    again = f"; to ask its failed rows alone again, start it anew with --reuse {run_id}"
    return RunOver(f"{report}{again if rows else ''}")
