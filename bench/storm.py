"""A storm of refusals: 6 runs of 10 subtasks at once, against an endpoint that admits so many calls
of a model a second and answers 429 with Retry-After beyond.

    python -m bench.storm [CALLS PER SECOND ...]        prints Markdown

Goodput is the calls of subtasks that were admitted, from the first to the last, over what the
endpoint would have admitted of their model in that time; what it had saved up before the first is
taken off.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bench.deployment import Deployment, deployed, parallel
from orchestrator.contracts import Goal

RUNS = 6
SUBTASKS = 10
LATENCY = (0.2, 0.6)
RATES = (2, 5, 10)


async def storm(rate: int) -> str:
    """One row of the table."""
    script = {"rate": rate, "burst": rate, "latency": list(LATENCY), "seed": rate}
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script) as deployment:
            watching = asyncio.create_task(_all_admitted(deployment))
            goals = [_goal(number) for number in range(RUNS)]
            handles = await asyncio.gather(*(deployment.start(goal) for goal in goals))
            seconds, admitted = await watching
            reports = await asyncio.gather(*(handle.result() for handle in handles))
            log = await asyncio.to_thread(deployment.simulator.log)
    failed = sum(each.status != "complete" for report in reports for each in report.findings)
    goodput = (admitted - rate) / (seconds * rate)
    refusals = log["refused"] / log["admitted"]
    known = sum(report.model_calls for report in reports)
    return (
        f"| {rate} | {failed} of {RUNS * SUBTASKS} | {admitted} in {seconds:.1f} s | {goodput:.2f} "
        f"| {refusals:.2f} ({log['refused']} per {log['admitted']}) | {log['duplicates']} "
        f"| {known} |"
    )


def _goal(number: int) -> Goal:
    goal = parallel(SUBTASKS, concurrency=SUBTASKS, deadline_seconds=3_600)
    assert goal.plan is not None
    # Each run its own words, so that a body that is asked twice was paid twice.
    subtasks = tuple(
        each.model_copy(update={"instruction": f"{each.instruction} in market {number}"})
        for each in goal.plan.subtasks
    )
    return goal.model_copy(update={"plan": goal.plan.model_copy(update={"subtasks": subtasks})})


async def _all_admitted(deployment: Deployment) -> tuple[float, int]:
    """Seconds from the first admitted call of a subtask to the last, and how many that were."""
    began = 0.0
    while True:
        log = await asyncio.to_thread(deployment.simulator.log)
        work = sum(each["admitted"] for each in log["bodies"].values() if each["call"] == "work")
        began = began or (time.monotonic() if work else 0.0)
        if work >= RUNS * SUBTASKS:
            return time.monotonic() - began, work
        await asyncio.sleep(0.05)


async def main(rates: tuple[int, ...]) -> None:
    sys.stdout.write(
        "| calls admitted per second | failed subtasks | admitted | goodput | refusals per "
        "admitted call | paid twice | calls in the reports |\n|---|---|---|---|---|---|---|\n"
    )
    for rate in rates:
        sys.stdout.write(await storm(rate) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(tuple(int(each) for each in sys.argv[1:]) or RATES))
