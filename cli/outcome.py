"""How a run ended, read from a closed run, and told to a person or a program."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from cli import report as pages
from cli.connection import Connection
from cli.exits import Code, code_of
from cli.screen import say
from orchestrator.contracts import Report
from orchestrator.errors import BadGoal

REPORT_SECONDS = 20.0
"""How long to wait for a worker to rebuild the report of a run that closed without returning it."""
QUERY_SECONDS = 5.0


@dataclass(frozen=True)
class Ended:
    """A closed run: its exit code, and its report or the reason why there is none."""

    code: Code
    report: Report | None = None
    reason: str = ""


async def read(connection: Connection, run_id: str, status: WorkflowExecutionStatus) -> Ended:
    """How a run that is closed with this status ended. A cancelled run's report needs a worker."""
    if status is WorkflowExecutionStatus.COMPLETED:
        report = await connection.handle(run_id).result()
        return Ended(code_of(report.status), report)
    if status is WorkflowExecutionStatus.FAILED:
        return await _failed(connection, run_id)
    cancelled = status is WorkflowExecutionStatus.CANCELED
    code = Code.CANCELLED if cancelled else Code.FAILED
    how = "cancelled" if cancelled else f"closed as {status.name.lower()} from outside"
    rebuilt = await _rebuilt(connection, run_id)
    if rebuilt:
        # Who closed the run from outside left it no time to judge itself.
        judged = rebuilt.model_copy(update={"status": "cancelled" if cancelled else "failed"})
        return Ended(code, judged)
    return Ended(code, reason=f"run {run_id} was {how}; its report needs a worker; none answers")


async def _failed(connection: Connection, run_id: str) -> Ended:
    try:
        report = await connection.handle(run_id).result()
        return Ended(code_of(report.status), report)
    except WorkflowFailureError as error:
        cause: BaseException | None = error.cause
        while cause and cause.__cause__ and not isinstance(cause, ApplicationError):
            cause = cause.__cause__
        refused = isinstance(cause, ApplicationError) and cause.type == BadGoal.__name__
        message = cause.message if isinstance(cause, ApplicationError) else str(cause or error)
        if refused:
            return Ended(Code.REFUSED, reason=message)
        return Ended(Code.FAILED, reason=f"run {run_id} failed: {message}")


async def _rebuilt(connection: Connection, run_id: str) -> Report | None:
    """The report that a worker rebuilds from history; None if none does in time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + REPORT_SECONDS
    while loop.time() < until:
        try:
            report: Report = await connection.handle(run_id).query(
                "report", result_type=Report, rpc_timeout=timedelta(seconds=QUERY_SECONDS)
            )
            return report
        except WorkflowQueryFailedError:
            return None
        except RPCError:
            await asyncio.sleep(0.5)
    return None


def tell(
    connection: Connection,
    run_id: str,
    ended: Ended,
    *,
    as_json: bool,
    out: Path | None,
    subtasks: bool,
) -> Code:
    """Report on stdout, where its files and the Web UI are on stderr; the exit code."""
    if ended.report is None:
        say(ended.reason, "bold red")
    else:
        pages.show(ended.report, as_json=as_json, subtasks=subtasks)
        pages.deliver(ended.report, connection.settings.state_dir.expanduser() / "reports", out)
    link = connection.link(run_id)
    if link:
        say(f"Web UI: {link}")
    return ended.code
