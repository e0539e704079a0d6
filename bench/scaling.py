"""How a run grows with its subtasks: events and bytes of its history, CPU of the workflow's code,
memory, and the longest workflow task.

    python -m bench.scaling [COUNT ...]        prints Markdown; 30, 200 and 1,000 by default

Each run is of independent subtasks, as many at once as a run may have, in a deployment of its own,
against a model that answers at once. CPU is that of a strict replay of the whole history, which
does what the workflow did and compares it; memory is the most that a reader needs who makes the
state of the run from its history.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from bench.instruments.deployment import Deployment, deployed, parallel
from bench.instruments.tables import head
from holdfast.history.history import Fold
from holdfast.replaying.replay import played
from holdfast.storage import store_at
from holdfast.workflows import WORKFLOWS

COUNTS = (30, 200, 1_000)
COLUMNS = (
    ("subtasks", "at once", "seconds", "events", "history", "CPU of the workflow",
     "longest task", "memory"),
)  # fmt: skip
AT_ONCE = 500
"""The most that `Limits.concurrency` allows."""
TASK_STARTED = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@dataclass(frozen=True)
class Measured:
    """What one run took."""

    subtasks: int
    seconds: float
    events: int
    history_bytes: int
    cpu: float
    longest: float
    memory_bytes: int

    def row(self) -> str:
        """Of the table, with what each subtask took."""
        n = self.subtasks
        return (
            f"| {n:,} | {min(n, AT_ONCE)} | {self.seconds:.1f} "
            f"| {self.events:,} ({self.events / n:.1f}) "
            f"| {self.history_bytes / 1e6:.2f} MB ({self.history_bytes / n / 1e3:.1f} KB) "
            f"| {self.cpu:.2f} s ({self.cpu / n * 1e3:.1f} ms) | {self.longest:.2f} s "
            f"| {self.memory_bytes / 1e6:.1f} MB ({self.memory_bytes / n / 1e3:.0f} KB) |\n"
        )


async def measured(deployment: Deployment, count: int) -> Measured:
    """A run of this many subtasks, and its replay."""
    began = time.monotonic()
    handle = await deployment.start(parallel(count, concurrency=min(count, AT_ONCE), tokens=10**9))
    report = await handle.result()
    seconds = time.monotonic() - began
    assert report.status == "complete", report.gaps
    history = await handle.fetch_history()
    size = (await handle.describe()).raw_description.workflow_execution_info.history_size_bytes
    store = store_at(deployment.target.store_url)
    longest = _longest(history.events)
    before = time.process_time()
    assert (await played(history, WORKFLOWS, store)).differences == ()
    cpu = time.process_time() - before
    fold = Fold(handle.id, deployment.client.data_converter)
    tracemalloc.start()
    for event in history.events:
        await fold.take(event)
    _, memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Measured(count, seconds, len(history.events), size, cpu, longest, memory)


def _longest(events: Iterable[HistoryEvent]) -> float:
    """Seconds of the longest workflow task, from its start to its completion."""
    longest, started = 0.0, 0.0
    for event in events:
        at = event.event_time.ToNanoseconds() / 1e9
        if event.event_type == TASK_STARTED:
            started = at
        elif event.event_type == TASK_COMPLETED:
            longest = max(longest, at - started)
    return longest


async def main(counts: tuple[int, ...]) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), {}) as deployment:
            await (await deployment.start(parallel(1))).result()
            for count in counts:
                sys.stdout.write((await measured(deployment, count)).row())
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(tuple(int(each) for each in sys.argv[1:]) or COUNTS))
