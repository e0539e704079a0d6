"""Seconds until the first subtask of a planned run starts, and until it is done, with subtasks that
start while their plan is being written and without.

    python -m bench.latency [--runs 6] [--early 5]        prints Markdown; takes about 4 minutes

Simulator, server and worker are processes of their own; the simulator writes each answer at a real
model's speed. All runs of a row start together, half of them with `early=0`. Moments are those of
the runs' histories.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle

from bench.instruments.clients import silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from holdfast.contracts import Goal, Limits, Report

COLUMNS = ((
    "plan of six", "tokens/s", "early", "first subtask, p50 / p95 s", "makespan, p50 / p95 s",
    "taken back",
),)  # fmt: skip
SPEEDS = (60, 120)
FIRST_TOKEN = 0.8
BEGUN = (
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
)
INSTRUCTION = (
    "Look at part {} of the market: who sells there, at what price and since when, which of them"
    " grew in the last two years and by how much, and what their customers complain about. Return"
    " a list with one line for each seller, its figures with their units and dates, and where each"
    " of them comes from; say in a last line what could not be found."
)
"""Some 85 tokens: what planners write to an agent that knows nothing else."""
ANSWER = "A seller, its price of 12.50 euros in March 2026, and what its customers say. " * 20
"""Some 400 tokens."""
SHAPES = {
    "four, then an analysis, then a text": ((), (), (), (), (1, 2, 3, 4), (5,)),
    "six at once": ((),) * 6,
}


def script(speed: int) -> dict[str, Any]:
    plans = [
        {"call": "plan", "text": name, "plan": [*map(_part, range(1, 7), shape)]}
        for name, shape in SHAPES.items()
    ]
    told = [{"call": call, "result": ANSWER} for call in ("work", "synthesize", "take_turn")]
    latency = [FIRST_TOKEN, FIRST_TOKEN]
    return {"tokens_per_second": speed, "latency": latency, "rules": [*plans, *told]}


def _part(number: int, after: Sequence[int]) -> dict[str, Any]:
    edges = [f"t{each}" for each in after]
    given = f" Use the findings of {', '.join(edges)}." if edges else ""
    return {
        "role": "writer" if len(edges) == 1 else "analyst" if edges else "researcher",
        "title": f"Part {number} of the market",
        "instruction": INSTRUCTION.format(number) + given,
        "depends_on": edges,
    }


def goal(name: str, run: int, early: int) -> Goal:
    """A goal for a planner; each run has words of its own."""
    text = f"Describe the market, number {run}.{early} ({name})"
    return Goal(text=text, use_models=True, limits=Limits(early=early))


async def measured(deployment: Deployment, early: int, name: str, run: int) -> tuple[float, ...]:
    """Seconds to the first subtask and to the end, and how many were taken back."""
    handle: WorkflowHandle[Any, Report] = await deployment.start(goal(name, run, early))
    report = await handle.result()
    assert report.status == "complete", (report.gaps, report.notes)
    events = [*(await handle.fetch_history()).events]
    first = next(each for each in events if _begins_subtask(each))
    taken = any("taken back" in note for note in report.notes)
    return (_since(events[0], first), _since(events[0], events[-1]), float(taken))


def _begins_subtask(event: HistoryEvent) -> bool:
    if event.event_type not in BEGUN:
        return False
    activity = event.activity_task_scheduled_event_attributes.activity_id
    return not activity or activity.startswith("work-")


def _since(first: HistoryEvent, event: HistoryEvent) -> float:
    return (event.event_time.ToNanoseconds() - first.event_time.ToNanoseconds()) / 1e9


def _cell(values: Sequence[float]) -> str:
    ordered = sorted(values)
    late = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{median(ordered):.1f} / {late:.1f}"


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--early", type=int, default=5)
    given = parser.parse_args()
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    for speed in SPEEDS:
        with tempfile.TemporaryDirectory() as place:
            async with deployed(Path(place), script(speed)) as deployment:
                await measured(deployment, 0, next(iter(SHAPES)), -1)
                for name in SHAPES:
                    numbers = range(given.runs)
                    kinds = [early for _ in numbers for early in (0, given.early)]
                    done = await asyncio.gather(
                        *(
                            measured(deployment, early, name, number)
                            for number in numbers
                            for early in (0, given.early)
                        )
                    )
                    for early in dict.fromkeys(kinds):
                        own = [
                            each for kind, each in zip(kinds, done, strict=True) if kind == early
                        ]
                        first, whole, taken = zip(*own, strict=True)
                        cells = (_cell(first), _cell(whole), f"{sum(taken):.0f} of {len(own)}")
                        write(row((name, str(speed), str(early), *cells)))
                        sys.stdout.flush()


if __name__ == "__main__":
    silence()
    asyncio.run(main())
