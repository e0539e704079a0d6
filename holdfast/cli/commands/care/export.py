"""`export`: a run's history as one self-contained JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put_json, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import Embedded, RunId, check_file
from holdfast.client.reading import no_such_run
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.replaying.replay import export
from holdfast.storage.files import write_whole
from holdfast.text import for_json


def command(
    run_id: RunId,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file; without it, stdout.")
    ] = None,
    embedded: Embedded = False,
) -> int:
    """Write a run's history with every payload inside, for `replay` and for bug reports."""
    path = check_file(out)
    return with_connection(Settings(), embedded, lambda connection: run(connection, run_id, path))


async def run(connection: Connection, run_id: str, out: Path | None) -> int:
    """Write the history. It holds the run's inputs and answers, so the file is private."""
    try:
        text = await export(connection.client, run_id, connection.store)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise
    if out is None:
        put_json(text)
        return Code.COMPLETE
    try:
        # Whoever shows the file in a terminal gets what others wrote as harmless as above.
        write_whole(out, for_json(text).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise Exit(f"{out} could not be written: {error.strerror}", Code.FAILED) from error
    say(f"History: {out}")
    return Code.COMPLETE
