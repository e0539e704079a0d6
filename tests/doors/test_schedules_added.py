"""Schedules as people add them: what their times start, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import os
import plistlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
)

from commanded import refused
from conftest import Runs, seen
from holdfast import Holdfast
from holdfast.cli.commands.doors import schedule
from holdfast.cli.commands.runs import list as list_command
from holdfast.cli.commands.runs import show
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.schedules import lines
from holdfast.client import orders
from holdfast.client.schedules import Schedules, Shown
from holdfast.contracts import Order, Report
from holdfast.deployment.settings import Settings
from holdfast.embedded.allowed import allowed_roots
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.intake.requests import RunRequest
from holdfast.intake.scheduled import scheduled_of
from holdfast.intake.times import TypedTimes, clock_of, notes_of, times_of
from holdfast.replaying.replay import find_divergence
from holdfast.serving.schedules import Planner
from holdfast.untrusted.roots import open_file
from holdfast.workflows import WORKFLOWS
from hook_receiver import SECRET, Hooks, hook_receiver
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

RARELY = "300d"
LINES = {
    "plan": [plans(subtask("t1"))] * 2,
    "t1": [works("one")] * 2,
    "synthesize": [synthesizes("One [t1].")] * 2,
}
PLAN = ready(subtask("t1"))
SENDS: dict[str, Any] = {"webhook_secret": SECRET, "webhook_private": True}


@pytest.fixture
async def schedules(connection: Connection) -> AsyncIterator[Schedules]:
    made = Holdfast.on(connection).schedules
    yield made
    async for each in made.all():
        await made.delete(each.scheduled.name)


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with hook_receiver() as made:
        yield made


async def some_told(hooks: Hooks) -> None:
    async with asyncio.timeout(30):
        while not hooks.got:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def until(schedules: Schedules, name: str, condition: Callable[[Shown], object]) -> Shown:
    async with asyncio.timeout(60):
        while True:
            if condition(shown := await schedules.show(name)):
                return shown
            await asyncio.sleep(0.05)


def ended(number: int) -> Callable[[Shown], object]:
    return lambda shown: len(shown.last) == number and all(o.outcome.status for o in shown.last)


@pytest.mark.anyio
async def test_a_time_of_a_schedule_starts_a_run_like_any_other_and_its_price_is_listed(
    runs: Runs,
    schedules: Schedules,
    connection: Connection,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"nightly-{runs.queue}"
    request = RunRequest(goal="Compare", plan=PLAN, models=True)
    async with runs.worker(ScriptedModel(LINES)):
        added = await schedules.add(name, request, cron="0 6 * * 1-5", zone="Europe/Berlin")
        assert [each.hour for each in added.next] == [6] * 5 and added.last == ()
        await schedules.trigger(name)
        shown = await until(schedules, name, ended(1))
    (happened,) = shown.last
    outcome = happened.outcome
    assert (outcome.status, outcome.run[: len(name)]) == ("complete", name)
    assert ":" not in outcome.run and Decimal(outcome.dollars) > 0
    runs.handles.append(runs.client.get_workflow_handle(outcome.run, result_type=Report))
    await list_command.run(connection, 100, False)
    assert outcome.run in capsys.readouterr().out, "it is no part of another run"
    assert await show.run(connection, outcome.run, True, None) == Code.COMPLETE
    assert json.loads(capsys.readouterr().out)["run_id"] == outcome.run
    assert await schedule.show(schedules, "", as_json=False) == Code.COMPLETE
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{name}  0 6 * * 1-5 (Europe/Berlin)  active"
    assert said[1].startswith("  next: ") and said[1].count(" 06:00") == 5
    assert f"  {outcome.run}  complete  $0.0" in said[2]
    async for each in runs.client.list_workflows(f"TemporalScheduledById = '{name}'"):
        history = await runs.client.get_workflow_handle(each.id).fetch_history()
        assert not await find_divergence(history, WORKFLOWS, runs.store)


@pytest.mark.long
@pytest.mark.anyio
async def test_what_is_gone_when_the_time_comes_is_a_refusal_that_the_list_tells(
    runs: Runs,
    schedules: Schedules,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    hooks: Hooks,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = tmp_path / "rates.md"
    given.write_text("2.0, then 2.5")
    asked = {"goal": "Compare", "models": True, "inputs": {"rates": "rates.md"}}
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret.md"
    elsewhere.write_text("words")
    other = RunRequest(goal="Compare", models=True, inputs={"rates": str(elsewhere)})
    request = RunRequest.model_validate({**asked, "notify": [hooks.address]})
    async with runs.worker(ScriptedModel({}), **SENDS):
        added = await schedules.add(runs.queue, request, every=RARELY)
        assert added.scheduled.request["inputs"] == {"rates": str(given)}, "found from anywhere"
        given.unlink()
        assert not await schedules.trigger(runs.queue)
        shown = await until(schedules, runs.queue, ended(1))
        await some_told(hooks)
    (hook,) = hooks.got
    assert hook.told["type"] == "schedule.refused"
    assert hook.told["data"] == {"id": runs.queue, "event": 1}, "it says no more than what it is of"
    async with runs.worker(ScriptedModel({})):
        await schedules.add(f"x{runs.queue}", other, every=RARELY)
        await schedules.trigger(f"x{runs.queue}")
        never = await until(schedules, f"x{runs.queue}", ended(1))
    (happened,) = shown.last
    assert (happened.outcome.status, happened.outcome.run) == ("refused", "")
    assert "is below no allowed root; name one in" in never.last[0].outcome.why
    await schedule.show(schedules, "", as_json=False)
    said = capsys.readouterr().out
    assert f"refused: --input rates: there is no file or folder '{given}'" in said


@pytest.mark.anyio
async def test_a_budget_counts_open_runs_at_their_cap_and_pauses_the_schedule_with_the_reason(
    runs: Runs,
    schedules: Schedules,
    connection: Connection,
    hooks: Hooks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"m-{runs.queue}"
    asked = {"goal": "Compare", "plan": PLAN, "models": True, "dollars": 2, "approval": "always"}
    request = RunRequest.model_validate(asked)
    with pytest.raises(Refused, match=r"budget 1: one run may cost \$2.00; give more, or"):
        await schedules.add(name, request, every=RARELY, budget=Decimal(1))
    told = RunRequest.model_validate({**asked, "notify": [hooks.address], "on": ["budget"]})
    add = partial(schedules.add, name, told, every=RARELY, overlap="allow")
    async with runs.worker(ScriptedModel(LINES), **SENDS):
        with pytest.raises(Refused, match="30 days, and this namespace forgets runs after 1;"):
            await add(budget=Decimal(3))
        monkeypatch.setattr("holdfast.client.schedules.BUDGET_DAYS", 1)
        await add(budget=Decimal(3))
        await schedules.trigger(name)
        shown = await until(schedules, name, lambda it: it.last and it.last[0].outcome.run)
        first = shown.last[0].outcome.run
        assert shown.paid == 2
        await asyncio.sleep(1)  # Temporal names what a schedule starts by the second.
        await schedules.trigger(name)
        shown = await until(schedules, name, lambda it: it.paused)
        assert "30 days cost $2.00, one more may cost $2.00, and its budget is $3.00" in shown.note
        shown = await until(schedules, name, lambda it: len(it.last) == 2)
        assert shown.last[0].outcome.status in ("", "over budget")
        await some_told(hooks)
        assert hooks.types == ["schedule.paused"], "and nothing of the run that waits"
        handle = runs.client.get_workflow_handle(first, result_type=Report)
        runs.handles.append(handle)
        await seen(handle, lambda view: view.phase == "approval")
        await orders.send(connection, first, "approve", Order())
        shown = await until(schedules, name, ended(2))
    assert shown.paid is not None and 0 < shown.paid < 1, "what has ended counts as it was paid"
    assert {each.outcome.status for each in shown.last} == {"complete", "over budget"}


@pytest.mark.anyio
async def test_an_edit_changes_what_was_named_alone_and_others_schedules_are_nobodys(
    runs: Runs,
    schedules: Schedules,
    connection: Connection,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"e-{runs.queue}"
    request = RunRequest(goal="Compare", plan=PLAN, models=True, dollars=2, role="")
    await schedules.add(name, request, every=RARELY)
    with pytest.raises(Refused, match="edit it, or choose another name"):
        await schedules.add(name, request, every=RARELY)
    await schedules.pause(name, "holidays")
    typed = TypedTimes(zone="Asia/Tokyo", jitter="5m")
    asked = {"limits": {"dollars": "1", "subtasks": 3}}
    assert await schedule.edit(schedules, name, asked, typed, "", afresh=False) == Code.COMPLETE
    assert await schedule.steer(schedules, "trigger", name, "") == Code.COMPLETE
    assert "starts a run now, and stays paused: " in capsys.readouterr().err
    shown = await schedules.show(name)
    scheduled = shown.scheduled
    assert (shown.paused, shown.note) == (True, "holidays")
    assert (scheduled.times.every_seconds, scheduled.times.zone) == (300 * 86_400, "Asia/Tokyo")
    assert scheduled.request["limits"] == {"dollars": "1", "subtasks": 3}
    assert scheduled.request["goal"] == "Compare" and "dollars" not in scheduled.request
    elsewhere = Settings(project_name="shop", state_dir=connection.settings.state_dir)
    foreign = Schedules(Connection(elsewhere, connection.target, connection.client))
    with pytest.raises(Refused, match=r"is of project ''; change it from there"):
        await foreign.edit(name, request, scheduled.times, budget=None)
    other = f"other-{runs.queue}"
    theirs = await runs.client.create_schedule(
        other,
        Schedule(
            ScheduleActionStartWorkflow("SupervisorWorkflow", id=other, task_queue=runs.queue),
            ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=30))]),
        ),
    )
    try:
        for order in (schedules.delete, schedules.trigger, schedules.show, schedules.resume):
            with pytest.raises(Refused, match=f"there is no schedule '{other}'; `schedule list`"):
                await order(other)
        assert [each.scheduled.name async for each in schedules.all()] == [name]
    finally:
        await theirs.delete()


@pytest.mark.anyio
async def test_a_day_and_a_weekday_of_a_cron_line_must_both_fit_and_that_is_said(
    schedules: Schedules, runs: Runs
) -> None:
    shown = await schedules.add(
        f"f-{runs.queue}", RunRequest(goal="Compare", models=True), cron="0 6 13 * 5"
    )
    assert {(each.day, each.isoweekday()) for each in shown.next} == {(13, 5)}
    assert "  note: day and weekday must both fit" in [*lines(shown)]


@pytest.mark.anyio
async def test_a_time_that_comes_twice_when_summer_ends_is_one_and_one_left_out_in_spring_is_none(
    schedules: Schedules, runs: Runs
) -> None:
    add = partial(
        schedules.add,
        request=RunRequest(goal="Compare", models=True),
        zone="Europe/Berlin",
    )
    # The last Sundays of the months, when the clocks of Europe change.
    shown = await add(f"a-{runs.queue}", cron="30 2 25-31 10 7")
    assert len({each.date() for each in shown.next}) == 5
    several = await add(f"b-{runs.queue}", cron="*/30 2 25-31 10 7")
    on_days = Counter(each.date() for each in several.next)
    assert [*on_days.values()] == [2, 2, 1], "of what comes twice, once each"
    assert {each.hour for each in several.next} == {2, 3}, "the server has one an hour late"
    with pytest.raises(Refused, match="none of its times ever comes"):
        await add(f"s-{runs.queue}", cron="30 2 25-31 3 7")
    before = shown.scheduled
    never = times_of(TypedTimes(cron="30 2 25-31 3 7"), before.times)
    request = RunRequest.model_validate(before.request)
    with pytest.raises(Refused, match="none of its times ever comes"):
        await schedules.edit(before.name, request, never, budget=None)
    assert (await schedules.show(before.name)).next == shown.next, "it is as it was"


@pytest.mark.anyio
async def test_rows_that_a_schedule_brings_are_read_also_when_a_cleaning_has_removed_them(
    connection: Connection, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "scripted-key")
    settings = Settings(_env_file=None, state_dir=connection.settings.state_dir)
    target = replace(connection.target, embedded=True)
    planner, ours = Planner(settings, target), Connection(settings, target, connection.client)
    monkeypatch.setattr(Planner, "_connection", lambda *_: ours)
    rows = [{"rate": 2.5}]
    request = RunRequest.model_validate({"goal": "Compare", "inputs": {"rates": {"rows": rows}}})
    scheduled, _ = await scheduled_of(
        "s", request, times_of(TypedTimes(every="1h")), settings, embedded=True
    )
    for _ in range(2):
        due = await planner.prepare(scheduled, "s-2026-11-26T06:00:00Z")
        assert due.goal, due.outcome.why
        kept = Path(due.goal.inputs[0].value)
        os.close(open_file(kept, allowed_roots(settings, embedded=True)()))
        kept.rename(kept.with_name("gone"))


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "give one of --cron, --every and --once"),
        ("--every 1h --once 2030-01-01T00:00", "give one of --cron, --every and --once"),
        ("--cron '0 6 * * 1-5' --zone Europe/Berln", "no such time zone (did you mean"),
        ("--cron '0 6 * * 1-5' --zone Europe", "there is no such time zone"),
        ("--cron '0 0 31 2,4,6 *'", "that day never comes"),
        ("--cron '61 6 * * *'", "'61' is no minute; it takes 0 to 59"),
        ("--cron '0 6 * *'", "write five fields: minute, hour, day, month, weekday"),
        ("--cron '0 6 * * 5-1'", "'5-1' is no weekday"),
        ("--every 90", "--every '90': write a number and s, m, h or d"),
        ("--every 59s", "write a number and s, m, h or d, as 30m or 6h, from 60s"),
        ("--cron '* * * * * *'", "write five fields"),
        ("--every 1h --catch-up 1s", "--catch-up '1s': write a number"),
        ("--every 1h --overlap both", "--overlap 'both'; known: skip, queue, cancel, allow"),
        ("--once 2020-01-01T00:00", "that is over; give a time to come"),
        ("--once 2027-03-28T02:30 --zone Europe/Berlin", "clocks leave that time out"),
        ("--once 9999-12-31T23:59 --zone America/New_York", "no calendar has that"),
        ("--every 1h --jitter 2h", "longer than --every"),
        ("--once tomorrow", "write a time as 2027-01-31T06:00"),
        ("--every 1h --budget -1", "--budget '-1': write dollars above 0, at most"),
        ("--every 1h --limits dollars=0.01 --goal missing.json", "leave out the goal's other"),
    ],
)
def test_times_that_cannot_be_meant_are_one_line_before_anything_starts(
    typed: str, why: str, bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, f"schedule add x 'A goal' --single {typed}")
    assert why in said and "\n" not in said
    assert not bare_environment.exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("schedule show", "schedule show NAME: the name is missing"),
        ("schedule show 'a b'", "a name has up to 60 letters"),
        ("schedule pause x --every 1h", "what runs and when is said by add and edit"),
        ("schedule add x --every 1h --why because", "--why is for pause"),
        ("schedule edit x", "say what is to be different"),
        ("schedule list x", "it lists all; for one"),
        ("schedule service cron", "it prints systemd or launchd"),
        ("schedule add x --every 1h --playbook nope", "unknown playbook 'nope'"),
        ("schedule add x --every 1h --columns a,b G", "--columns is for --answer table"),
    ],
)
def test_options_that_say_nothing_to_a_command_are_refused(
    command: str, why: str, bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in refused(capsys, command)
    assert not bare_environment.exists()


def test_a_time_is_that_of_its_zone_also_when_summer_begins() -> None:
    winter = times_of(TypedTimes(once="2099-03-28T06:00", zone="Europe/Berlin")).once
    summer = times_of(TypedTimes(once="2099-03-30T06:00", zone="Europe/Berlin")).once
    assert winter == datetime(2099, 3, 28, 5, tzinfo=UTC)
    assert summer == datetime(2099, 3, 30, 4, tzinfo=UTC)
    said = notes_of(times_of(TypedTimes(cron="30 2 * mar,oct *", zone="Europe/Berlin")))
    assert len(said) == 1 and re.fullmatch(
        r"20..-03-(2[5-9]|3[01]) has no 02:30 in Europe/Berlin: no run then", said[0]
    )
    for cron in ("30 2 * oct *", "*/20 * * * *", "30 3 * * *"):
        assert notes_of(times_of(TypedTimes(cron=cron, zone="Europe/Berlin"))) == ()
    for cron, zone, read_in in (
        ("*/20 * * * *", "Europe/Berlin", "UTC"),
        ("*/20 * * * *", "Asia/Kolkata", "Asia/Kolkata"),
        ("0 * * * 1-5", "Europe/Berlin", "Europe/Berlin"),
        ("0 6 * * *", "Europe/Berlin", "Europe/Berlin"),
    ):
        assert clock_of(times_of(TypedTimes(cron=cron, zone=zone))) == read_in
    leap = times_of(TypedTimes(cron="*/15 0 29 FEB mon,7"))
    assert leap.cron == "*/15 0 29 feb mon,7", "it comes, if seldom"
    assert notes_of(leap) == ("day and weekday must both fit",)


def test_a_machine_is_told_to_start_the_embedded_server_by_files_that_its_own_tools_read(
    bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", "service", "systemd"]) == Code.COMPLETE
    said = capsys.readouterr()
    assert f'Environment="HOLDFAST_STATE_DIR={bare_environment}"' in said.out
    assert 'starter.py" "up"\n' in said.out and 'starter.py" "down"\n' in said.out
    assert "systemctl --user enable --now holdfast; loginctl enable-linger" in said.err
    assert main(["schedule", "service", "launchd"]) == Code.COMPLETE
    agent = plistlib.loads(capsys.readouterr().out.encode())
    assert agent["ProgramArguments"][-1] == "up" and agent["RunAtLoad"]
