"""`doctor`, of previews: how good the prices were that they said."""

from __future__ import annotations

from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.cli.checks.diagnosis import Checkup
from holdfast.rules.past import Calibration, calibrate
from holdfast.temporal.connection import Target
from holdfast.temporal.past import read_past
from holdfast.text import pluralize


async def check_previews(client: Client, target: Target) -> list[Checkup]:
    """Compare what the latest closed runs cost with what their previews said; nothing where there
    are none.
    """
    try:
        found = calibrate(await read_past(client, target.task_queue))
    except RPCError as error:
        why = f"priced by sizes alone: the server lists no closed runs: {error}"
        return [Checkup("models", "previews", "note", why)]
    return [Checkup("models", "previews", "ok", say_calibration(found))] if found else []


def say_calibration(found: Calibration) -> str:
    """Return how many runs cost what had been said, in a sentence's words."""
    within = f"{found.within / found.runs:.0%} within the range said before"
    return (
        f"of {pluralize(found.runs, 'run')} {within}, half of them off by {found.off:.0%} at most"
    )
