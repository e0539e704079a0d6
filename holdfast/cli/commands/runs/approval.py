"""Deciding on a plan in the terminal that watches its run: approve, edit or reject it.

Somebody else may decide meanwhile, in another terminal: then the question is withdrawn.
"""

from __future__ import annotations

import asyncio

from holdfast.cli.commands.steering import edit
from holdfast.cli.screen.streams import ask, read_line, say
from holdfast.cli.shared import orders
from holdfast.client.orders import POLL_SECONDS
from holdfast.client.reading import Reader
from holdfast.contracts import Order
from holdfast.contracts.view import RunView
from holdfast.errors import HoldfastError
from holdfast.intake.connection import Connection
from holdfast.rendering.preview import told

QUESTION = "Run this plan? [y]es, [f]ull text, [e]dit, [n]o; Ctrl-C leaves it waiting:"


def is_wanted(view: RunView) -> bool:
    """True if a plan waits for approval."""
    return view.phase == "approval"


async def decide(connection: Connection, run_id: str) -> bool:
    """Ask until the plan is decided on, here or elsewhere. False at the end of input."""
    while True:
        ask(QUESTION)
        try:
            answer = await _unless_decided(connection, run_id)
        except asyncio.CancelledError:
            say("")
            raise
        except EOFError:
            say("\nNobody decides here; the run goes on waiting.")
            return False
        try:
            match answer.lower() if answer is not None else None:
                case None:
                    say("\nDecided elsewhere.")
                    return True
                case "y" | "yes":
                    await orders.run(connection, run_id, "approve", Order())
                    return True
                case "n" | "no":
                    await orders.run(connection, run_id, "reject", Order())
                    return True
                case "e" | "edit":
                    await edit.run(connection, run_id, None)
                case "f" | "full":
                    await _tell_in_full(Reader(connection, run_id))
        except HoldfastError as ended:
            say(str(ended), "red")
        if not await _is_undecided(Reader(connection, run_id)):
            return True


async def _unless_decided(connection: Connection, run_id: str) -> str | None:
    """Return what the person types; None if the plan was decided on before that."""
    typing = asyncio.create_task(read_line())
    reader = Reader(connection, run_id)
    try:
        while not typing.done():
            await asyncio.wait({typing}, timeout=POLL_SECONDS)
            if not typing.done() and not await _is_undecided(reader):
                return None
        return typing.result()
    finally:
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)


async def _tell_in_full(reader: Reader) -> None:
    """Print what each subtask of the plan is told."""
    view = (await reader.look()).view
    if view and view.preview and view.preview.plan:
        for line, style in told(view.preview.plan):
            say(line, style)


async def _is_undecided(reader: Reader) -> bool:
    """True if the plan still waits, as far as the server answers."""
    look = await reader.look()
    return not look.closed and (look.view is None or is_wanted(look.view))
