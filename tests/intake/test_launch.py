"""Starting a run without the command line, as a webhook or a schedule would."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Runs
from holdfast.cli.commands.runs import list as listing
from holdfast.contracts import Goal, GoalInput, Limits
from holdfast.embedded.allowed import read_registered
from holdfast.errors import IdTaken, NoWorker, Refused
from holdfast.intake.connection import Connection, require_worker
from holdfast.intake.inputs import input_of
from holdfast.intake.launch import Launched, launch
from steered import report_of, script

pytestmark = pytest.mark.anyio


class Told:
    """What was said to whoever asked: each line, and whether it was a warning."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool]] = []

    def __call__(self, line: str, *, warning: bool = False) -> None:
        self.lines.append((line, warning))


async def test_a_run_is_started_once_and_nothing_is_printed(
    runs: Runs, connection: Connection, capfd: pytest.CaptureFixture[str]
) -> None:
    told = Told()
    goal = Goal(text="Compare three engines", use_models=True, requester="webhook")
    async with runs.worker(script()):
        assert await launch(connection, goal, "hooked", told) == Launched("hooked")
        assert await launch(connection, goal, "hooked", told) == Launched("hooked", attached=True)
        other = goal.model_copy(update={"limits": Limits(subtasks=3)})
        with pytest.raises(IdTaken) as refused:
            await launch(connection, other, "hooked", told)
        assert refused.value.run_id == "hooked"
        assert (await report_of(connection, "hooked")).status == "complete"
    assert told.lines == []
    assert capfd.readouterr() == ("", "")


async def test_a_path_that_leads_elsewhere_since_it_was_looked_at_is_not_allowed(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    shared, outside = tmp_path / "shared", tmp_path / "outside.md"
    shared.mkdir()
    outside.write_text("secret")
    named = shared / "a.md"
    named.symlink_to(outside)
    with pytest.raises(Refused, match="below no allowed root"):
        input_of(f"a={named}", None, (shared,))
    goal = Goal(
        text="Sum it up",
        use_models=True,
        inputs=(GoalInput(name="a", kind="file", value=str(named)),),
    )
    embedded = replace(connection, target=replace(connection.target, embedded=True))
    await launch(embedded, goal, "raced", below=(shared,))
    allowed = {each.path for each in read_registered(connection.settings)}
    assert shared in allowed and outside not in allowed


async def test_a_list_tells_the_project_of_a_run_that_has_one(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Goal(text="Compare three engines", use_models=True)
    listed: dict[str, str] = {}
    async with runs.worker(script()), asyncio.timeout(30):
        await launch(connection, plain.model_copy(update={"project": "mine"}), "ours", Told())
        await launch(connection, plain, "plain", Told())
        while not {"ours", "plain"} <= {*listed}:
            assert await listing.run(connection, 1000, True) == 0
            listed = {row["id"]: row["project"] for row in json.loads(capsys.readouterr().out)}
    assert (listed["ours"], listed["plain"]) == ("mine", "")


async def test_whoever_asks_is_told_what_a_start_waits_for(
    runs: Runs, connection: Connection
) -> None:
    told = Told()
    with pytest.raises(NoWorker):
        await require_worker(connection, told, models=False, wait=0.1)
    queue = connection.target.task_queue
    assert told.lines == [(f"Waiting for a worker on task queue {queue!r} …", False)]
    async with runs.worker():
        await require_worker(connection, told, models=True)
    line, warning = told.lines[-1]
    assert warning and line.startswith("Nobody asks the models")
