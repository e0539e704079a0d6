"""`run --dry-run`: the plan of a run with its price, and then nothing of it."""

from __future__ import annotations

import asyncio

from cli import approval, outcome, steering
from cli.amounts import money
from cli.connection import Connection
from cli.exits import Code
from cli.follow import Lines, watch
from cli.preview import preview
from cli.screen import OUT, Safe, put, say
from orchestrator.contracts import Order
from orchestrator.view import RunView


async def finish(connection: Connection, run_id: str, *, as_json: bool) -> int:
    """Show the plan that a run waits with, and reject it; 0, whatever it would have cost."""
    try:
        look = await watch(connection, run_id, Lines(only_notes=True), approval.wanted)
    except asyncio.CancelledError:
        # Nobody would come to decide: the run is not left waiting.
        await asyncio.shield(connection.handle(run_id).cancel())
        say(f"Left; {run_id} is cancelled.")
        raise
    if look.view is None or look.closed:
        assert look.closed is not None
        ended = await outcome.read(connection, run_id, look.closed)
        return outcome.tell(connection, run_id, ended, as_json=as_json, out=None, subtasks=True)
    _show(look.view, as_json=as_json)
    await steering.tell(connection, run_id, "reject", Order(text="it was a dry run"))
    say(_paid(look.view))
    return Code.COMPLETE


def _show(view: RunView, *, as_json: bool) -> None:
    assert view.preview is not None
    if as_json:
        put(view.preview.model_dump_json(indent=2))
    else:
        OUT.print(Safe(preview(view.preview, view.dollars_cap, width=OUT.width)))


def _paid(view: RunView) -> str:
    if not view.model_calls:
        return "A dry run: nothing was run, and nothing was paid."
    spent = money(view.dollars_spent)
    return f"A dry run: nothing of the plan was run. Planning was paid: {spent}."
