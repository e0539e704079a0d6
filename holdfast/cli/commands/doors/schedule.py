"""`schedule`: runs that start by the clock."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.schedules import lines
from holdfast.cli.screen.streams import put, put_json, say, say_all
from holdfast.cli.shared.connection import with_connection
from holdfast.cli.shared.options import (
    AnswerAs,
    Approve,
    AsJson,
    AskPeople,
    Bulk,
    Columns,
    Embedded,
    GoalFile,
    GoalText,
    Inputs,
    LimitPairs,
    Models,
    NoTemplate,
    NotifyOn,
    NotifyUrls,
    PlanFile,
    Playbook,
    Roles,
    SchemaFile,
    Single,
    SingleRole,
    Unpriced,
    Urgent,
    WaitForRaise,
    Why,
    not_empty,
    urgency_of,
)
from holdfast.cli.shared.starting import endpoint_known, say_what_is_sent
from holdfast.client.connecting import configured_target
from holdfast.contracts import Approval
from holdfast.deployment import services
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.intake.answers import WantedForm, form_of, read_schema
from holdfast.intake.connection import Connection
from holdfast.intake.goals import approval_of, limits_of
from holdfast.intake.plans import read_plan
from holdfast.intake.requests import read_request, read_request_file
from holdfast.intake.scheduled import budget_of, check_name, merged, scheduled_of
from holdfast.intake.times import TypedTimes, times_of

if TYPE_CHECKING:
    from holdfast.client.schedules import Schedules

What = Literal["add", "list", "show", "pause", "resume", "trigger", "delete", "edit", "service"]
Fields = Mapping[str, Any]


def command(
    what: Annotated[
        What,
        typer.Argument(
            metavar="WHAT",
            help="add, list, show, pause, resume, trigger, delete, edit, or service.",
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(metavar="SCHEDULE", help="Its name; of a service, systemd or launchd."),
    ] = "",
    goal: GoalText = "",
    cron: Annotated[
        str,
        typer.Option(
            "--cron",
            metavar="CRON",
            help="Minute, hour, day, month, weekday: '0 6 * * 1-5'.",
            callback=not_empty,
        ),
    ] = "",
    every: Annotated[
        str,
        typer.Option("--every", metavar="DURATION", help="As 30m, 6h or 1d.", callback=not_empty),
    ] = "",
    once: Annotated[
        str,
        typer.Option(
            "--once", metavar="AT", help="One time, as 2027-01-31T06:00.", callback=not_empty
        ),
    ] = "",
    zone: Annotated[
        str,
        typer.Option(
            "--zone",
            metavar="ZONE",
            help="Time zone, as Europe/Berlin. Default: UTC.",
            callback=not_empty,
        ),
    ] = "",
    jitter: Annotated[
        str,
        typer.Option(
            "--jitter",
            metavar="DURATION",
            help="Start up to so much later, by chance.",
            callback=not_empty,
        ),
    ] = "",
    catch_up: Annotated[
        str,
        typer.Option(
            "--catch-up",
            metavar="DURATION",
            help="Make up for a time that was missed so short ago. Default: 1h.",
            callback=not_empty,
        ),
    ] = "",
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap",
            metavar="POLICY",
            help="While the run before is open: skip (default), queue, cancel it, or allow both.",
            callback=not_empty,
        ),
    ] = "",
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="DOLLARS",
            help="The most that its runs of 30 days may cost; then it pauses.",
            callback=not_empty,
        ),
    ] = "",
    goal_file: GoalFile = None,
    playbook: Playbook = "",
    inputs: Inputs = None,
    plan: PlanFile = None,
    single: Single = False,
    role: SingleRole = "",
    roles: Roles = None,
    no_template: NoTemplate = False,
    urgent: Urgent = False,
    bulk: Bulk = False,
    limits: LimitPairs = None,
    models: Models = False,
    unpriced: Unpriced = False,
    approval: Approve = "",
    ask_people: AskPeople = False,
    wait_for_raise: WaitForRaise = False,
    notify: NotifyUrls = None,
    on: NotifyOn = "",
    answer: AnswerAs = "",
    schema: SchemaFile = None,
    columns: Columns = None,
    why: Why = "",
    as_json: AsJson = False,
    embedded: Embedded = False,
) -> int:
    """Start runs by the clock: add, look at, pause, change and delete schedules."""
    typed = TypedTimes(cron, every, once, zone, jitter, catch_up, overlap)
    fields: dict[str, Any] = {
        "goal": goal,
        "playbook": playbook,
        "inputs": _pairs(inputs),
        "plan": read_plan(plan).model_dump(mode="json") if plan else None,
        "single": single,
        "role": role,
        "roles": roles,
        "limits": _limits(limits),
        "models": models,
        "unpriced": unpriced,
        "approval": _approval(approval),
        "ask_people": ask_people,
        "wait_for_raise": wait_for_raise,
        "notify": notify,
        "on": [part.strip() for part in on.split(",") if part.strip()],
        "answer": _answer(answer, schema, columns),
    }
    if urgent or bulk:
        fields["urgency"] = urgency_of(urgent=urgent, bulk=bulk)
    asked = {field: value for field, value in fields.items() if value}
    if no_template:
        asked["template"] = False
    if goal_file is not None:
        if asked:
            raise Exit(
                f"--goal {goal_file}: it says all that is asked; leave out the goal's other options"
            )
        asked = read_request_file(goal_file).model_dump(
            mode="json", by_alias=True, exclude_unset=True
        )
    _check_fits(what, name, bool(asked or budget or typed != TypedTimes()), why)
    settings = Settings()
    if what == "service":
        return print_service(settings, name)
    if what == "add":
        return add(settings, name, asked, typed, budget, embedded=embedded)

    async def done(connection: Connection) -> int:
        # What speaks to the server is loaded when something is said to it.
        from holdfast.client.schedules import Schedules

        schedules = Schedules(connection)
        if what == "edit":
            return await edit(schedules, name, asked, typed, budget, afresh=goal_file is not None)
        if what in ("list", "show"):
            return await show(schedules, name, as_json=as_json)
        return await steer(schedules, what, name, why)

    return with_connection(settings, embedded, done)


def _check_fits(what: str, name: str, asked: bool, why: str) -> None:
    """Exit for a name that is missing, or for options that say nothing to this."""
    if what == "list" and name:
        raise Exit(f"schedule list: it lists all; for one: {STARTER} schedule show NAME")
    if what not in ("list", "service"):
        if not name:
            raise Exit(f"schedule {what} NAME: the name is missing")
        check_name(name)
    if asked and what not in ("add", "edit"):
        raise Exit(f"schedule {what}: what runs and when is said by add and edit; leave it out")
    if why and what != "pause":
        raise Exit(f"schedule {what}: --why is for pause; leave it out")
    if what == "edit" and not asked:
        raise Exit(f"schedule edit {name}: say what is to be different, by the options of add")


# ---------------------------------------------------------------- what was typed


def _pairs(inputs: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in inputs or ():
        name, given, value = pair.partition("=")
        if not given or not name or not value:
            raise Exit(f"--input {pair!r}: write name=PATH, or name=text:... for literal text")
        if name in found:
            raise Exit(f"--input {name}: given twice; give each input once")
        found[name] = value
    return found


def _limits(pairs: list[str] | None) -> dict[str, Any]:
    return limits_of(tuple(pairs or ())).model_dump(mode="json", exclude_unset=True)


def _approval(text: str) -> str:
    if not text:
        return ""
    found = approval_of(text, Approval())
    return str(found.dollars) if found.when == "above" else found.when


def _answer(kind: str, schema: Path | None, columns: str | None) -> dict[str, Any]:
    if not kind:
        # Refuses what says more of a form than which it is.
        form_of(WantedForm("", schema, columns), None, use_models=True)
        return {}
    given: dict[str, Any] = {"kind": kind}
    if schema is not None:
        given["schema"] = read_schema(schema)
    if columns is not None:
        given["columns"] = columns.split(",")
    return given


# ---------------------------------------------------------------- adding and changing


def add(
    settings: Settings,
    name: str,
    asked: Fields,
    typed: TypedTimes,
    budget: str,
    *,
    embedded: bool,
) -> int:
    """Check a schedule as `start` checks a run, and add it."""
    ours = embedded or not settings.uses_own_server
    if not ours:
        configured_target(settings)
    scheduled, goal = asyncio.run(
        scheduled_of(
            name,
            read_request({**asked}, f"schedule {name}"),
            times_of(typed),
            settings,
            budget=budget_of(budget),
            embedded=ours,
        )
    )

    async def added(connection: Connection) -> int:
        from holdfast.client.schedules import Schedules

        shown = await Schedules(connection).put(scheduled, goal)
        for line in lines(shown):
            put(line)
        where = endpoint_known(settings, embedded=connection.target.embedded)
        if goal.use_models:
            say("Each run of it:", "dim")
        say_what_is_sent(goal, where)
        if connection.target.embedded:
            say(
                "The embedded server stays up for it until this machine or you end it. To have it"
                f" back after a restart: {STARTER} schedule service",
                "dim",
            )
        return Code.COMPLETE

    return with_connection(settings, embedded, added)


async def edit(
    schedules: Schedules,
    name: str,
    asked: Fields,
    typed: TypedTimes,
    budget: str,
    *,
    afresh: bool,
) -> int:
    """Change what was typed of a schedule, all that it asks for if that came `afresh`."""
    before = (await schedules.show(name)).scheduled
    request = {**asked} if afresh else merged(before.request, asked)
    shown = await schedules.edit(
        name,
        read_request(request, f"schedule {name}"),
        times_of(typed, before.times),
        budget=budget_of(budget) if budget else before.budget,
    )
    for line in lines(shown):
        put(line)
    return Code.COMPLETE


async def steer(schedules: Schedules, what: str, name: str, why: str) -> int:
    """Pause, resume, trigger or delete."""
    match what:
        case "pause":
            await schedules.pause(name, why)
            said = "is paused; an open run of it goes on"
        case "resume":
            await schedules.resume(name)
            said = "starts runs again"
        case "trigger":
            paused = await schedules.trigger(name)
            besides = ", and stays paused" * paused
            said = f"starts a run now{besides}: {STARTER} schedule show {name}"
        case _:
            await schedules.delete(name)
            said = "is deleted; its runs stay"
    say(f"Schedule {name} {said}")
    return Code.COMPLETE


# ---------------------------------------------------------------- showing


async def show(schedules: Schedules, name: str, *, as_json: bool) -> int:
    """Print one schedule, or all."""
    found = [await schedules.show(name)] if name else [each async for each in schedules.all()]
    if as_json:
        # Loaded already: only a server has schedules.
        from holdfast.client.schedules import view_of

        data = [view_of(each).model_dump(mode="json") for each in found]
        put_json(json.dumps(data[0] if name else data, indent=2))
        return Code.COMPLETE
    if not found:
        say(f"No schedules. Add one: {STARTER} schedule add NAME --cron '0 6 * * 1-5' …")
    for each in found:
        for line in lines(each):
            put(line)
        if name:
            put("  asks for:")
            put_json(json.dumps(each.scheduled.request, indent=2))
    return Code.COMPLETE


def print_service(settings: Settings, kind: str) -> int:
    """Print the file by which this machine starts the embedded server when it starts."""
    kind = kind or ("launchd" if sys.platform == "darwin" else "systemd")
    if kind not in services.KINDS:
        raise Exit(f"schedule service {kind!r:.60}: it prints systemd or launchd")
    if settings.uses_own_server:
        raise Exit(
            "schedule service: it is for the embedded server; on a server of your own schedules"
            " need a worker that runs"
        )
    text, where = services.KINDS[kind](settings)
    put(text)
    say_all(where, "dim")
    return Code.COMPLETE
