"""Starting a run without the command line, as a webhook or a schedule would."""

from __future__ import annotations

import pytest

from conftest import Runs
from holdfast.contracts import Goal, Limits
from holdfast.intake.connection import Connection, require_worker
from holdfast.intake.launch import Launched, launch
from holdfast.intake.refusal import Refused
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
        with pytest.raises(Refused) as refused:
            await launch(connection, other, "hooked", told)
        assert (refused.value.kind, refused.value.run_id) == ("taken", "hooked")
        assert (await report_of(connection, "hooked")).status == "complete"
    assert told.lines == []
    assert capfd.readouterr() == ("", "")


async def test_whoever_asks_is_told_what_a_start_waits_for(
    runs: Runs, connection: Connection
) -> None:
    told = Told()
    with pytest.raises(Refused) as refused:
        await require_worker(connection, told, models=False, wait=0.1)
    assert refused.value.kind == "no worker"
    queue = connection.target.task_queue
    assert told.lines == [(f"Waiting for a worker on task queue {queue!r} …", False)]
    async with runs.worker():
        await require_worker(connection, told, models=True)
    line, warning = told.lines[-1]
    assert warning and line.startswith("Nobody asks the models")
