"""`show`: the report of a finished run, or where a running one stands."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from cli import outcome
from cli.board import board
from cli.connection import Connection, connected
from cli.exits import Code
from cli.follow import look_at
from cli.options import AsJson, Embedded, OutFile, RunId, check_out
from cli.screen import OUT, put, say, say_all
from orchestrator.settings import Settings


def command(
    run_id: RunId, as_json: AsJson = False, out: OutFile = None, embedded: Embedded = False
) -> int:
    """Print the report of a finished run, or the board of a running one."""
    return asyncio.run(_connected_run(Settings(), run_id, as_json, check_out(out), embedded))


async def _connected_run(
    settings: Settings, run_id: str, as_json: bool, out: Path | None, embedded: bool
) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, run_id, as_json, out)


async def run(connection: Connection, run_id: str, as_json: bool, out: Path | None) -> int:
    """The report's exit code; 0 for a run that goes on."""
    look = await look_at(connection, run_id)
    if look.closed:
        ended = await outcome.read(connection, run_id, look.closed)
        return outcome.tell(connection, run_id, ended, as_json=as_json, out=out, subtasks=True)
    if look.view is None:
        say_all(look.notes, "yellow")
        return Code.UNREACHABLE
    if as_json:
        put(look.view.model_dump_json(indent=2))
    else:
        OUT.print(board(look.view, at=datetime.now(UTC), notes=look.notes, width=OUT.width))
    link = connection.link(run_id)
    if link:
        say(f"Web UI: {link}")
    return Code.COMPLETE
