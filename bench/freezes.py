"""A worker that is stopped with calls in flight, and goes on later: what is paid again?

    python -m bench.freezes [seconds ...]        0, 20 and 65 unless told

32 calls of 3 s are in flight when SIGSTOP falls; their answers arrive meanwhile. "paid" counts the
answers that the simulator charged: as many as in the undisturbed row is right. The ledger is
compared with what it charged.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.instruments.deployment import Deployment, deployed, parallel
from holdfast.contracts import Report

RUNS = 2
CALLS = 16
SCRIPT = {"latency": 3.0, "tokens_per_second": 0}


async def in_flight(deployment: Deployment, number: int) -> None:
    """Return once this many calls wait for their answer at the same time."""
    while True:
        log = await asyncio.to_thread(deployment.simulator.log)
        if log["requests"] >= number:
            return
        await asyncio.sleep(0.05)


async def frozen(seconds: float) -> tuple[list[Report], dict[str, object], float]:
    """Reports, the simulator's log, and seconds from waking to the end."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SCRIPT) as deployment:
            goal = parallel(CALLS, concurrency=CALLS, deadline_seconds=7_200)
            handles = [await deployment.start(goal) for _ in range(RUNS)]
            await in_flight(deployment, RUNS * CALLS)
            pid = deployment.pid("worker")
            assert pid, "the worker does not run"
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
            finally:
                os.kill(pid, signal.SIGCONT)
            woke = time.monotonic()
            reports = [await deployment.result(handle) for handle in handles]
            took = time.monotonic() - woke
            return reports, await asyncio.to_thread(deployment.simulator.log), took


async def main() -> None:
    """Print the table."""
    durations = [float(each) for each in sys.argv[1:]] or [0.0, 20.0, 65.0]
    write = sys.stdout.write
    write("| frozen | paid | ledger | charged | gaps | seconds from waking to the end |\n")
    write("|---:|---:|---:|---:|---:|---:|\n")
    for seconds in durations:
        reports, log, took = await frozen(seconds)
        ledger = sum(report.dollars or 0 for report in reports)
        gaps = sum(len(report.gaps) for report in reports)
        name = f"{seconds:g} s" if seconds else "not at all"
        cells = (name, log["admitted"], ledger, log["dollars"], gaps, f"{took:.1f}")
        write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
