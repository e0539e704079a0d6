"""`run`: start a run, watch it, print its report."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from activities.catalogue import Catalogue
from cli.board import money
from cli.connection import Connection, configured_target, connected
from cli.exits import Code
from cli.follow import to_the_end
from cli.goal import Asked, endpoint_of, goal_of
from cli.launch import check_id, launch
from cli.options import (
    AsJson,
    Embedded,
    GivenId,
    GoalText,
    Inputs,
    LimitPairs,
    Models,
    OutFile,
    PlanFile,
    Playbook,
    Unpriced,
    check_out,
)
from cli.screen import ERR, say, without_password
from orchestrator.contracts import Goal
from orchestrator.settings import Settings

ASK_ABOVE_DOLLARS = 0.5


@dataclass(frozen=True)
class Arguments:
    """What `run` does around the goal itself."""

    run_id: str
    as_json: bool
    out: Path | None
    stay: bool


def command(
    goal: GoalText = "",
    playbook: Playbook = "",
    inputs: Inputs = None,
    plan: PlanFile = None,
    limits: LimitPairs = None,
    run_id: GivenId = "",
    as_json: AsJson = False,
    out: OutFile = None,
    models: Models = False,
    unpriced: Unpriced = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before a run that may spend money.")
    ] = False,
    stay: Annotated[
        bool, typer.Option("--stay", help="In a terminal: keep the Web UI up until Enter.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Start a run, watch it, print its report.

    Ctrl-C leaves the run to finish by itself; `watch ID` comes back to it.
    """
    settings = Settings()
    asked = Asked(goal, playbook, tuple(inputs or ()), plan, tuple(limits or ()), models, unpriced)
    arguments = Arguments(check_id(run_id), as_json, check_out(out), stay)
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    wanted = asyncio.run(goal_of(asked, Catalogue.load(), settings, embedded=ours))
    if not yes and not agreed(wanted, endpoint_of(settings) if ours else "the worker's endpoint"):
        say("Declined; nothing was started.")
        return Code.DECLINED
    return asyncio.run(_connected_run(settings, wanted, arguments, embedded))


def agreed(goal: Goal, endpoint: str) -> bool:
    """Whether the person at the terminal accepts what the run may spend and send; asked only when
    models are used, above $0.50, and somebody can answer.
    """
    if not goal.use_models:
        return True
    sent = ", ".join(
        each.name if each.kind == "text" else f"{each.name} ({each.value})" for each in goal.inputs
    )
    most = money(goal.limits.dollars)
    say(f"Models at {without_password(endpoint)} are asked; at most {most} is spent.")
    say(f"Sent there: the goal{', and what they need of your inputs: ' + sent if sent else ''}.")
    asks = goal.limits.dollars > ASK_ABOVE_DOLLARS and sys.stdin.isatty() and ERR.is_terminal
    return not asks or typer.confirm("Start it?", default=True, err=True)


async def _connected_run(
    settings: Settings, goal: Goal, arguments: Arguments, embedded: bool
) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, goal, arguments)


async def run(connection: Connection, goal: Goal, arguments: Arguments) -> int:
    """Start and follow to the end; the exit code of what came out."""
    run_id = await launch(connection, goal, arguments.run_id)
    code = await to_the_end(connection, run_id, as_json=arguments.as_json, out=arguments.out)
    if arguments.stay and connection.target.embedded:
        await stay_up(connection)
    return code


async def stay_up(connection: Connection) -> None:
    """Hold the Web UI until Enter or Ctrl-C; at once if nobody sits at a terminal."""
    if not sys.stdin.isatty() or not ERR.is_terminal:
        return
    say(f"The Web UI stays up at {connection.target.ui_url} until you press Enter.", "bold")
    pressed = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Not input() in a thread: it could not be interrupted, and would hold up the exit.
    loop.add_reader(sys.stdin.fileno(), pressed.set)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await pressed.wait()
            os.read(sys.stdin.fileno(), 4096)
    finally:
        loop.remove_reader(sys.stdin.fileno())
