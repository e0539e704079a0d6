"""Outages of every kind, in every phase of a run, on a deployment of real processes behind a proxy.

    python -m bench.outages [--seconds 20] [--only KIND] ...        prints Markdown

For each kind a run is held in each phase until the endpoint is lost for all of them at the same
moment, with all that is in flight; one begins when it is gone. A run has survived when it ends as
it does without an outage. A cell says what its report booked over what the endpoint charged for it,
answers that were lost included. The worker is tests/support/loop_worker.py: the real one with a
role and a tool more.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from bench.instruments.deployment import Deployment, deployed, part
from bench.instruments.proxy import KINDS
from bench.instruments.tables import head, row
from holdfast.contracts import Goal, Limits, Plan, Report
from holdfast.deployment.settings import HOME

WORKER = HOME / "tests" / "support" / "loop_worker.py"
BEFORE = "before the plan"
CALLS = {
    "planning": "plan",
    "work": "work",
    "agents": "take_turn",
    "replanning": "replan",
    "synthesis": "synthesize",
    "critique": "critique",
}
"""Phase → the call that is in flight when the endpoint is lost."""
PHASES = (BEFORE, *CALLS)
AT_ONCE = {"work": 5, "agents": 3}
"""Calls in flight where there is more than one."""
WIDTH = 8
"""Subtasks of a run."""
HELD_SECONDS = 50
"""How long a call is held that an outage is to meet; less than any stall."""
SAID = "What matters most about this part of the market is what its customers pay for. " * 30
"""About as much as a model writes."""
PATIENCE = 600.0
"""Seconds that runs may take to end after an outage."""
COLUMNS = (("lost for", "kind", "survived", *PHASES, "all", "seconds until all had ended"),)


def script() -> dict[str, Any]:
    """An endpoint that holds the first of each call that an outage is to meet."""
    held = {"per_body": True, "first": 1, "latency": HELD_SECONDS}
    looks = {"call": "take_turn", "turn": 1, "tools": [{"name": "look", "input": {"page": 1}}]}
    at_work = [f"part {each} of market work-" for each in range(1, AT_ONCE["work"] + 1)]
    rules: list[dict[str, Any]] = [
        *({"call": "work", "text": text, "result": SAID, **held} for text in at_work),
        {**looks, "text": "market agents-", **held},
        looks,
        *(
            {"call": call, "text": f"market {phase}-", **held}
            for phase, call in CALLS.items()
            if phase not in AT_ONCE
        ),
        {"call": "work", "text": "part 1 of market replanning-", "answer": "failed"},
        {"call": "work", "result": SAID},
        {"call": "synthesize", "result": SAID * 2},
    ]
    return {"mark": r"market [a-z]+-[0-9]+", "subtasks": WIDTH, "latency": 0.1, "rules": rules}


def goal(phase: str, mark: str) -> Goal:
    """What the run of a phase is asked."""
    agents = phase == "agents"
    subtasks = [
        part(number, *(["t1"] if phase == "replanning" and number == WIDTH else []))
        for number in range(1, 1 + (AT_ONCE["agents"] if agents else WIDTH))
    ]
    named = tuple(
        each.model_copy(
            update={
                "instruction": f"Look at part {number} of {mark} and say what matters most",
                "role": "reader" if agents else each.role,
            }
        )
        for number, each in enumerate(subtasks, start=1)
    )
    text = f"Look at {mark} and say what matters most about it"
    planned = phase not in (BEFORE, "planning")
    return Goal(
        text=text,
        plan=Plan(goal=text, subtasks=named) if planned else None,
        limits=Limits(dollars=Decimal(50), model_calls=500, subtasks=WIDTH, concurrency=5),
        use_models=True,
    )


class Outages:
    """One deployment, and an outage after the other."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._number = 0

    async def row(self, kind: str, seconds: float) -> str:
        """What an outage did to a run in each phase."""
        self._number += 1
        marks = {phase: f"market {phase.split()[0]}-{self._number}" for phase in PHASES}
        runs = {phase: await self._start(phase, marks) for phase in CALLS}
        await self._in_flight(marks)
        began = time.monotonic()
        lost = asyncio.create_task(self._deployment.proxy.outage(kind, seconds))
        await asyncio.sleep(0.5)
        runs[BEFORE] = await self._start(BEFORE, marks)
        async with asyncio.timeout(seconds + PATIENCE):
            reports = {each: await self._deployment.result(runs[each]) for each in PHASES}
        took = time.monotonic() - began
        await lost
        log = await asyncio.to_thread(self._deployment.simulator.log)
        charged = {each: Decimal(log["marks"][marks[each]]["dollars"]) for each in PHASES}
        booked = {each: reports[each].dollars or Decimal(0) for each in PHASES}
        survived = sum(_survived(phase, report) for phase, report in reports.items())
        return row(
            (
                f"{seconds:g} s",
                kind,
                f"{survived} of {len(PHASES)}",
                *(_times(booked[each], charged[each]) for each in PHASES),
                _times(sum(booked.values(), Decimal(0)), sum(charged.values(), Decimal(0))),
                f"{took:.0f}",
            )
        )

    async def _start(self, phase: str, marks: dict[str, str]) -> WorkflowHandle[Any, Report]:
        return await self._deployment.start(goal(phase, marks[phase]))

    async def _in_flight(self, marks: dict[str, str]) -> None:
        """Return once each run stands in its phase."""
        async with asyncio.timeout(HELD_SECONDS - 5):
            while True:
                log = await asyncio.to_thread(self._deployment.simulator.log)
                asked = [(each["mark"], each["call"]) for each in log["bodies"].values()]
                if all(
                    asked.count((marks[phase], call)) >= AT_ONCE.get(phase, 1)
                    for phase, call in CALLS.items()
                ):
                    return
                await asyncio.sleep(0.2)


def _survived(phase: str, report: Report) -> bool:
    """True if it ended as without an outage: of a plan that is changed one subtask has failed."""
    if phase == "replanning":
        missing = [each.subtask_id for each in report.findings if each.status != "complete"]
        return report.status == "complete_with_gaps" and missing == ["t1", "t8"]
    return report.status == "complete"


def _times(booked: Decimal, charged: Decimal) -> str:
    return f"{booked / charged:.1f}"


async def main(kinds: list[str], seconds: list[float]) -> None:
    """Print a row for each."""
    sys.stdout.write(head(COLUMNS[0]))
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script(), WORKER, through_proxy=True) as deployment:
            outages = Outages(deployment)
            for each in seconds:
                for kind in kinds:
                    sys.stdout.write(await outages.row(kind, each))
                    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.outages")
    parser.add_argument("--seconds", type=float, action="append", help="that each lasts")
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind")
    given = parser.parse_args()
    asyncio.run(main(given.only or [*KINDS], given.seconds or [20.0]))
