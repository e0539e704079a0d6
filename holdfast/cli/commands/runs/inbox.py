"""`inbox`: the runs that wait for a person, and for what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from rich.text import Text
from temporalio.client import WorkflowExecution

from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import OUT, put_json, say
from holdfast.cli.screen.waiting import Reminder, reminders
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import AsJson, Embedded
from holdfast.client.pauses import BY, unpause_command
from holdfast.client.reading import Reader
from holdfast.contracts.search import RUNS, WAITING
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.launch import in_outage, search_attributes_of
from holdfast.temporal.connection import is_part, is_paused
from holdfast.text import one_line, pluralize

AT_ONCE = 10
"""Runs that are read together."""


@dataclass(frozen=True)
class WaitingRun:
    """A run that waits for a person."""

    run_id: str
    goal: str
    reminders: tuple[Reminder, ...]
    unreadable: str = ""
    """Why what it asks cannot be read here; empty: it can."""


def command(as_json: AsJson = False, embedded: Embedded = False) -> int:
    """List the runs that wait for a person: what each asks, and the command that answers it."""
    return with_connection(Settings(), embedded, lambda connection: run(connection, as_json))


async def run(connection: Connection, as_json: bool) -> int:
    """Print what is asked, the oldest run first. Return 0, also when nothing is; 1 if there are
    runs that cannot be read here.
    """
    open_runs = [each async for each in _candidates(connection)]
    turn = asyncio.Semaphore(AT_ONCE)
    looks = await asyncio.gather(*(_asking(connection, each, turn) for each in open_runs))
    asking = [look for look in reversed(looks) if look.reminders or look.unreadable]
    away = await in_outage(connection.client, connection.target.namespace)
    if as_json:
        put_json(json.dumps([as_data(each) for each in asking], indent=2))
    else:
        _show(asking)
        if away:
            said = f"{pluralize(away, 'run')} {'waits' if away == 1 else 'wait'}"
            say(f"{said} for the endpoint of the models, for no person; {to_type('show', 'ID')}")
    return Code.FAILED if any(each.unreadable for each in asking) else Code.COMPLETE


async def _candidates(connection: Connection) -> AsyncIterator[WorkflowExecution]:
    """Yield open runs that may be waiting, newest first, and those that an operator has paused.
    Where the search attribute is missing or not yet set, the run's history decides.
    """
    query = f"{RUNS} AND CloseTime IS NULL"
    namespace = connection.target.namespace
    if WAITING.name in await search_attributes_of(connection.client, namespace):
        asks = f"{WAITING.name} = true OR {WAITING.name} IS NULL"
        query += f" AND ({asks} OR ExecutionStatus != 'Running')"
    async for each in connection.client.list_workflows(query):
        if not is_part(each):
            yield each


async def _asking(
    connection: Connection, run: WorkflowExecution, turn: asyncio.Semaphore
) -> WaitingRun:
    """Return what a run asks, which may be nothing."""
    async with turn:
        look = await Reader(connection, run.id).look()
    view = look.view
    asked = reminders(view) if view and not look.unreadable else ()
    if is_paused(run):
        asked = (Reminder(f"the run is {BY}", unpause_command(run.id)), *asked)
    return WaitingRun(run.id, view.title if view else "", asked, look.unreadable)


def as_data(asking: WaitingRun) -> dict[str, object]:
    """Return a waiting run as JSON data."""
    waiting = [
        {"question": each.text, "command": each.command, **each.call} for each in asking.reminders
    ]
    told: dict[str, object] = {"id": asking.run_id, "goal": asking.goal, "waiting": waiting}
    return told | ({"unreadable": asking.unreadable} if asking.unreadable else {})


def _show(asking: list[WaitingRun]) -> None:
    if not asking:
        say("No run waits for a person.")
    for each in asking:
        OUT.print(Text.assemble((one_line(each.run_id), "bold"), f"  {one_line(each.goal)}"))
        for reminder in each.reminders:
            OUT.print(Text(f"  ? {one_line(reminder.text)}", style="magenta"), soft_wrap=True)
            OUT.print(Text(f"    {one_line(reminder.remedy)}", style="dim"), soft_wrap=True)
        if each.unreadable:
            why = f"  ! what it asks, if anything, cannot be read: {one_line(each.unreadable)}"
            OUT.print(Text(why, style="magenta"), soft_wrap=True)
