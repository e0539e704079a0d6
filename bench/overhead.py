"""What the engine adds to the work: three loads whose ideal is known, against the simulator.

    python -m bench.overhead        prints Markdown

The critical path is that of the scripted latencies, with the synthesis and its critique. The 200
subtasks are runs of 25 side by side, because a run has at most 30.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.instruments.deployment import Deployment, deployed, parallel, part, planned
from bench.instruments.tables import head
from orchestrator.contracts import Goal, Report, Subtask

COLUMNS = (("load", "measured", "over the ideal"),)
LAYERS = 4
WIDTH = 6
SHORT, LONG = 0.5, 3.0
ENDING = 0.5
"""Seconds that each of synthesis and critique takes."""
MANY_RUNS = 100
SMALL = 6
SPLIT = 25
"""Subtasks of each of the runs that make 200."""


def uneven() -> tuple[Goal, float, dict[str, Any]]:
    """24 subtasks in 4 layers, each needing two of the layer before; its critical path; the script
    that makes them take from 0.5 to 3 seconds.
    """
    seconds: dict[str, float] = {}
    path: dict[str, float] = {}
    subtasks: list[Subtask] = []
    rules = []
    for number in range(1, LAYERS * WIDTH + 1):
        layer, place = divmod(number - 1, WIDTH)
        before = [
            f"t{(layer - 1) * WIDTH + (place + step) % WIDTH + 1}"
            for step in range(2 if layer else 0)
        ]
        share = (number * 7 % 24) / 23
        seconds[f"t{number}"] = SHORT + share * (LONG - SHORT)
        path[f"t{number}"] = seconds[f"t{number}"] + max((path[each] for each in before), default=0)
        subtasks.append(part(number, *before))
        latency = [seconds[f"t{number}"]] * 2
        rules.append({"call": "work", "text": f"part {number} of", "latency": latency})
    script = {
        # Backwards: a prompt also holds what the subtasks before it found.
        "rules": rules[::-1],
        "latencies": {"synthesize": [ENDING, ENDING], "critique": [ENDING, ENDING]},
    }
    goal = planned(tuple(subtasks), concurrency=len(subtasks))
    return goal, max(path.values()) + 2 * ENDING, script


async def one_run(goal: Goal, script: dict[str, Any]) -> tuple[Report, float]:
    """A run on a worker that has served another before; its report and seconds."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script) as deployment:
            await finished(deployment, [parallel(1)])
            ((report,), seconds) = await finished(deployment, [goal])
            return report, seconds


async def many_runs(goals: list[Goal], script: dict[str, Any]) -> tuple[list[Report], float]:
    """All these runs at once."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script) as deployment:
            await finished(deployment, [parallel(1)])
            return await finished(deployment, goals)


async def finished(deployment: Deployment, goals: list[Goal]) -> tuple[list[Report], float]:
    """The reports of these runs, started together, and the seconds until the last."""
    began = time.monotonic()
    handles = await asyncio.gather(*(deployment.start(goal) for goal in goals))
    reports = await asyncio.gather(*(handle.result() for handle in handles))
    seconds = time.monotonic() - began
    assert all(report.status == "complete" for report in reports)
    return list(reports), seconds


async def main() -> None:
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    goal, critical, script = uneven()
    _, seconds = await one_run(goal, script)
    write(f"| 24 uneven subtasks in 4 layers | {seconds:.1f} s | critical path {critical:.1f} s: ")
    write(f"{seconds / critical:.2f} |\n")
    sys.stdout.flush()
    _, seconds = await many_runs([parallel(SMALL)] * MANY_RUNS, {})
    calls = MANY_RUNS * (SMALL + 2)
    write(f"| {MANY_RUNS} runs of {SMALL} subtasks, answered at once | {seconds:.1f} s | ")
    write(f"{MANY_RUNS / seconds:.1f} runs/s, {calls / seconds:.0f} model calls/s |\n")
    sys.stdout.flush()
    runs = 200 // SPLIT
    latencies = {"latencies": {"work": [0.5, 0.5]}}
    goals = [parallel(SPLIT, concurrency=SPLIT)] * runs
    _, seconds = await many_runs(goals, latencies)
    write(f"| 200 subtasks of 0.5 s: {runs} runs of {SPLIT} | {seconds:.1f} s | ")
    write(f"{200 / seconds:.0f} subtasks/s |\n")


if __name__ == "__main__":
    asyncio.run(main())
