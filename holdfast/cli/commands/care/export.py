"""`export`: a run's history as one self-contained JSON file, or what models answered in it as a
cassette.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put_json, say
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.delivery import in_plain
from holdfast.cli.shared.options import Embedded, RunId, check_file, write_file
from holdfast.client.reading import describe_run, no_such_run
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.replaying.replay import export
from holdfast.text import for_json, pluralize


def command(
    run_id: RunId,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file; without it, stdout.")
    ] = None,
    cassette: Annotated[
        Path | None,
        typer.Option(
            "--cassette",
            metavar="FILE",
            help="Write instead what models were asked and answered, for tests.",
        ),
    ] = None,
    inputs: Annotated[
        bool, typer.Option("--inputs", help="In a cassette: also what inputs and tools say.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Write a run's history with every payload inside, for `replay` and for bug reports."""
    path, tape = check_file(out), check_file(cassette, "--cassette")
    if path and tape:
        raise Exit("--out is for the history and --cassette for the cassette; give one of them")
    if inputs and not tape:
        raise Exit("--inputs belongs to --cassette; a history has them anyway")

    async def write(connection: Connection) -> int:
        if tape:
            return await play(connection, run_id, tape, inputs=inputs)
        return await run(connection, run_id, path)

    return with_connection(Settings(), embedded, write)


async def play(connection: Connection, run_id: str, out: Path, *, inputs: bool) -> int:
    """Write the cassette of a run, as far as the journal of this machine has its answers."""
    # It needs the worker's packages.
    from holdfast.cli.shared.cassettes import cassette_of

    found = await describe_run(connection, run_id)
    made, missing = await cassette_of(connection, run_id, inputs=inputs)
    if not made.calls:
        raise Exit(f"{run_id}: the journal of this machine has no answer of a model for it")
    try:
        made.write(out)
    except OSError as error:
        raise Exit(f"{out} could not be written: {error.strerror}", Code.FAILED) from error
    say(f"Cassette: {out}, {pluralize(len(made.calls), 'call')}{in_plain(connection.target)}")
    if found.status is WorkflowExecutionStatus.RUNNING:
        say(f"{run_id} is open: this is what it has asked so far", "magenta")
    if missing:
        say(f"Not in the journal of this machine: {', '.join(missing)}", "magenta")
    return Code.FAILED if missing else Code.COMPLETE


async def run(connection: Connection, run_id: str, out: Path | None) -> int:
    """Write the history. It holds the run's inputs and answers, so the file is private."""
    try:
        text = await export(connection.client, run_id, connection.store, connection.target.keys)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise no_such_run(run_id) from error
        raise
    if out is None:
        put_json(text)
        return Code.COMPLETE
    # Whoever shows the file in a terminal gets what others wrote as harmless as above.
    write_file(out, for_json(text).encode("utf-8", "backslashreplace"))
    say(f"History: {out}{in_plain(connection.target)}")
    return Code.COMPLETE
