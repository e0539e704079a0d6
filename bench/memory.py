"""Whether worker and server keep what they need no more: their memory over many runs.

    python -m bench.memory [RUNS] [AT_ONCE]     prints Markdown; 1,000 runs take some minutes

Runs of six subtasks that are answered at once, in words of their own. MB are those resident, after
each hundred, when none is open.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bench.instruments.clients import silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from bench.instruments.usage import resident
from bench.overhead.loads import Load

COLUMNS = (("runs", "worker, MB", "server, MB", "runs/s"),)
LOAD = Load("M", "runs of 6 subtasks", ((0.0,) * 6,))
EVERY = 100


async def hundred(deployment: Deployment, first: int, count: int, at_once: int) -> float:
    """Do this many runs, never more than `at_once` at a time; runs a second."""
    numbers = iter(range(first, first + count))

    async def lane() -> None:
        for number in numbers:
            handle = await deployment.start(LOAD.goal(number))
            report = await handle.result()
            assert report.status == "complete", report.status

    began = time.monotonic()
    await asyncio.gather(*(lane() for _ in range(at_once)))
    return count / (time.monotonic() - began)


def cells(deployment: Deployment) -> tuple[str, str]:
    """MB of worker and server now."""
    worker, server = deployment.pid("worker"), deployment.pid("server")
    assert worker and server
    return f"{resident(worker):.0f}", f"{resident(server):.0f}"


async def main(runs: int = 1_000, at_once: int = 20) -> None:
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), {}) as deployment:
            write(row((0, *cells(deployment), "")))
            for first in range(0, runs, EVERY):
                count = min(EVERY, runs - first)
                speed = await hundred(deployment, first, count, at_once)
                write(row((first + count, *cells(deployment), f"{speed:.1f}")))
                sys.stdout.flush()


if __name__ == "__main__":
    silence()
    asyncio.run(main(*(int(each) for each in sys.argv[1:])))
