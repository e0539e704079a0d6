"""Runs that one of Temporal's own Schedules starts: their ids are of Temporal's making."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest
from temporalio.client import (
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleSpec,
)

from conftest import Runs, seen
from holdfast.cli.commands.care import export
from holdfast.cli.commands.runs import compare, report, show
from holdfast.cli.commands.runs import list as list_command
from holdfast.cli.commands.steering import cancel
from holdfast.cli.screen.exits import Code
from holdfast.client import orders
from holdfast.contracts import Approval, Goal, Order, Report
from holdfast.intake.connection import Connection
from holdfast.text import PLAIN_ID
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

GOAL = Goal(
    text="Compare", plan=ready(subtask("t1")), use_models=True, approval=Approval(when="always")
)
LINES = {"t1": [works("one"), works("one")], "synthesize": [synthesizes("One [t1].")]}


async def begun(schedule: ScheduleHandle, number: int) -> list[str]:
    """The ids of its runs, once there are so many."""
    while True:
        taken = (await schedule.describe()).info.recent_actions
        started = [each.action for each in taken]
        if len(started) == number:
            return [
                each.workflow_id
                for each in started
                if isinstance(each, ScheduleActionExecutionStartWorkflow)
            ]
        # An id names the second: the next run has another.
        await asyncio.sleep(0.1)


async def test_a_run_that_a_schedule_started_is_read_steered_and_written_down_like_any_other(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    action = ScheduleActionStartWorkflow(
        "SupervisorWorkflow", GOAL, id=f"nightly-{runs.queue}", task_queue=runs.queue
    )
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=30))])
    async with runs.worker(ScriptedModel(LINES)), asyncio.timeout(60):
        schedule = await runs.client.create_schedule(
            f"of-{runs.queue}", Schedule(action, spec), trigger_immediately=True
        )
        try:
            [run_id] = await begun(schedule, 1)
        finally:
            await schedule.delete()
        assert re.fullmatch(r"nightly-.*T\d\d:\d\d:\d\dZ", run_id) and PLAIN_ID.fullmatch(run_id)
        handle = runs.client.get_workflow_handle(run_id, result_type=Report)
        runs.handles.append(handle)
        await seen(handle, lambda view: view.phase == "approval")
        await orders.send(connection, run_id, "approve", Order())
        assert (await handle.result()).status == "complete"
    assert await cancel.run(connection, run_id) == Code.COMPLETE, "it is over, and that is said"
    await list_command.run(connection, 100, False)
    assert run_id in capsys.readouterr().out
    kept = connection.settings.state_dir / "reports"
    assert await show.run(connection, run_id, True, None) == Code.COMPLETE
    assert json.loads(capsys.readouterr().out)["run_id"] == run_id
    assert await report.run(connection, run_id, None, open_it=False) == Code.COMPLETE
    assert capsys.readouterr().out.strip() == (kept / f"{run_id}.html").as_uri()
    assert {each.name for each in kept.iterdir()} == {
        f"{run_id}.{it}" for it in ("md", "json", "html")
    }
    assert await compare.run(connection, run_id, run_id, as_json=False) == Code.COMPLETE
    history = kept / "history.json"
    assert await export.run(connection, run_id, history) == Code.COMPLETE
    assert run_id in history.read_text()
