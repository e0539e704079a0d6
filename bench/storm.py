"""Storms of refusals, each in a deployment of its own.

    python -m bench.storm [rate] [said] [random] [in-flight]       prints Markdown

`rate`: 6 runs of 10 subtasks at once, against an endpoint that admits a number of calls of a model
a second and answers 429 with Retry-After beyond. Goodput is the calls of subtasks that were
admitted, from the first to the last, over what the endpoint would have admitted of their model in
that time; what it had saved up before the first is taken off. `said`: the same where the heads of
answers say what is left of the rate.

`random`: 16 runs of 3 subtasks, one after the other, against an endpoint that refuses a share of
all calls whatever their rate. What counts is how much longer they take than without refusals, and
that nothing of the storm is left a minute later.

`in-flight`: 6 runs of 20 subtasks at once, against an endpoint that answers a number of calls of a
model at once and refuses the others. Goodput is the share of its places that subtasks took, from
the first of them until the last had its answer.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.instruments.deployment import Deployment, deployed, parallel, part, planned
from bench.instruments.tables import head, row
from holdfast.contracts import Goal, Report

COLUMNS = (
    ("calls admitted per second", "failed subtasks", "goodput", "refusals per admitted call"),
    ("refused at random", "failed subtasks", "seconds", "of those without", "a minute later"),
    ("refused with", "calls at once", "failed subtasks", "goodput", "a minute later"),
)
RUNS = 6
SUBTASKS = 10
SUBTASKS_IN_FLIGHT = 20
LATENCY = (0.2, 0.6)
RATES = (2, 5, 10)
CHAINS = 16
LINKS = 3
CHAIN_LATENCY = (0.2, 3.0)
RANDOM = ((429, 0.1, True), (429, 0.3, True), (529, 0.1, True), (529, 0.3, True),
          (429, 0.3, False), (529, 0.3, False))  # fmt: skip
"""Status, share, and whether a refusal names a wait."""
FORGOTTEN_SECONDS = 60
IN_FLIGHT = ((429, 2), (429, 4), (429, 8), (529, 4))
BUSY = 0.4
"""Seconds that a call of the endpoint with a limit in flight takes."""


async def rates(*, limits: bool = False) -> None:
    """The table of true limits of the rate; `limits`: that the endpoint tells."""
    sys.stdout.write(head(COLUMNS[0]))
    for rate in RATES:
        script = {"rate": rate, "burst": rate, "latency": list(LATENCY), "seed": rate}
        script["limits"] = limits
        seconds, reports, log = await _parallel_storm(script)
        admitted = RUNS * SUBTASKS
        goodput = (admitted - rate) / (seconds * rate)
        failed = f"{_failed(reports)} of {admitted}"
        _row(rate, failed, f"{goodput:.2f}", _refusals(log))


async def in_flight() -> None:
    """The table of limits in flight."""
    sys.stdout.write(head(COLUMNS[2]))
    for status, most in IN_FLIGHT:
        script = {"in_flight": most, "refusal": status, "latency": BUSY, "seed": most}
        with tempfile.TemporaryDirectory() as place:
            async with deployed(Path(place), script) as deployment:
                first, reports = await _busy(deployment, 0, most)
                await asyncio.sleep(FORGOTTEN_SECONDS)
                later, _ = await _busy(deployment, RUNS, most)
        failed = f"{_failed(reports)} of {RUNS * SUBTASKS_IN_FLIGHT}"
        _row(status, most, failed, f"{first:.2f}", f"{later:.2f}")


async def _busy(deployment: Deployment, first: int, most: int) -> tuple[float, list[Report]]:
    """The share of the endpoint's places that subtasks took, and the reports."""
    _, seconds_before = await asyncio.to_thread(_work, deployment)
    elapsed, reports = await _parallel(deployment, first, SUBTASKS_IN_FLIGHT)
    _, seconds = await asyncio.to_thread(_work, deployment)
    # The first answer took its time, too.
    return (seconds - seconds_before) / ((elapsed + BUSY) * most), reports


async def chance() -> None:
    """The table of random refusals."""
    sys.stdout.write(head(COLUMNS[1]))
    without, failed, _ = await _chained_storm(None)
    _row("none", f"{failed} of {CHAINS * LINKS}", f"{without:.1f}", "1.0", "")
    for status, share, named in RANDOM:
        headers = {"retry-after": "1"} if named else {}
        rule = {"probability": share, "status": status, "headers": headers}
        seconds, failed, later = await _chained_storm(rule)
        refused = f"{status} {share:.0%}{'' if named else ', no wait named'}"
        times = (f"{each:.1f}" for each in (seconds, seconds / without, later / without))
        _row(refused, f"{failed} of {CHAINS * LINKS}", *times)


async def _chained_storm(rule: Mapping[str, Any] | None) -> tuple[float, int, float]:
    """Seconds of all runs, subtasks that failed, and seconds of as many runs without refusals that
    start a minute later.
    """
    script: dict[str, Any] = {"latency": list(CHAIN_LATENCY), "seed": 5}
    # Only prompts of the storm meet the rule.
    script["rules"] = [dict(rule, text="in market s")] if rule else []
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script) as deployment:
            seconds, reports = await _all(deployment, [_chain(f"s{n}") for n in range(CHAINS)])
            later = 0.0
            if rule:
                await asyncio.sleep(FORGOTTEN_SECONDS)
                later, _ = await _all(deployment, [_chain(f"l{n}") for n in range(CHAINS)])
    return seconds, _failed(reports), later


async def _all(deployment: Deployment, goals: Sequence[Goal]) -> tuple[float, list[Report]]:
    began = time.monotonic()
    handles = await asyncio.gather(*(deployment.start(goal) for goal in goals))
    reports = await asyncio.gather(*(deployment.result(handle) for handle in handles))
    return time.monotonic() - began, reports


async def _parallel_storm(
    script: Mapping[str, Any],
) -> tuple[float, list[Report], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script) as deployment:
            seconds, reports = await _parallel(deployment, 0)
            return seconds, reports, await asyncio.to_thread(deployment.simulator.log)


async def _parallel(
    deployment: Deployment, first: int, subtasks: int = SUBTASKS
) -> tuple[float, list[Report]]:
    """Seconds from the first answer to a subtask until the last, and the reports; `first` numbers
    the runs, so that a body that is asked twice was paid twice.
    """
    before, _ = await asyncio.to_thread(_work, deployment)
    watching = asyncio.create_task(_answered(deployment, before, RUNS * subtasks))
    limits = {"concurrency": subtasks, "deadline_seconds": 3_600}
    goals = [_named(parallel(subtasks, **limits), str(first + n)) for n in range(RUNS)]
    _, reports = await _all(deployment, goals)
    return await watching, reports


def _named(goal: Goal, name: str) -> Goal:
    """The goal with words of its own."""
    assert goal.plan is not None
    subtasks = tuple(
        each.model_copy(update={"instruction": f"{each.instruction} in market {name}"})
        for each in goal.plan.subtasks
    )
    plan = goal.plan.model_copy(update={"subtasks": subtasks, "goal": f"Look in market {name}"})
    return goal.model_copy(update={"plan": plan, "text": f"Look in market {name}"})


def _chain(name: str) -> Goal:
    """A goal of subtasks one after the other."""
    before = [()] + [(f"t{number}",) for number in range(1, LINKS)]
    subtasks = tuple(part(number, *before[number - 1]) for number in range(1, LINKS + 1))
    return _named(planned(subtasks, deadline_seconds=3_600), name)


async def _answered(deployment: Deployment, before: int, calls: int) -> float:
    """Seconds from the first answer to a subtask until there are this many."""
    began = time.monotonic()
    while True:
        answered, _ = await asyncio.to_thread(_work, deployment)
        if answered == before:
            began = time.monotonic()
        if answered >= before + calls:
            return time.monotonic() - began
        await asyncio.sleep(0.05)


def _work(deployment: Deployment) -> tuple[int, float]:
    """Calls of subtasks that the endpoint has answered, and the seconds that took."""
    bodies = deployment.simulator.log()["bodies"].values()
    seconds = [float(each["seconds"]) for each in bodies if each["call"] == "work"]
    return sum(each > 0 for each in seconds), sum(seconds)


def _failed(reports: Sequence[Report]) -> int:
    return sum(each.status != "complete" for report in reports for each in report.findings)


def _refusals(log: Mapping[str, Any]) -> str:
    refusals = log["refused"] / log["admitted"]
    return f"{refusals:.2f}"


def _row(*cells: object) -> None:
    sys.stdout.write(row(cells))
    sys.stdout.flush()


MODES: Mapping[str, Callable[[], Awaitable[None]]] = {
    "rate": rates,
    "said": partial(rates, limits=True),
    "random": chance,
    "in-flight": in_flight,
}


async def main(modes: Sequence[str]) -> None:
    """Print the tables of these modes."""
    for mode in modes:
        await MODES[mode]()
        sys.stdout.write("\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or tuple(MODES)))
