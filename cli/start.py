"""`start`: start a run and return its id at once."""

from __future__ import annotations

import asyncio

from activities.catalogue import Catalogue
from cli.connection import Connection, configured_target, connected
from cli.exits import Code
from cli.goal import Asked, approval_of, goal_of
from cli.invocation import STARTER
from cli.launch import check_id, launch
from cli.options import (
    Approve,
    AskPeople,
    Embedded,
    GivenId,
    GoalText,
    Inputs,
    LimitPairs,
    Models,
    PlanFile,
    Playbook,
    Unpriced,
    WaitForRaise,
)
from cli.screen import put, say
from orchestrator.contracts import Approval, Goal
from orchestrator.settings import Settings


def command(
    goal: GoalText = "",
    playbook: Playbook = "",
    inputs: Inputs = None,
    plan: PlanFile = None,
    limits: LimitPairs = None,
    run_id: GivenId = "",
    models: Models = False,
    unpriced: Unpriced = False,
    approval: Approve = "",
    ask_people: AskPeople = False,
    wait_for_raise: WaitForRaise = False,
    embedded: Embedded = False,
) -> int:
    """Start a run and print its id on stdout; the run finishes by itself."""
    settings = Settings()
    when = approval_of(approval, Approval())
    asked = Asked(
        goal, playbook, tuple(inputs or ()), plan, tuple(limits or ()), models, unpriced,
        when, ask_people, wait_for_raise,
    )  # fmt: skip
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    wanted = asyncio.run(goal_of(asked, Catalogue.load(), settings, embedded=ours))
    return asyncio.run(_connected_run(settings, wanted, check_id(run_id), embedded))


async def _connected_run(settings: Settings, goal: Goal, run_id: str, embedded: bool) -> int:
    async with connected(settings, embedded=embedded) as connection:
        return await run(connection, goal, run_id)


async def run(connection: Connection, goal: Goal, run_id: str) -> int:
    """Start and return; the id alone on stdout, for scripts."""
    started = await launch(connection, goal, run_id)
    put(started)
    say(f"Watch it with: {STARTER} watch {started}", "dim")
    return Code.COMPLETE
