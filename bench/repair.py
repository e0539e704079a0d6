"""What climbing buys: first-tier answers fail at a given rate; the climb against two alternatives.

    python -m bench.repair [RUNS]        prints Markdown; 4 runs of 25 subtasks a row by default

Only the haiku tier fails, by answers of low confidence; which ones is drawn anew for each distinct
prompt. "no climb" gives each subtask one try; "top tier" serves the haiku tier with the opus model.
Dollars and calls are the simulator's, synthesis and critique included.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.instruments.deployment import deployed, parallel
from bench.instruments.tables import head
from holdfast.contracts import Goal

COLUMNS = (("first tier fails", "strategy", "subtasks complete", "calls", "dollars"),)
RATES = (0.1, 0.3, 0.5)
SUBTASKS = 25
HAIKU, OPUS = "claude-haiku-5-5", "claude-opus-5-5"


def script(rate: float) -> dict[str, Any]:
    flaw = {"call": "work", "model": HAIKU, "probability": rate, "answer": "low_confidence"}
    return {"seed": 11, "rules": [flaw]}


async def row(name: str, rate: float, runs: int, goal: Goal, **settings: Any) -> str:
    """Subtasks completed, calls and dollars of this many runs of a goal."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script(rate), **settings) as deployment:
            done = 0
            for number in range(runs):
                named = tuple(
                    each.model_copy(update={"instruction": f"{each.instruction}, market {number}"})
                    for each in (goal.plan.subtasks if goal.plan else ())
                )
                assert goal.plan is not None
                plan = goal.plan.model_copy(update={"subtasks": named})
                handle = await deployment.start(goal.model_copy(update={"plan": plan}))
                report = await deployment.result(handle)
                done += sum(finding.status == "complete" for finding in report.findings)
            log = await asyncio.to_thread(deployment.simulator.log)
    total = runs * SUBTASKS
    return f"| {rate:.0%} | {name} | {done} of {total} | {log['admitted']} | ${log['dollars']} |\n"


async def main(runs: int) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    climb = parallel(SUBTASKS, concurrency=SUBTASKS, replans=0)
    single = parallel(SUBTASKS, concurrency=SUBTASKS, replans=0, tries_per_subtask=1)
    for rate in RATES:
        sys.stdout.write(await row("climb haiku, sonnet, opus", rate, runs, climb))
        sys.stdout.write(await row("no climb: one try on haiku", rate, runs, single))
        sys.stdout.write(await row("everything on opus", rate, runs, climb, model_haiku=OPUS))
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 4))
