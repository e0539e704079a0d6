"""Agents in loops of ten turns with 20 KB results: what kill -9 of the worker repeats, what one of
them leaves in history and store, what twenty lock of their cap, what a turn takes beyond its model.

    python -m bench.agents [KILLS] [SEED]        prints Markdown; 30 kills take about 6 minutes

The worker is tests/support/loop_worker.py: the real one with a role and a tool more. The journal
says what had finished; the simulator counts what it would have charged.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from bench.instruments.deployment import Deployment, deployed, part, planned
from bench.instruments.tables import head, row
from holdfast.agent.money import worst_turn
from holdfast.contracts import Goal, Report
from holdfast.deployment.settings import HOME
from holdfast.history.fold import Fold
from holdfast.state.moves import StartAgent

COLUMNS = (
    ("one agent of 10 turns", "history of its segments", "store", "history of the run above",
     "naive: the conversation in each input", "beyond model and tool, a turn"),
    ("agents at once", "cap", "locked at the peak", "locked if each held its ten turns at worst"),
    ("struck", "runs", "agents complete", "turns that were recorded", "of these asked again",
     "tool runs", "of these when the result was recorded", "dollars: ledger / charged"),
)  # fmt: skip
WORKER = HOME / "tests" / "support" / "loop_worker.py"
TURNS = 10
AGENTS = 4
"""Agents of one run under fire."""
RUNS_AT_ONCE = 2
PAUSE = (4.0, 16.0)
"""Seconds between two kills."""
RULES = [
    {"turn": turn, "tools": [{"name": "look", "input": {"page": turn}}]} for turn in range(1, TURNS)
]
SLOW = {"latency": [0.3, 1.5], "rules": RULES}
QUICK = {"latency": [0.0, 0.0], "rules": RULES}


def goal(name: str, agents: int, **limits: Any) -> Goal:
    """So many agents at once, in words that no other run has."""
    subtasks = tuple(
        each.model_copy(update={"role": "reader", "instruction": f"{each.instruction}, for {name}"})
        for each in (part(number) for number in range(1, agents + 1))
    )
    return planned(subtasks, concurrency=agents, **limits)


# ---------------------------------------------------------------- under fire


async def lane(deployment: Deployment, number: int, over: asyncio.Event) -> list[Report]:
    """Runs, one after another, until it is over."""
    reports: list[Report] = []
    while not over.is_set():
        handle = await deployment.start(goal(f"{number}-{len(reports)}", AGENTS))
        reports.append(await deployment.result(handle))
    return reports


def turns_recorded(journal: Path) -> tuple[int, int]:
    """Turns whose answers were recorded, and how many of them for a turn that had one before. The
    script gives no reason to ask a turn twice.
    """
    asked = Counter(
        (workflow.rpartition(".")[0], activity.rpartition("-")[2])
        for workflow, activity in _keys(journal)
        if activity.startswith("turn-")
    )
    return sum(asked.values()), sum(asked.values()) - len(asked)


def _keys(journal: Path) -> list[tuple[str, str]]:
    """Workflow and activity of each recorded answer that was paid."""
    marks = [each.with_suffix(".sent") for each in journal.glob("*.answer")]
    keys = [each.read_text().split("/") for each in marks if each.exists()]
    return [(key[1], key[3]) for key in keys]


async def struck(kills: int, chance: random.Random) -> str:
    """The row of a campaign."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SLOW, WORKER) as deployment:
            over = asyncio.Event()
            lanes = [lane(deployment, number, over) for number in range(RUNS_AT_ONCE)]
            loads = asyncio.gather(*lanes)
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(*PAUSE))
                deployment.kill_worker()
            over.set()
            reports = [report for each in await loads for report in each]
            log = await asyncio.to_thread(deployment.simulator.log)
            state = deployment.settings.state_dir
            recorded, again = turns_recorded(state / "journal")
            runs = [line.split()[0] for line in (state / "runs").read_text().splitlines()]
            findings = [each for report in reports for each in report.findings]
            complete = sum(each.status == "complete" for each in findings)
            dollars = sum((each.dollars or Decimal(0) for each in reports), Decimal(0))
            return row(
                (
                    f"{kills} kills of the worker",
                    len(reports),
                    f"{complete} of {len(findings)}",
                    recorded,
                    again,
                    len(runs),
                    runs.count("again"),
                    f"${dollars} / ${log['dollars']}",
                )
            )


# ---------------------------------------------------------------- one agent, and twenty


async def alone() -> str:
    """The row of one agent that nothing disturbs, whose model and tool take no time."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), QUICK, WORKER) as deployment:
            # The first run of a worker loads what the others find loaded.
            await deployment.result(await deployment.start(goal("warm", 1)))
            store = deployment.settings.state_dir / "store"
            before = size(store)
            handle = await deployment.start(goal("alone", 1))
            report = await deployment.result(handle)
            below = [
                await history_of(deployment, f"{report.run_id}.t1.{number}")
                for number in range(1, segments(await folded(handle)) + 1)
            ]
            above = await history_of(deployment, handle.id)
            finding = report.findings[0]
            assert finding.started and finding.finished
            seconds = (finding.finished - finding.started).total_seconds()
            log = await asyncio.to_thread(deployment.simulator.log)
            spent = sum(each["seconds"] for each in log["bodies"].values()) / 2
            return row(
                (
                    "here",
                    bytes_of(sum(below)),
                    bytes_of(size(store) - before),
                    bytes_of(above),
                    bytes_of(naive()),
                    f"{1_000 * max(seconds - spent, 0) / TURNS:.0f} ms",
                )
            )


async def history_of(deployment: Deployment, id: str) -> int:
    """Bytes of a history."""
    description = await deployment.client.get_workflow_handle(id).describe()
    return int(description.raw_description.workflow_execution_info.history_size_bytes)


def naive() -> int:
    """What the inputs of ten turns would have if each held the whole conversation: its results of
    20 KB, one more with each turn.
    """
    one = 20_000
    return sum(one * turn for turn in range(TURNS))


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def bytes_of(count: int) -> str:
    return f"{count / 1_000:.0f} KB"


async def folded(handle: WorkflowHandle[Any, Report]) -> list[Fold]:
    """The fold of a run, once."""
    fold = Fold(handle.id, handle._client.data_converter)
    async for event in handle.fetch_history_events():
        await fold.take(event)
    return [fold]


def segments(folds: list[Fold]) -> int:
    """How many the agent of the first subtask had."""
    state = folds[0].state
    assert state is not None
    return state.numbers["agent-t1"]


async def locked(agents: int, dollars: int) -> str:
    """The row of so many agents that start together."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SLOW, WORKER) as deployment:
            handle = await deployment.start(goal("many", agents, dollars=dollars))
            await deployment.result(handle)
            fold = Fold(handle.id, handle._client.data_converter)
            peak, naive = Decimal(0), Decimal(0)
            async for event in handle.fetch_history_events():
                await fold.take(event)
                if fold.state is None:
                    continue
                peak = max(peak, fold.state.ledger.held.dollars)
                moves = [each.move for each in fold.state.flights.values()]
                worst = [
                    worst_turn(each.goal, each.goal.resume).dollars
                    for each in moves
                    if isinstance(each, StartAgent)
                ]
                naive = max(naive, sum(worst, Decimal(0)) * TURNS)
            return row((agents, f"${dollars}", f"${peak:.2f}", f"${naive:.2f}"))


async def main(kills: int, seed: int) -> None:
    write = sys.stdout.write
    write(head(COLUMNS[0]) + await alone() + "\n")
    write(head(COLUMNS[1]) + await locked(20, 20) + "\n")
    sys.stdout.flush()
    write(head(COLUMNS[2]) + await struck(kills, random.Random(seed)))


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    asyncio.run(main(*(given + [30, 7][len(given) :])))
