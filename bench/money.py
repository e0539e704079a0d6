"""What the cap holds and the estimate is worth, measured at the simulator, not at ourselves.

    python -m bench.money [RUNS]        prints Markdown; 50 runs by default

Each run has 20 subtasks in parallel, half a dozen kinds of faults on, and a cap that does not cover
them all. Overshoot is what the simulator would have charged for a run beyond its cap.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from urllib.request import Request, urlopen

from bench.instruments.deployment import Deployment, deployed, parallel, part, planned
from bench.instruments.tables import head, row
from holdfast.contracts import Fork, Goal, Report

COLUMNS = (
    ("runs under a cap", "charged above the cap", "charged above the report's dollars",
     "budget_stopped", "closest to the cap"),
    ("runs", "estimate over actual, median", "p90"),
    ("run", "calls", "its fork", "calls"),
)  # fmt: skip
FAULTS = [
    {"call": "work", "probability": 0.08, "fault": "drop_mid_stream"},
    {"call": "work", "probability": 0.05, "fault": "drop_before_headers"},
    {"call": "work", "probability": 0.05, "per_body": True, "first": 1, "status": 429,
     "headers": {"retry-after-ms": "50"}},
    {"call": "work", "probability": 0.08, "answer": "low_confidence"},
    {"call": "work", "probability": 0.05, "answer": "malformed"},
    {"call": "work", "probability": 0.05, "answer": "refusal"},
]  # fmt: skip
SUBTASKS = 20
WORDS = (150, 250, 350, 450, 600, 750, 900, 1_100, 300, 500)
"""How long the scripted answers are, by subtask, where the estimate is judged."""
CAPS = ("0.30", "0.33", "0.36", "0.45")


async def charged(deployment: Deployment, goal: Goal) -> tuple[Report, Decimal, int]:
    """A run's report, and what the simulator would have charged for it."""
    await asyncio.to_thread(_reset, deployment.simulator.url)
    report = await deployment.result(await deployment.start(goal))
    log = await asyncio.to_thread(deployment.simulator.log)
    return report, Decimal(str(log["dollars"])), log["admitted"]


def _reset(url: str) -> None:
    urlopen(Request(f"{url}/simulator/reset", method="POST"), timeout=10).close()


async def capped(runs: int) -> str:
    """Overshoot over runs with faults and caps that are too small."""
    chance = random.Random(5)
    over, unknown, stopped = 0, 0, 0
    closest = Decimal(0)
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), {"seed": 3, "rules": FAULTS}) as deployment:
            for _ in range(runs):
                cap = Decimal(chance.choice(CAPS))
                goal = parallel(SUBTASKS, concurrency=SUBTASKS, dollars=str(cap), replans=0)
                report, dollars, _ = await charged(deployment, goal)
                over += dollars > cap
                unknown += report.dollars is None or report.dollars < dollars
                stopped += report.status == "budget_stopped"
                closest = max(closest, dollars / cap)
    return row((runs, over, unknown, stopped, f"{closest:.0%}"))


async def estimated(runs: int) -> str:
    """Estimate over actual of runs without faults, of 1 to 10 subtasks."""
    ratios = []
    with tempfile.TemporaryDirectory() as place:
        written = [
            {"call": "work", "text": f"part {number} of", "result": "word " * words}
            for number, words in enumerate(WORDS, start=1)
        ]
        final = {"call": "synthesize", "result": "word " * 500}
        # Backwards: the prompt of a tenth part also names a first.
        script = {"rules": [*written[::-1], final]}
        async with deployed(Path(place), script) as deployment:
            for number in range(runs):
                report, dollars, _ = await charged(deployment, parallel(1 + number % 10))
                ratios.append(float((report.dollars_estimated or Decimal(0)) / dollars))
    ordered = sorted(ratios)
    p90 = ordered[int(0.9 * (len(ordered) - 1))]
    return row((runs, f"{statistics.median(ratios):.2f}", f"{p90:.2f}"))


async def forked() -> str:
    """What a fork pays that changes the last of ten subtasks."""
    chain = tuple(
        part(number, *([f"t{number - 1}"] if number > 1 else [])) for number in range(1, 11)
    )
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), {}) as deployment:
            goal = planned(chain)
            first, whole, calls = await charged(deployment, goal)
            assert goal.plan is not None
            last = chain[-1].model_copy(update={"instruction": f"{chain[-1].instruction}, shorter"})
            plan = goal.plan.model_copy(update={"subtasks": (*chain[:-1], last)})
            fork = Fork(run_id=first.run_id, findings=first.findings[:-1], inputs=first.inputs)
            again = goal.model_copy(update={"plan": plan, "fork": fork})
            _, part_of_it, fewer = await charged(deployment, again)
    return row((f"${whole}", calls, f"${part_of_it}", fewer))


async def main(runs: int) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    sys.stdout.write(await capped(runs))
    sys.stdout.write("\n" + head(COLUMNS[1]))
    sys.stdout.write(await estimated(runs))
    sys.stdout.write("\n" + head(COLUMNS[2]))
    sys.stdout.write(await forked())


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 50))
