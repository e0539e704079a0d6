"""What it costs a worker to tell what it does: the story in its log, and spans for a backend.

    python -m bench.tracing [RUNS] [TIMES]     prints Markdown

Runs of six subtasks against a scripted model, four at a time. Both are counted where they are spent
and compared with all else that the same worker did meanwhile: so other work on the machine, which
makes every instruction slower, makes no difference. Not counted with the spans is what the SDK's
native part spends on handing a history over. Medians and ranges of the repetitions.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.instruments.clients import silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from bench.instruments.usage import cpu_seconds
from bench.overhead.loads import Load
from bench.tracing import COLUMNS, FILE
from holdfast.deployment.settings import HOME
from holdfast.telemetry.otel.closed_runs import LAG, LOOK_SECONDS
from holdfast.telemetry.otel.exporting import VARIABLES

WORKER = HOME / "bench" / "tracing" / "measured_worker.py"
LOAD = Load("T", "runs of 6 subtasks", ((0.0,) * 6,))
AT_ONCE = 4
TOLD = {"story": "the story in the log", "spans": "spans of closed runs"}
Spent = dict[str, float]
"""Milliseconds of CPU, a run: of the whole worker, and of what it told."""


@contextmanager
def backend() -> Iterator[str]:
    """Takes whatever is sent, and keeps nothing; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


async def spent(runs: int) -> Spent:
    """One repetition, by processes of its own."""
    with backend() as address, tempfile.TemporaryDirectory() as place:
        file = Path(place, "spent.json")
        # The worker has the environment of whoever starts it.
        os.environ |= {VARIABLES[0]: address, FILE: str(file)}
        async with deployed(Path(place), {}, WORKER, heals=False) as deployment:
            await do(deployment, 0, AT_ONCE)
            # What is made once, by the first run and its spans, is no run's.
            await asyncio.sleep(LAG.total_seconds())
            before = so_far(deployment, file)
            await do(deployment, AT_ONCE, runs)
            await asyncio.sleep(2 * LOOK_SECONDS)
            after = so_far(deployment, file)
    return {what: (after[what] - before[what]) / runs * 1_000 for what in after}


async def do(deployment: Deployment, first: int, count: int) -> None:
    """Do this many runs, never more than some at a time."""
    numbers = iter(range(first, first + count))

    async def lane() -> None:
        for number in numbers:
            report = await (await deployment.start(LOAD.goal(number))).result()
            assert report.status == "complete", report.status

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


def so_far(deployment: Deployment, file: Path) -> Spent:
    """Seconds of the worker's CPU, and of that what it counted itself."""
    worker = deployment.pid("worker")
    assert worker
    counted: Spent = json.loads(file.read_text())
    return {"worker": cpu_seconds(worker), **counted}


def told(what: str, each: Sequence[Spent]) -> str:
    """The row of one thing that is told."""
    took = statistics.median(one[what] for one in each)
    of = sorted(one[what] / (one["worker"] - one["story"] - one["spans"]) for one in each)
    share = f"{statistics.median(of):.1%} ({of[0]:.1%} to {of[-1]:.1%})"
    return row((TOLD[what], f"{took:.1f}", share))


async def main(runs: int = 60, times: int = 5) -> None:
    each = [await spent(runs) for _ in range(times)]
    sys.stdout.write(head(COLUMNS[0]))
    for what in TOLD:
        sys.stdout.write(told(what, each))
    worker = statistics.median(one["worker"] for one in each)
    sys.stdout.write(f"\nThe whole worker: {worker:.1f} ms a run.\n")


if __name__ == "__main__":
    silence()
    asyncio.run(main(*(int(each) for each in sys.argv[1:])))
