"""`--dry-run` of `run` and `fork`: the plan of a run with its price, and then nothing of it."""

from __future__ import annotations

import asyncio

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import OUT, draw, put_json, say
from holdfast.cli.screen.tables import preview
from holdfast.cli.shared import outcome
from holdfast.cli.shared.follow import Lines, watch
from holdfast.client.ended import read_end
from holdfast.contracts import Approval
from holdfast.contracts.view import RunView
from holdfast.intake.connection import Connection
from holdfast.intake.login import login
from holdfast.rendering.amounts import at_most

APPROVAL = Approval(when="always")
"""Also a worker that does not know of dry runs yet waits, instead of running the plan."""


def check_own(dry: bool, run_id: str) -> None:
    """Exit if a dry run is given an id: its run closes, and the id would be spent on it."""
    if dry and run_id:
        raise Exit("--dry-run starts and closes a run of its own; leave out --id")


async def finish(connection: Connection, run_id: str, *, as_json: bool, full: bool = False) -> int:
    """Show the plan that a run closed with. Return 0, whatever it would have cost."""
    try:
        look = await watch(connection, run_id, Lines(only_notes=True), lambda _: False)
    except asyncio.CancelledError:
        # Nobody would see the plan: it is not paid for.
        await asyncio.shield(connection.handle(run_id).cancel(reason=login()))
        say(f"Left; {run_id} is cancelled.")
        raise
    view = look.view
    if view is None or view.preview is None or view.status != "declined":
        ended = read_end(run_id, look)
        return await outcome.print_outcome(
            connection, run_id, ended, as_json=as_json, out=None, subtasks=True, announced=True
        )
    _show(view, as_json=as_json, full=full)
    say(_tell_price(view))
    return Code.COMPLETE


def _show(view: RunView, *, as_json: bool, full: bool) -> None:
    assert view.preview is not None
    if as_json:
        put_json(view.preview.model_dump_json(indent=2))
    else:
        shown = preview(view.preview, view.dollars_cap, width=OUT.width, full=full, compared=True)
        draw(shown)


def _tell_price(view: RunView) -> str:
    if not view.model_calls:
        return "A dry run: nothing was run, and nothing was paid."
    spent = at_most(view.dollars_spent, view.assumed)
    return f"A dry run: nothing of the plan was run. Paid, for planning: {spent}."
