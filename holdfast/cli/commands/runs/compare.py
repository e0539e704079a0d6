"""`compare`: two finished runs beside each other."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.report import show_markdown
from holdfast.cli.screen.streams import put_json
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import AsJson, Embedded, finished_run
from holdfast.cli.shared.outcome import exit_code
from holdfast.client.ended import read_end
from holdfast.client.reading import Reader
from holdfast.contracts import Report
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.rendering.compared import as_markdown
from holdfast.rendering.comparing import compare


def command(
    a: Annotated[str, finished_run("A")],
    b: Annotated[str, finished_run("B")],
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Say in what two finished runs differ: plan, findings, remarks, answer, price and time."""
    if a == b:
        raise Exit(f"{a} is named twice; name two runs, as `list` shows them")
    return with_connection(
        Settings(), embedded, lambda connection: run(connection, a, b, as_json=as_json)
    )


async def run(connection: Connection, a: str, b: str, *, as_json: bool) -> int:
    """Print the comparison. Return 0, however the runs ended."""
    made = compare(await _report(connection, a), await _report(connection, b))
    if as_json:
        put_json(made.model_dump_json(indent=2))
    else:
        show_markdown(as_markdown(made, to_type))
    return Code.COMPLETE


async def _report(connection: Connection, run_id: str) -> Report:
    """Return the report of a finished run; Exit if there is none."""
    look = await Reader(connection, run_id).look()
    if look.away:
        raise Exit(f"{run_id}: {'; '.join(look.notes)}", Code.UNREACHABLE)
    if not look.closed:
        follow = to_type("watch", run_id)
        raise Exit(f"{run_id} is not finished; compare it when it is: {follow}")
    ended = read_end(run_id, look)
    if ended.report is None:
        code = exit_code(ended)
        raise Exit(f"{run_id} has no report to compare: {ended.reason}", code)
    return ended.report
