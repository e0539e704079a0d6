"""`start`: start a run and return its id at once."""

from __future__ import annotations

import asyncio

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import put, say, say_all
from holdfast.cli.shared.asked import read_asked
from holdfast.cli.shared.options import (
    AnswerAs,
    Approve,
    AskPeople,
    Bulk,
    Columns,
    Embedded,
    GivenId,
    GoalFile,
    GoalText,
    Inputs,
    LimitPairs,
    MapLane,
    Models,
    NoTemplate,
    NotifyOn,
    NotifyUrls,
    PlanFile,
    Playbook,
    ReuseRun,
    Roles,
    SchemaFile,
    Single,
    SingleRole,
    Unpriced,
    Urgent,
    WaitForRaise,
    Yes,
    urgency_of,
)
from holdfast.cli.shared.starting import (
    approval_when,
    endpoint_known,
    say_what_is_sent,
    start_run,
    with_span,
)
from holdfast.cli.shared.without import say_without
from holdfast.client.connecting import configured_target
from holdfast.contracts import Goal
from holdfast.deployment.invocation import to_type
from holdfast.deployment.settings import Settings
from holdfast.intake.answers import WantedForm
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, goal_of
from holdfast.rendering.amounts import money
from holdfast.telemetry.otel.commands import CommandSpan


def command(
    goal: GoalText = "",
    goal_file: GoalFile = None,
    playbook: Playbook = "",
    inputs: Inputs = None,
    plan: PlanFile = None,
    single: Single = False,
    role: SingleRole = "",
    roles: Roles = None,
    no_template: NoTemplate = False,
    lane: MapLane = None,
    urgent: Urgent = False,
    bulk: Bulk = False,
    reuse: ReuseRun = "",
    limits: LimitPairs = None,
    run_id: GivenId = "",
    models: Models = False,
    unpriced: Unpriced = False,
    approval: Approve = "",
    yes: Yes = False,
    ask_people: AskPeople = False,
    wait_for_raise: WaitForRaise = False,
    notify: NotifyUrls = None,
    on: NotifyOn = "",
    answer: AnswerAs = "",
    schema: SchemaFile = None,
    columns: Columns = None,
    embedded: Embedded = False,
) -> int:
    """Start a run and print its id on stdout; the run finishes by itself."""
    settings = Settings()
    # Nobody is asked anyway: as `run` has it, and instead of what a goal's file says.
    when = approval_when(approval, yes=yes, terminal=False)
    wish = Wish(
        goal,
        playbook,
        tuple(inputs or ()),
        plan,
        tuple(limits or ()),
        models,
        unpriced,
        when,
        ask_people,
        wait_for_raise,
        WantedForm(answer, schema, columns),
        single,
        role,
        tuple(roles or ()),
        tuple(notify or ()),
        (on,) if on else (),
        templates=not no_template,
        lane=lane,
        urgency=urgency_of(urgent=urgent, bulk=bulk),
        reuse=reuse,
    )
    wish, run_id = read_asked(goal_file, wish, run_id, settings, decided=bool(approval or yes))
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    catalogue = Catalogue.of(settings.project)
    wanted = asyncio.run(goal_of(wish, catalogue, settings, embedded=ours))
    say_without(wanted, catalogue, settings, embedded=ours)
    return with_span(
        "start", settings, embedded, lambda connection, span: run(connection, wanted, run_id, span)
    )


async def run(
    connection: Connection, goal: Goal, run_id: str, span: CommandSpan | None = None
) -> int:
    """Start a run and print its id, alone on stdout for scripts."""
    where = endpoint_known(connection.settings, embedded=connection.target.embedded)
    say_what_is_sent(goal, where)
    fresh = await start_run(connection, goal, run_id, span=span)
    put(fresh)
    say_all(_waits(goal, fresh))
    say(f"Watch it with: {to_type('watch', fresh)}; its page: {to_type('report', fresh)}", "dim")
    return Code.COMPLETE


def _waits(goal: Goal, run_id: str) -> list[str]:
    """Return lines that say that the run waits for a decision on its plan, and how to give it."""
    if goal.approval.when == "auto":
        return []
    which = "its plan"
    if goal.approval.when == "above":
        which = f"a plan that is expected to cost more than {money(goal.approval.dollars)}"
    return [
        f"It works on {which} only when somebody has approved it, and waits up to a week:",
        f"  see it: {to_type('show', run_id)} --full",
        f"  decide: {to_type('approve', run_id)}  (or: edit, reject)",
    ]
