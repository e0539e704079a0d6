"""`run`: start a run, watch it, print its report; or only show what its plan would cost."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.calling.fixing import FIX_INPUT
from holdfast.cli.commands.runs import dry_run
from holdfast.cli.commands.runs.watch import to_the_end
from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import at_terminal, read_line, say
from holdfast.cli.shared.asked import read_asked
from holdfast.cli.shared.options import (
    AnswerAs,
    Approve,
    AsJson,
    AskPeople,
    Bulk,
    Columns,
    CommentFile,
    DryRun,
    Embedded,
    FailOn,
    FixFile,
    Full,
    GivenId,
    GoalFile,
    GoalText,
    Inputs,
    LimitPairs,
    Links,
    MapLane,
    Models,
    NoTemplate,
    NotifyOn,
    NotifyUrls,
    OutFile,
    PlanFile,
    Playbook,
    ReuseRun,
    Roles,
    SarifFile,
    SchemaFile,
    Single,
    SingleRole,
    Unpriced,
    Urgent,
    WaitForRaise,
    Yes,
    check_out,
    pipeline_of,
    urgency_of,
)
from holdfast.cli.shared.pipeline import Pipeline
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
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.intake.answers import WantedForm
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, goal_of
from holdfast.telemetry.otel.commands import CommandSpan


@dataclass(frozen=True)
class RunOptions:
    """The options of `run` beside the goal itself."""

    run_id: str
    as_json: bool
    out: Path | None
    stay: bool
    full: bool = False
    pipeline: Pipeline = field(default_factory=Pipeline)


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
    as_json: AsJson = False,
    out: OutFile = None,
    models: Models = False,
    unpriced: Unpriced = False,
    dry: DryRun = False,
    full: Full = False,
    approval: Approve = "",
    yes: Yes = False,
    ask_people: AskPeople = False,
    wait_for_raise: WaitForRaise = False,
    notify: NotifyUrls = None,
    on: NotifyOn = "",
    answer: AnswerAs = "",
    schema: SchemaFile = None,
    columns: Columns = None,
    fail_on: FailOn = "",
    sarif: SarifFile = None,
    comment: CommentFile = None,
    links: Links = "",
    fix: FixFile = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="In a terminal: keep the Web UI up until Enter.")
    ] = False,
    embedded: Embedded = False,
) -> int:
    """Start a run, watch it, print its report.

    In a terminal you are shown the plan first if it is expected to cost more than $0.50. Ctrl-C
    leaves the run to finish by itself; `watch ID` comes back to it.
    """
    settings = Settings()
    when = approval_when(approval, yes=yes, terminal=at_terminal())
    if dry:
        when = dry_run.APPROVAL
    if fix and not models:
        raise Exit("--fix: a model writes patches; add --models")
    given = (*(inputs or ()), *([f"{FIX_INPUT}=yes"] if fix else ()))
    wish = Wish(
        goal,
        playbook,
        given,
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
    decided = bool(approval or yes or dry)
    wish, run_id = read_asked(goal_file, wish, run_id, settings, decided=decided)
    dry_run.check_own(dry, run_id)
    pipeline = pipeline_of(fail_on, sarif, comment, links, out, fix)
    if dry and pipeline.wanted:
        raise Exit("--dry-run reviews nothing; leave out --fail-on, --sarif and --comment")
    options = RunOptions(run_id, as_json, check_out(out), stay, full, pipeline)
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    catalogue = Catalogue.of(settings.project)
    if not wish.playbook or wish.playbook in catalogue.playbooks:
        file = catalogue.playbooks.get(wish.playbook)
        pipeline.check(file.template if file else "", "this run")
    wanted = asyncio.run(goal_of(wish, catalogue, settings, embedded=ours))
    wanted = wanted.model_copy(update={"plan_only": dry})
    say_without(wanted, catalogue, settings, embedded=ours)
    say_what_is_sent(wanted, endpoint_known(settings, embedded=ours))
    return with_span(
        "run", settings, embedded, lambda connection, span: run(connection, wanted, options, span)
    )


async def run(
    connection: Connection, goal: Goal, options: RunOptions, span: CommandSpan | None = None
) -> int:
    """Start a run and follow it to the end; return the exit code of its report."""
    run_id = await start_run(connection, goal, options.run_id, span=span)
    if goal.plan_only:
        return await dry_run.finish(connection, run_id, as_json=options.as_json, full=options.full)
    code = await to_the_end(
        connection, run_id, as_json=options.as_json, out=options.out, pipeline=options.pipeline
    )
    if options.stay and connection.target.embedded:
        await stay_up()
    return code


async def stay_up() -> None:
    """Hold the Web UI until Enter or Ctrl-C; at once if nobody sits at a terminal."""
    if not at_terminal():
        return
    say("The Web UI stays up until you press Enter, and for a minute after that.", "bold")
    say(f"Longer: {STARTER} up, until {STARTER} down", "dim")
    with contextlib.suppress(asyncio.CancelledError, EOFError):
        await read_line()
