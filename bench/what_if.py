"""What a what-if asks and costs, measured at the simulator: runs are recorded, then a role of them
is changed.

    python -m bench.what_if [RUNS]      prints Markdown; 50 runs by default

A third of the runs has its analyst last, a third in the middle, a third first, before all others. A
tenth of the haiku tier's answers is not in the form that was asked for, a tenth of the answers of
runs cites what nobody found, a third says the same in other words; and the judge takes whichever it
sees first.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from holdfast.client.trying import Asking, priced, tried
from holdfast.client.what_if import RoleChange, choose
from holdfast.contracts import Goal, Plan, Subtask
from holdfast.intake.connection import Connection, tell_nobody
from holdfast.rendering.what_if import WhatIf

COLUMNS = (
    "runs", "change", "calls of the runs", "asked", "expected", "paid", "charged, judge included",
    "better, worse, equal", "seconds",
)  # fmt: skip
WORDS = 400
"""Length of a scripted answer."""
SAID = " ".join(["market"] * WORDS)
SCRIPT = {
    "latency": [0.05, 0.2],
    "rules": [
        {"call": "work", "model": "haiku", "probability": 0.1, "answer": "malformed"},
        {"call": "work", "result": SAID},
        # What nobody has found, now and then; and the same in other words.
        {"call": "synthesize", "probability": 0.1, "result": f"{SAID} [t9]"},
        {"call": "synthesize", "probability": 0.3, "result": f"{SAID}, in short"},
        {"call": "synthesize", "result": SAID},
    ],
}
CHANGES = (
    RoleChange("analyst", tier="haiku"),
    RoleChange("analyst", effort="high"),
    RoleChange("analyst", prompt="You judge what others have found, in three sentences at most."),
)
AT_ONCE = 5


def part(id: str, role: str, *depends_on: str) -> Subtask:
    told = f"Look at part {id} of the market and say what matters most about it"
    return Subtask(id=id, title=f"Part {id}", instruction=told, role=role, depends_on=depends_on)


LAST = (
    *(part(f"t{number}", "writer") for number in (1, 2, 3)),
    part("t4", "analyst", "t1", "t2", "t3"),
)
MIDDLE = (
    part("t1", "writer"),
    part("t2", "writer"),
    part("t3", "analyst", "t1"),
    part("t4", "writer", "t2", "t3"),
)
FIRST = (part("t1", "analyst"), *(part(f"t{number}", "writer", "t1") for number in (2, 3, 4)))


async def record(deployment: Deployment, count: int) -> None:
    """Run so many goals, of the three kinds in turn."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        plan = Plan(goal="Look at the market", subtasks=(LAST, MIDDLE, FIRST)[number % 3])
        goal = Goal(text=f"Look at market {number}", plan=plan, use_models=True)
        async with free:
            report = await deployment.result(await deployment.start(goal))
        assert report.status == "complete", report.gaps

    await asyncio.gather(*map(one, range(count)))


async def measured(deployment: Deployment, change: RoleChange, count: int) -> str:
    """One row: a change tried on all runs."""
    connection = Connection(deployment.settings, deployment.target, deployment.client)
    before = await asyncio.to_thread(deployment.simulator.log)
    began = time.monotonic()
    asking = Asking(budget=Decimal(20))
    chosen = await choose(connection, change, count)
    made = await tried(connection, chosen, priced(chosen, asking), asking, tell_nobody)
    seconds = time.monotonic() - began
    after = await asyncio.to_thread(deployment.simulator.log)
    charged = Decimal(str(after["dollars"])) - Decimal(str(before["dollars"]))
    assert made.paid is not None and made.judged is not None
    assert charged <= made.paid + made.judged, "nobody is charged what nobody was told of"
    return row((*_cells(made, change), f"${charged:.2f}", _verdicts(made), f"{seconds:.0f}"))


def _cells(made: WhatIf, change: RoleChange) -> tuple[object, ...]:
    of = sum(each.calls_of_run for each in made.pairs)
    asked = sum(each.calls_asked for each in made.pairs)
    return len(made.pairs), str(change), of, asked, f"${made.expected:.2f}", f"${made.paid:.2f}"


def _verdicts(made: WhatIf) -> str:
    said = [each.decided.verdict for each in made.pairs]
    return ", ".join(str(said.count(each)) for each in ("better", "worse", "equal"))


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SCRIPT) as deployment:
            await record(deployment, count)
            sys.stdout.write(head(COLUMNS))
            for change in CHANGES:
                sys.stdout.write(await measured(deployment, change, count))
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 50))
