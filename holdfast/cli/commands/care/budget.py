"""`budget`: what the deployment may spend and has spent, and a change of it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import put, put_json
from holdfast.cli.shared.connection import tell, with_connection
from holdfast.cli.shared.options import AsJson, Embedded, dollars_of, not_empty
from holdfast.contracts.treasury import Caps, Statement
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection, require_worker
from holdfast.intake.launch import priority_of
from holdfast.rendering.treasury import UNCOUNTED, lines
from holdfast.temporal.treasury import Treasurer, Unanswered

NONE = "none"
LOOKS = 15


def command(
    day: Annotated[
        str,
        typer.Option(
            "--day", metavar="DOLLARS", callback=not_empty, help="The most a day, or none."
        ),
    ] = "",
    month: Annotated[
        str,
        typer.Option(
            "--month", metavar="DOLLARS", callback=not_empty, help="The most a month, or none."
        ),
    ] = "",
    requester: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="REQUESTER",
            help="With --day: the most a day for whom `list` names so.",
            callback=not_empty,
        ),
    ] = "",
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Show what all workers together may spend and have spent; or change it, for the next call."""
    if requester and (month or not day):
        raise Exit("--for: give it with --day, as in --for anna --day 5")
    typed = {"day": day, "month": month}
    changes = {name: _most(name, text) for name, text in typed.items() if text}
    return with_connection(
        Settings(),
        embedded,
        lambda connection: run(connection, changes, requester, as_json=as_json),
    )


async def run(
    connection: Connection,
    changes: Mapping[str, Decimal | None],
    requester: str,
    *,
    as_json: bool,
) -> int:
    """Change what is to be changed, and show how it is then."""
    await require_worker(connection, tell, models=False)
    client, queue = connection.client, connection.target.task_queue
    treasurer = Treasurer(lambda: client, queue, Caps())
    try:
        found = await _look(treasurer)
        if found is None:
            raise Exit(UNCOUNTED)
        if changes:
            await treasurer.set_caps(_changed(found.caps, changes, requester))
            found = await _look(treasurer)
            assert found is not None, "a treasurer does not end"
    except Unanswered as error:
        raise Exit(f"the treasurer does not answer: {error}", Code.UNREACHABLE) from error
    if as_json:
        put_json(found.model_dump_json(indent=2))
        return Code.COMPLETE
    for line in lines(found):
        put(line)
    return Code.COMPLETE


async def _look(treasurer: Treasurer) -> Statement | None:
    """Return how its books stand. A worker that has just been started answers after some seconds.
    Raise Unanswered.
    """
    for _ in range(LOOKS - 1):
        try:
            return await treasurer.look()
        except Unanswered:
            await asyncio.sleep(1)
    return await treasurer.look()


def _most(name: str, text: str) -> Decimal | None:
    return None if text == NONE else dollars_of(f"--{name}", text)


def _changed(caps: Caps, changes: Mapping[str, Decimal | None], requester: str) -> Caps:
    if not requester:
        return caps.model_copy(update=changes)
    key = priority_of("normal", requester).fairness_key or ""
    each = {name: most for name, most in caps.each.items() if name != key}
    if (most := changes["day"]) is not None:
        each[key] = most
    return caps.model_copy(update={"each": each})
