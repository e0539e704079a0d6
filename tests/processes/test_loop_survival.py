"""Agents that stand at every step of their loops when their worker is killed: what had finished is
neither asked nor run again. Real processes; one blow strikes all steps, because each of the agents
stands at another one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.instruments.deployment import deployed, part, planned
from holdfast.contracts import Goal

pytestmark = [pytest.mark.long, pytest.mark.anyio]

WORKER = Path(__file__).parents[1] / "support" / "loop_worker.py"
TURNS = 3
STEPS = TURNS * 5 + 3
"""Uses of the journal: three a turn and two a call of a tool; the last turn answers."""
SCRIPT = {
    "mark": r"part \d+ of",
    "rules": [
        {"turn": turn, "tools": [{"name": "look", "input": {"page": turn}}]}
        for turn in range(1, TURNS + 1)
    ],
}


def loops(count: int) -> Goal:
    """So many agents at once."""
    subtasks = tuple(part(n).model_copy(update={"role": "reader"}) for n in range(1, count + 1))
    return planned(subtasks, concurrency=count)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - other processes are waited for
        await asyncio.sleep(0.2)


async def test_at_no_step_of_a_loop_does_a_killed_worker_repeat_what_had_finished(
    tmp_path: Path,
) -> None:
    async with deployed(tmp_path, SCRIPT, WORKER) as deployment:
        state = deployment.settings.state_dir
        (state / "hesitate").touch()
        handle = await deployment.start(loops(STEPS))
        noted = state / "hesitating"
        await until(lambda: noted.exists() and len(noted.read_text().splitlines()) == STEPS)
        (state / "hesitate").unlink()
        deployment.kill_worker()
        report = await deployment.result(handle)
        log = await asyncio.to_thread(deployment.simulator.log)
    halted = [line.split() for line in noted.read_text().splitlines()]
    steps = Counter((what, activity) for _, what, activity in halted)
    assert len(steps) == STEPS, "each agent stood at a step of its own"
    assert report.status == "complete", report.gaps
    unrecorded = [activity for _, what, activity in halted if what == "record"]
    turns = [each for each in unrecorded if each.startswith("turn-")]
    tools = [each for each in unrecorded if each.startswith("tool-")]
    assert len(turns) == TURNS + 1 and len(tools) == TURNS
    # What had arrived and was not kept yet is asked again, and nothing else is.
    charged = STEPS * (TURNS + 1) + len(turns)
    assert sum(each["calls"] for each in log["marks"].values() if each["calls"]) >= charged
    assert log["again"] == len(turns)
    runs = [line.split() for line in (state / "runs").read_text().splitlines()]
    assert [each for each in runs if each[0] == "again"] == []
    assert len(runs) == STEPS * TURNS + len(tools)
    assert len({key for _, key in runs}) == STEPS * TURNS
