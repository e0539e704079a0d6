"""`watch`: follow a run that somebody started."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli.connection import Connection, connected
from cli.follow import look_at, to_the_end
from cli.launch import announce
from cli.options import AsJson, Embedded, OutFile, RunId, check_out
from orchestrator.settings import Settings


def command(
    run_id: RunId, as_json: AsJson = False, out: OutFile = None, embedded: Embedded = False
) -> int:
    """Follow a run to its end and print its report."""
    return asyncio.run(_connected_run(Settings(), run_id, as_json, check_out(out), embedded))


async def _connected_run(
    settings: Settings, run_id: str, as_json: bool, out: Path | None, embedded: bool
) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, run_id, as_json, out)


async def run(connection: Connection, run_id: str, as_json: bool, out: Path | None) -> int:
    """Follow and tell; the exit code of what came out."""
    await look_at(connection, run_id)
    announce(connection, run_id)
    return await to_the_end(connection, run_id, as_json=as_json, out=out)
