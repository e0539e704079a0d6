"""`list`: the runs there are, newest first."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from cli.amounts import seconds
from cli.connection import Connection, connected
from cli.exits import Code
from cli.invocation import STARTER
from cli.launch import MEMO_GOAL, RUNS
from cli.options import AsJson, Embedded
from cli.screen import OUT, Safe, put, say
from orchestrator.settings import Settings

STATUS = SearchAttributeKey.for_keyword("HoldfastStatus")


@dataclass(frozen=True)
class Listed:
    """One run in the list."""

    id: str
    status: str
    started: str
    seconds: float
    goal: str


def command(
    most: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="How many runs to show.")
    ] = 20,
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """List the runs, newest first."""
    return asyncio.run(_connected_run(Settings(), most, as_json, embedded))


async def _connected_run(settings: Settings, most: int, as_json: bool, embedded: bool) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, most, as_json)


async def run(connection: Connection, most: int, as_json: bool) -> int:
    """Print up to `most` runs that people started; their child runs are not listed."""
    rows: list[Listed] = []
    async for each in connection.client.list_workflows(RUNS):
        if each.parent_id is None:
            rows.append(await _listed(each))
        if len(rows) == most:
            break
    if as_json:
        put(json.dumps([asdict(row) for row in rows], indent=2))
    elif rows:
        OUT.print(Safe(_table(rows)))
    else:
        say(f"No runs yet. Start one: {STARTER} run --playbook code-review --input repo=.")
    return Code.COMPLETE


async def _listed(run: WorkflowExecution) -> Listed:
    until = run.close_time or datetime.now(UTC)
    return Listed(
        id=run.id,
        status=_status(run),
        started=run.start_time.isoformat(timespec="seconds"),
        seconds=round((until - run.start_time).total_seconds(), 1),
        goal=await goal_words(run),
    )


async def goal_words(run: WorkflowExecution) -> str:
    """The beginning of a run's goal, on one line."""
    told = await run.memo_value(MEMO_GOAL, "", type_hint=str)
    return " ".join(told.split())


def _status(run: WorkflowExecution) -> str:
    """The report's status where the namespace keeps it, else Temporal's."""
    known = run.typed_search_attributes.get(STATUS)
    if known and run.status is WorkflowExecutionStatus.COMPLETED:
        return known
    return {"CANCELED": "cancelled", "TIMED_OUT": "timed out"}.get(
        run.status.name if run.status else "", run.status.name.lower() if run.status else ""
    )


def _table(rows: list[Listed]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", expand=True)
    table.add_column("run", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("started", no_wrap=True)
    table.add_column("took", no_wrap=True, justify="right")
    table.add_column("goal", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        started = datetime.fromisoformat(row.started).astimezone()
        cells = (
            row.id, row.status.replace("_", " "), f"{started:%b %d %H:%M}", seconds(row.seconds),
            row.goal,
        )  # fmt: skip
        table.add_row(*(Text(cell) for cell in cells))
    return table
