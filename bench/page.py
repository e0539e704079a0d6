"""How large the page of a run is, and how long it takes to be read and drawn.

    python -m bench.page [TIMES]        prints Markdown

Runs of 6 and 30 subtasks, each an agent of ten turns and nine calls of a tool, against a scripted
model. What is read are the histories of the run and of its agents. Seconds are medians.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from bench.agents import QUICK, WORKER, goal
from bench.instruments.clients import silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from holdfast.cli.commands.runs.report import page_of
from holdfast.cli.shared.doing import Turns
from holdfast.cli.shared.reading import Look, Reader
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection

COLUMNS = (
    ("subtasks", "steps of the run", "turns and calls of tools", "page, KB",
     "of it agents' turns, KB", "run read, s", "agents read, s", "drawn, s"),
)  # fmt: skip
TIMES = 5
Made = TypeVar("Made")


async def timed(times: int, work: Callable[[], Awaitable[Made]]) -> tuple[Made, float]:
    """What it made, and the median of its seconds."""
    taken = list[float]()
    for _ in range(times):
        began = time.perf_counter()
        made = await work()
        taken.append(time.perf_counter() - began)
    return made, statistics.median(taken)


async def measured(deployment: Deployment, subtasks: int, times: int) -> str:
    """The row of one run."""
    handle = await deployment.start(goal(f"{subtasks} pages", subtasks))
    report = await deployment.result(handle)
    assert report.status == "complete", report.status
    connection = Connection(Settings(), deployment.target, deployment.client)
    look, read = await timed(times, lambda: Reader(connection, handle.id).look())

    async def agents() -> Look:
        return replace(look, turns=await Turns(connection, handle.id).of(look.steps))

    whole, more = await timed(times, agents)

    async def draw() -> str:
        return page_of(handle.id, whole)

    page, drawn = await timed(times, draw)
    done = sum(map(len, whole.turns.values()))
    own = (len(page.encode()) - len(page_of(handle.id, look).encode())) / 1_000
    size = len(page.encode()) / 1_000
    shown = (f"{size:.0f}", f"{own:.0f}", f"{read:.2f}", f"{more:.2f}", f"{drawn:.2f}")
    return row((subtasks, len(look.steps), done, *shown))


async def main(times: int = TIMES) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), QUICK, WORKER) as deployment:
            for subtasks in (6, 30):
                sys.stdout.write(await measured(deployment, subtasks, times))


if __name__ == "__main__":
    silence()
    asyncio.run(main(*(int(each) for each in sys.argv[1:])))
