"""Paid answers under fire: the worker killed with -9 at random moments, and a server that is gone
for 30 s while answers arrive.

    python -m bench.kills [KILLS] [SEED]        prints Markdown; 50 kills take about 10 minutes

The journal says which answers had arrived (`.answer`) and for which call (`.sent`); the simulator
counts what it would have charged, and each answer that it generated and nobody received.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig

from bench.instruments.deployment import Deployment, deployed, part, planned
from bench.instruments.journals import answers_twice
from bench.instruments.tables import head
from holdfast.contracts import Goal, Report

COLUMNS = (
    ("struck", "runs", "subtasks complete", "answers that arrived", "arrived and paid again",
     "charged, never answered", "calls: ledger / charged", "dollars: ledger / charged"),
)  # fmt: skip
RUNS_AT_ONCE = 4
SUBTASKS = 8
PAUSE = (4.0, 16.0)
"""Seconds between two kills: a worker takes some to come back, and has to get somewhere."""
OUTAGE_SECONDS = 30.0
SCRIPT = {"latency": [0.5, 3.0]}


class Load:
    """Runs, one after another, this many at a time, until told to stop."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._wanted = True
        self._lanes = [asyncio.create_task(self._lane(number)) for number in range(RUNS_AT_ONCE)]

    async def end(self) -> list[Report]:
        """Start no more; the reports of all."""
        self._wanted = False
        return [report for reports in await asyncio.gather(*self._lanes) for report in reports]

    async def _lane(self, lane: int) -> list[Report]:
        reports: list[Report] = []
        while self._wanted:
            handle: WorkflowHandle[Any, Report] = await self._deployment.start(
                goal(f"{lane}-{len(reports)}")
            )
            reports.append(await self._deployment.result(handle))
        return reports


def goal(name: str) -> Goal:
    """Two layers of subtasks, in words that no other run has."""
    half = SUBTASKS // 2
    subtasks = tuple(
        part(number, *([f"t{number - half}"] if number > half else []))
        for number in range(1, SUBTASKS + 1)
    )
    named = tuple(
        each.model_copy(update={"instruction": f"{each.instruction} in market {name}"})
        for each in subtasks
    )
    return planned(named, concurrency=SUBTASKS)


def row(name: str, reports: list[Report], journal: Path, log: dict[str, Any]) -> str:
    """What became of the money."""
    arrived, again = answers_twice([journal])
    findings = [finding for report in reports for finding in report.findings]
    complete = sum(finding.status == "complete" for finding in findings)
    calls = sum(report.model_calls for report in reports)
    dollars = sum((report.dollars or Decimal(0) for report in reports), Decimal(0))
    return (
        f"| {name} | {len(reports)} | {complete} of {len(findings)} | {arrived} | {again} | "
        f"{log['admitted'] - arrived} | {calls} / {log['admitted']} | "
        f"${dollars} / ${log['dollars']} |\n"
    )


async def measured(name: str, kills: int, chance: random.Random) -> str:
    """One row: this many kills, or none and an outage of the server."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SCRIPT) as deployment:
            load = Load(deployment)
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(*PAUSE))
                deployment.kill_worker()
            if not kills:
                await asyncio.sleep(PAUSE[0])
                await deployment.outage(OUTAGE_SECONDS)
            reports = await load.end()
            log = await asyncio.to_thread(deployment.simulator.log)
            return row(name, reports, deployment.settings.state_dir / "journal", log)


async def main(kills: int, seed: int) -> None:
    chance = random.Random(seed)
    sys.stdout.write(head(COLUMNS[0]))
    for name, count in ((f"{kills} kills of the worker", kills), ("server gone for 30 s", 0)):
        sys.stdout.write(await measured(name, count, chance))
        sys.stdout.flush()


if __name__ == "__main__":
    # The SDK's native part prints each request that it repeats while the server is gone.
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="OFF"))))
    given = [int(each) for each in sys.argv[1:]]
    asyncio.run(main(*(given + [50, 7][len(given) :])))
