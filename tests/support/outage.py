"""What tests of an endpoint that cannot be reached ask for, and what a reader sees of it."""

from __future__ import annotations

from typing import Any

from conftest import Handle, seen
from holdfast.contracts import Goal, Order, Report
from scripted import ready


def goal(*subtasks: dict[str, Any], **fields: Any) -> Goal:
    plan = {"plan": ready(*subtasks)} if subtasks else {}
    return Goal.model_validate({"text": "Compare engines", "use_models": True, **plan, **fields})


async def tell(handle: Handle, name: str, **fields: object) -> None:
    await handle.execute_update(name, Order.model_validate(fields))


async def waits(handle: Handle) -> str:
    """What a reader is told of the outage, once the run waits for its end."""
    view = await seen(handle, lambda each: any("cannot be reached" in note for note in each.notes))
    return next(note for note in view.notes if "cannot be reached" in note)


def paid(report: Report) -> int:
    assert report.dollars is not None and report.assumed == 0
    return report.model_calls
