"""Telling a run what to do: each steering command is a row, a function from its options to an
Order.

`edit` and `raise`, which start from what the run has now, and `cancel`, which can also end a whole
run, have modules of their own and send their Order through `tell`, as the rows do.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from cli.connection import Connection, connected
from cli.exits import Code, Stop
from cli.files import read_text
from cli.invocation import STARTER, to_type
from cli.launch import login
from cli.options import Embedded, OpenRunId, SubtaskId, Why
from cli.reading import Reader, no_such_run
from cli.screen.streams import say
from deployment.settings import Settings
from orchestrator.contracts import Order, Tier
from orchestrator.rules.state import State

PATIENCE_SECONDS = 3.0
"""After this the waiting itself is worth a line."""
POLL_SECONDS = 0.4
ANSWER_SECONDS = 60.0
"""How long a run may take to say what came of a command; ending a subtask waits for its call."""


# ---------------------------------------------------------------- the rows


def approve() -> Order:
    """Approve the plan that a run waits with; its work begins."""
    return Order()


def reject(why: Why = "") -> Order:
    """Reject the plan that a run waits with; the run closes as declined, its work unpaid."""
    return Order(text=why)


def answer(
    subtask: SubtaskId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the subtask asked to know.")],
) -> Order:
    """Answer what a subtask asks; it goes on with your words."""
    return Order(subtask_id=subtask, text=text)


def retry(
    subtask: SubtaskId,
    tier: Annotated[
        Tier | None, typer.Option("--tier", help="Ask a model of this tier instead.")
    ] = None,
    instruction: Annotated[
        str, typer.Option("--instruction", metavar="TEXT", help="Say it in other words.")
    ] = "",
) -> Order:
    """Try a subtask again that did not succeed; what was skipped because of it waits again."""
    return Order(subtask_id=subtask, tier=tier, text=instruction)


def skip(subtask: SubtaskId, why: Why = "") -> Order:
    """Go on without a subtask, at work or not; what needs it is skipped, too."""
    return Order(subtask_id=subtask, text=why)


def supply(
    subtask: SubtaskId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it would have found.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="The text is in this file.")
    ] = None,
) -> Order:
    """Give a subtask's finding by hand; nobody is asked and nothing is paid for it."""
    if bool(text) == bool(file):
        raise Stop("give the finding either as TEXT or by --file FILE")
    return Order(subtask_id=subtask, text=_text_of(file) if file else text)


def pause() -> Order:
    """Start nothing more; calls in flight finish. The deadline stands still meanwhile."""
    return Order()


def resume() -> Order:
    """Let a paused run go on."""
    return Order()


FILE_BYTES = 1024 * 1024
"""The largest finding by hand: it travels inside an Update."""
ROWS: tuple[Callable[..., Order], ...] = (
    approve, reject, answer, retry, skip, supply, pause, resume,
)  # fmt: skip
"""Each is named like its command and its Update; the docstring is the command's help."""


def _text_of(file: Path) -> str:
    return read_text(file, "--file", FILE_BYTES)


# ---------------------------------------------------------------- from a row to a command


def command_of(row: Callable[..., Order]) -> Callable[..., int]:
    """The starter's command of a row: the run's id, the row's own options, and --embedded."""
    own = inspect.signature(row, eval_str=True).parameters.values()
    word = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter("run_id", word, annotation=OpenRunId),
        *own,
        inspect.Parameter("embedded", word, annotation=Embedded, default=False),
    ]

    def command(run_id: str, embedded: bool, **options: Any) -> int:
        return asyncio.run(_connected(run_id, row.__name__, row(**options), embedded))

    command.__doc__ = row.__doc__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    # typer reads a command's options from its signature.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


async def _connected(run_id: str, update: str, order: Order, embedded: bool) -> int:
    async with connected(Settings(), embedded=embedded) as connection:
        return await run(connection, run_id, update, order)


async def run(connection: Connection, run_id: str, update: str, order: Order) -> int:
    """Tell the run and say what came of it. Stop with the reason if it was refused."""
    say(f"{run_id}: {await tell(connection, run_id, update, order)}", "green")
    return Code.COMPLETE


# ---------------------------------------------------------------- the Update


async def tell(connection: Connection, run_id: str, update: str, order: Order) -> str:
    """What came of a command. Stop if the run refuses it, is closed, unknown or does not answer."""
    order = order.model_copy(update={"by": login()})
    handle = connection.handle(run_id)
    asking = asyncio.ensure_future(_asked(handle, update, order))
    try:
        await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
        done = asking.done()
        if not done:
            say(f"Waiting for {run_id} to answer …", "dim")
            done = await _answered(connection, run_id, asking)
        if not done:
            raise Stop(
                f"{run_id}: no answer within {ANSWER_SECONDS:.0f} s;"
                f" {STARTER} doctor says whether a worker runs",
                Code.UNREACHABLE,
            )
        said: str = asking.result()
        return said
    except WorkflowUpdateFailedError as error:
        why = error.cause.message if isinstance(error.cause, ApplicationError) else error.cause
        raise Stop(f"{run_id}: refused: {why}") from error
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise await _gone(connection, run_id) from error
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _answered(connection: Connection, run_id: str, asking: asyncio.Future[str]) -> bool:
    """Whether a run answers in time. Stop as soon as it is known that it cannot."""
    reader = Reader(connection, run_id)
    until = asyncio.get_running_loop().time() + ANSWER_SECONDS
    while not asking.done() and asyncio.get_running_loop().time() < until:
        stuck = (await reader.look()).stuck
        if stuck:
            raise Stop(f"{run_id}: {stuck}", Code.FAILED)
        await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
    return asking.done()


async def _asked(handle: WorkflowHandle[Any, Any], update: str, order: Order) -> str:
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
    """How an open run stands now. Stop if it is closed, unknown, or has not begun in time."""
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
            raise Stop(f"{run_id}: {'; '.join(look.notes)}", Code.UNREACHABLE)
        if not said:
            said = True
            say(f"Waiting for {run_id} to answer …", "dim")
        await asyncio.sleep(POLL_SECONDS)


async def _gone(connection: Connection, run_id: str) -> Stop:
    """A run that takes no commands is either closed or was never there."""
    try:
        await connection.handle(run_id).describe()
    except RPCError as error:
        return no_such_run(run_id) if error.status is RPCStatusCode.NOT_FOUND else Stop(str(error))
    return _over(run_id)


def _over(run_id: str) -> Stop:
    return Stop(f"run {run_id} is over; its report: {to_type('show', run_id)}")
