"""`watch`: follow a run that somebody started, and decide on its plan if it waits for that."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli import outcome
from cli.commands.runs import approval
from cli.connection import with_connection
from cli.exits import Code
from cli.follow import display, look_at, watch
from cli.invocation import to_type
from cli.options import AsJson, Embedded, OutFile, RunId, check_out
from cli.reading import Look
from cli.screen.streams import ERR, at_terminal, say
from cli.starting import announce
from deployment.settings import Settings
from intake.connection import Connection


def command(
    run_id: RunId, as_json: AsJson = False, out: OutFile = None, embedded: Embedded = False
) -> int:
    """Follow a run to its end and print its report; a plan that waits can be approved here."""
    path = check_out(out)
    return with_connection(
        Settings(), embedded, lambda connection: run(connection, run_id, as_json, path)
    )


async def run(connection: Connection, run_id: str, as_json: bool, out: Path | None) -> int:
    """Follow and tell; the exit code of what came out."""
    await look_at(connection, run_id)
    await announce(connection, run_id)
    return await to_the_end(connection, run_id, as_json=as_json, out=out)


async def to_the_end(
    connection: Connection, run_id: str, *, as_json: bool, out: Path | None
) -> Code:
    """Follow a run, then tell its report. Interrupted, say how to come back; the run goes on."""
    try:
        look = await _closed(connection, run_id)
    except asyncio.CancelledError:
        say(f"Left. The run goes on; come back with: {to_type('watch', run_id)}")
        raise
    assert look.closed is not None
    ended = outcome.read(run_id, look)
    return await outcome.tell(
        connection, run_id, ended, as_json=as_json, out=out, subtasks=not ERR.is_terminal
    )


async def _closed(connection: Connection, run_id: str) -> Look:
    """The last look at a run. A person at the terminal is asked about a plan that waits."""
    asking = at_terminal()
    while True:
        with display() as shown:
            look = await watch(
                connection, run_id, shown, approval.wanted if asking else lambda _: False
            )
        if look.closed:
            return look
        asking = await approval.decide(connection, run_id)
