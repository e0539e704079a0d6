"""How much sooner a run is done than the same subtasks one after another, both measured.

    python -m bench.latency [TIMES]        prints Markdown

Load B of `bench.overhead`, 24 uneven subtasks in four layers, is run so many times with as much at
once as its plan could use and so many times with one at a time, in turns, in one deployment against
a scripted model. Seconds are those of the reports, start to end.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.instruments.clients import silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from bench.overhead.loads import LOADS, script
from holdfast.contracts import Goal

COLUMNS = (("at once", "runs", "P50, s", "P95, s", "longest chain, P50, s"),)
TIMES = 20


def alone(goal: Goal) -> Goal:
    """The same with one subtask at a time."""
    return goal.model_copy(update={"limits": goal.limits.model_copy(update={"concurrency": 1})})


async def took(deployment: Deployment, goal: Goal) -> tuple[float, float]:
    """Seconds of a run, and of its longest chain, by its report."""
    report = await (await deployment.start(goal)).result()
    assert report.status == "complete" and report.timings is not None, report.status
    return report.timings.makespan, report.timings.critical_path


def told(name: str, measured: Sequence[tuple[float, float]]) -> str:
    """The row of one way to run it."""
    seconds = [each for each, _ in measured]
    many = len(seconds) > 1
    late = statistics.quantiles(seconds, n=20, method="inclusive")[-1] if many else seconds[0]
    middle = statistics.median(seconds)
    chain = statistics.median(chain for _, chain in measured)
    return row((name, len(seconds), f"{middle:.1f}", f"{late:.1f}", f"{chain:.1f}"))


async def main(times: int = TIMES) -> None:
    (load,) = (each for each in LOADS if each.mark == "B")
    together, apart = list[tuple[float, float]](), list[tuple[float, float]]()
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script([load])) as deployment:
            await took(deployment, load.goal(0))
            for number in range(1, times + 1):
                together.append(await took(deployment, load.goal(number)))
                apart.append(await took(deployment, alone(load.goal(times + number))))
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    write(told("as the plan could use", together))
    write(told("one", apart))


if __name__ == "__main__":
    silence()
    asyncio.run(main(*(int(each) for each in sys.argv[1:])))
