"""Deciding on a plan in the terminal that watches its run: approve, edit or reject it.

Somebody else may decide meanwhile, in another terminal: then the question is withdrawn.
"""

from __future__ import annotations

import asyncio

from cli import edit, steering
from cli.connection import Connection
from cli.exits import Stop
from cli.follow import POLL_SECONDS, look_at
from cli.screen import ask, say, typed
from orchestrator.contracts import Order
from orchestrator.view import RunView

QUESTION = "Run this plan? [y]es, [e]dit, [n]o; Ctrl-C leaves it waiting:"


def wanted(view: RunView) -> bool:
    """Whether a plan waits for approval."""
    return view.phase == "approval"


async def decide(connection: Connection, run_id: str) -> bool:
    """Ask until the plan is decided on, here or elsewhere. False when nobody types any more."""
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
                    await steering.run(connection, run_id, "approve", Order())
                    return True
                case "n" | "no":
                    await steering.run(connection, run_id, "reject", Order())
                    return True
                case "e" | "edit":
                    await edit.run(connection, run_id, None)
        except Stop as stop:
            say(str(stop), "red")
        if not await _undecided(connection, run_id):
            return True


async def _unless_decided(connection: Connection, run_id: str) -> str | None:
    """What the person types; None if the plan was decided on before they had."""
    typing = asyncio.create_task(typed())
    try:
        while not typing.done():
            await asyncio.wait({typing}, timeout=POLL_SECONDS)
            if not typing.done() and not await _undecided(connection, run_id):
                return None
        return typing.result()
    finally:
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)


async def _undecided(connection: Connection, run_id: str) -> bool:
    """Whether the plan still waits, as far as anybody answers."""
    look = await look_at(connection, run_id)
    return not look.closed and (look.view is None or wanted(look.view))
