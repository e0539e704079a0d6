"""`show`: the report of a finished run, or where a running one stands; or one finding of either."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.commands.runs import show_rows
from holdfast.cli.screen.board import board
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.report import show_finding
from holdfast.cli.screen.streams import OUT, draw, put_json, say_all
from holdfast.cli.shared import outcome
from holdfast.cli.shared.connection import say_where, with_connection
from holdfast.cli.shared.options import (
    AsJson,
    CommentFile,
    Embedded,
    FailOn,
    Full,
    Links,
    OutFile,
    RunId,
    SarifFile,
    SubtaskId,
    Whole,
    check_out,
    pipeline_of,
)
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.client.ended import CLOSED, read_end
from holdfast.client.reading import Reader
from holdfast.contracts.orders import RowsWhich
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.rules.reporting import report


def command(
    run_id: RunId,
    subtask: SubtaskId = "",
    as_json: AsJson = False,
    out: OutFile = None,
    full: Full = False,
    whole: Whole = False,
    fail_on: FailOn = "",
    sarif: SarifFile = None,
    comment: CommentFile = None,
    links: Links = "",
    rows: Annotated[
        RowsWhich | None,
        typer.Option("--rows", help="Of a map the rows that stand so, at any time."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    embedded: Embedded = False,
) -> int:
    """Print the report of a finished run or the board of a running one, or what a subtask found."""
    if (rows or as_csv) and not (rows and subtask):
        raise Exit("--rows and --csv are of one map: show ID SUBTASK --rows all")
    if as_csv and as_json:
        raise Exit("--csv or --json: give one of them")
    if subtask and out is not None:
        raise Exit("--out writes the report of a run; leave out the subtask, or --out")
    path = check_out(out)
    pipeline = pipeline_of(fail_on, sarif, comment, links, out)
    if subtask and pipeline.wanted:
        raise Exit("--fail-on, --sarif and --comment are of a whole review; leave out the subtask")
    return with_connection(
        Settings(),
        embedded,
        lambda connection: (
            show_rows.run(connection, run_id, subtask, rows, as_json=as_json, as_csv=as_csv)
            if rows
            else run_finding(connection, run_id, subtask, as_json)
            if subtask
            else run(connection, run_id, as_json, path, full=full, whole=whole, pipeline=pipeline)
        ),
    )


async def run_finding(connection: Connection, run_id: str, subtask: str, as_json: bool) -> int:
    """Print what a subtask found, or why it did not; return 0 also if it failed. Exit if there is
    none.
    """
    look = await Reader(connection, run_id).look()
    if look.state is None:
        raise Exit(f"{run_id}: {'; '.join(look.notes) or 'it has not begun'}", Code.UNREACHABLE)
    made = look.report or report(look.state)
    # How a run closed says more than what today's code makes of a history of another version.
    found = {each.subtask_id: each for each in made.findings}
    if subtask in found:
        show_finding(made, found[subtask], as_json=as_json)
        return Code.COMPLETE
    if look.closed and look.notes:
        raise Exit(f"what {subtask} of {run_id} found is not known: {'; '.join(look.notes)}")
    known = dict.fromkeys((*look.state.work, *found))
    if subtask not in known:
        names = ", ".join(known) or "none yet"
        raise Exit(f"there is no subtask {subtask!r} in {run_id}; known: {names}")
    if look.closed:
        raise Exit(f"{subtask} had not ended when {run_id} closed ({CLOSED[look.closed]})")
    raise Exit(f"{subtask} of {run_id} has not ended; `show {run_id}` says where it stands")


async def run(
    connection: Connection,
    run_id: str,
    as_json: bool,
    out: Path | None,
    *,
    full: bool = False,
    whole: bool = False,
    pipeline: Pipeline = Pipeline(),  # noqa: B008
) -> int:
    """Return the report's exit code; 0 for a run that goes on."""
    reader = Reader(connection, run_id)
    look = await reader.look()
    if not look.closed:
        await reader.find_held_up()
        await reader.find_doing()
        look = await reader.look()
    if look.closed:
        ended = read_end(run_id, look)
        return await outcome.print_outcome(
            connection,
            run_id,
            ended,
            as_json=as_json,
            out=out,
            subtasks=True,
            whole=whole,
            pipeline=pipeline,
        )
    if pipeline.wanted:
        raise Exit(f"{run_id} goes on, so it has no remarks yet; `watch` waits for them")
    view = look.view
    if view is None:
        say_all(look.notes, "magenta")
        return Code.UNREACHABLE
    if as_json:
        put_json(view.model_dump_json(indent=2))
    else:
        draw(board(view, at=datetime.now(UTC), notes=look.notes, width=OUT.width, full=full))
    await say_where(connection, run_id)
    return Code.COMPLETE
