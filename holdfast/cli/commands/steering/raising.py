"""`raise`: allow an open run more than it has now."""

from __future__ import annotations

from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared import orders
from holdfast.cli.shared.connection import tell, with_connection
from holdfast.cli.shared.options import Embedded, OpenRunId, RaisedLimits
from holdfast.client.orders import state_of
from holdfast.client.runs import raised
from holdfast.contracts import Limits, Order
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.goals import limits_of
from holdfast.rendering.amounts import money
from holdfast.rules.steering import CAPS


def command(run_id: OpenRunId, limits: RaisedLimits, embedded: Embedded = False) -> int:
    """Raise what a run may spend; one that waits for money goes on."""
    given = limits_of(tuple(limits))
    fixed = sorted(given.model_fields_set - set(CAPS))
    if fixed:
        raise Exit(f"--limits: {', '.join(fixed)} cannot be raised; {', '.join(CAPS)} can")
    return with_connection(Settings(), embedded, lambda connection: run(connection, run_id, given))


async def run(connection: Connection, run_id: str, given: Limits) -> int:
    """Raise the given limits; the others stay as they are."""
    wanted = raised(await state_of(connection, run_id, tell), given)
    code = await orders.run(connection, run_id, "raise_cap", Order(limits=wanted))
    say(f"At most {money(wanted.dollars)} and {wanted.model_calls} model calls now.")
    return code
