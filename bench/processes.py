"""Whether several worker processes on one server do more, and share the work evenly.

    python -m bench.processes [RUNS]        prints Markdown

Runs of six subtasks that are answered at once, all together. Which worker had a call is in the
run's history. The first worker is the embedded server's, the others are started beside it as on a
server of one's own; all have the same state directory, store and endpoint.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from bench.instruments.clients import silence
from bench.instruments.deployment import POLL_SECONDS, Deployment, deployed
from bench.instruments.tables import head, row
from bench.instruments.usage import Usage, used
from bench.overhead.loads import Load
from holdfast.deployment.settings import HOME
from holdfast.embedded.identity import worker_environment
from holdfast.workers.pollers import pollers

COLUMNS = (
    ("workers", "calls/s", "runs/s", "worker CPU, ms a call", "server CPU, ms a call",
     "most and fewest calls of a worker, of an equal share"),
)  # fmt: skip
LOAD = Load("P", "runs of 6 subtasks", ((0.0,) * 6,))
WORKERS = (1, 2, 4)
RUNS = 100
CALLS = LOAD.size + 2


@asynccontextmanager
async def another(deployment: Deployment) -> AsyncIterator[int]:
    """One more worker on this server; its pid. It ends with the block."""
    environment = worker_environment(deployment.settings) | {
        "TEMPORAL_ADDRESS": deployment.target.address,
        "STORE_URL": deployment.target.store_url,
        "HOLDFAST_TASK_QUEUE": deployment.target.task_queue,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HOME / "worker.py"), cwd=HOME, env=environment,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


async def all_poll(deployment: Deployment, count: int) -> None:
    """Return when this many workers ask for work."""
    queue = deployment.target.task_queue
    while True:
        found = await pollers(deployment.client, [queue])
        if len({each.identity for each in found[queue] if each.alive}) >= count:
            return
        await asyncio.sleep(POLL_SECONDS)


async def done(deployment: Deployment, first: int, runs: int) -> list[WorkflowHandle[Any, Any]]:
    """Do these runs at once."""
    numbers = range(first, first + runs)
    handles = await asyncio.gather(*(deployment.start(LOAD.goal(number)) for number in numbers))
    for report in await asyncio.gather(*(handle.result() for handle in handles)):
        assert report.status == "complete", report.status
    return handles


async def shares(handles: Sequence[WorkflowHandle[Any, Any]]) -> Counter[str]:
    """Calls that each worker began, free ones not counted."""
    counted: Counter[str] = Counter()
    for handle in handles:
        asked: set[int] = set()
        async for event in handle.fetch_history_events():
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name in ("work", "synthesize", "critique"):
                asked.add(event.event_id)
            started = event.activity_task_started_event_attributes
            if started.scheduled_event_id in asked:
                counted[started.identity] += 1
    return counted


async def measured(workers: int, runs: int) -> tuple[float, Usage, Counter[str]]:
    """Seconds, what was used a call, and the calls of each worker."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), {}) as deployment, AsyncExitStack() as stack:
            others = [
                await stack.enter_async_context(another(deployment)) for _ in range(workers - 1)
            ]
            await all_poll(deployment, workers)
            await done(deployment, 0, 2 * workers)
            before = await used(deployment, others)
            began = time.monotonic()
            handles = await done(deployment, 2 * workers, runs)
            seconds = time.monotonic() - began
            spent = await used(deployment, others) - before
            return seconds, spent / (runs * CALLS), await shares(handles)


async def main(runs: int = RUNS) -> None:
    write = sys.stdout.write
    write(f"{runs} runs of {CALLS} calls at once; {os.cpu_count()} cores\n\n")
    write(head(COLUMNS[0]))
    for workers in WORKERS:
        seconds, spent, counted = await measured(workers, runs)
        even = sum(counted.values()) / workers
        fewest = min(counted.values()) if len(counted) == workers else 0
        cells = (
            workers,
            f"{runs * CALLS / seconds:.0f}",
            f"{runs / seconds:.1f}",
            f"{1_000 * spent.worker:.1f}",
            f"{1_000 * spent.server:.1f}",
            f"{max(counted.values()) / even:.2f}, {fewest / even:.2f}",
        )
        write(row(cells))
        sys.stdout.flush()


if __name__ == "__main__":
    silence()
    asyncio.run(main(*(int(each) for each in sys.argv[1:])))
