"""An order as the command line gives it: what came of it is printed."""

from __future__ import annotations

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.connection import tell
from holdfast.client import orders
from holdfast.contracts import Order
from holdfast.intake.connection import Connection


async def run(connection: Connection, run_id: str, update: str, order: Order) -> int:
    """Send an order to a run and print the outcome. HoldfastError says why it was not taken."""
    say(f"{run_id}: {await orders.send(connection, run_id, update, order, tell)}", "bold")
    return Code.COMPLETE
