"""What is measured of a stand, each in one of its own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from bench.instruments.histories import over
from bench.instruments.journals import answers_twice
from bench.machines.network import Network
from bench.machines.stand import QUEUE, Spent, Stand, Store, standing
from bench.overhead.engines import finished
from bench.overhead.loads import Load, script
from bench.survival.calls import delivered, seen
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Report
from holdfast.contracts.policies import BEATS, BILLED_BEATS
from holdfast.contracts.treasury import Caps
from holdfast.history.actions import count_actions, is_action
from holdfast.history.executions import executions_in
from holdfast.temporal.treasury import Treasurer, Unanswered

SUBTASKS = 6
AT_ONCE = (0.0,) * SUBTASKS
FIRST_RUNS = 4
"""Runs for each worker that come before what is measured."""
OVER_SECONDS = 420
"""A run that is still open so long after the last blow is stuck: what a killed worker held of the
day's dollars is only known as lost after three minutes.
"""
STRUCK = Load("K", "calls of a second", ((1.0,) * SUBTASKS,), ending=0.3)
SPENDING = {
    "latency": [0.3, 1.0],
    "rules": [{"call": call, "result": "word " * 1_400} for call in ("work", "synthesize")],
}


NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Place:
    """What all measurements share."""

    network: Network
    store: Store

    @asynccontextmanager
    async def stand(
        self,
        script: dict[str, Any],
        machines: int,
        *,
        bare: bool = False,
        told: Mapping[str, str] = NOTHING,
    ) -> AsyncIterator[Stand]:
        """A stand in a folder that goes away."""
        with tempfile.TemporaryDirectory() as folder:
            async with standing(
                self.network, Path(folder), self.store, script, machines, told, bare=bare
            ) as stand:
                yield stand


@dataclass(frozen=True)
class Pace:
    """How fast runs were done together."""

    seconds: float
    runs: int
    calls: int
    spent: Spent


async def pace(place: Place, machines: int, runs: int, *, bare: bool) -> Pace:
    """Do so many runs, all started at once and answered at once."""
    first = Load("W", "runs that are not measured", (AT_ONCE,), runs=FIRST_RUNS * machines)
    load = Load("M", "runs that are measured", (AT_ONCE,), runs=runs)
    async with place.stand(script([load, first]), machines, bare=bare) as stand:
        start = stand.start_bare if bare else stand.start_here
        await finished(first, start)
        before, calls = stand.spent(), (await stand.log())["admitted"]
        seconds, _ = await finished(load, start)
        spent, calls = stand.spent() - before, (await stand.log())["admitted"] - calls
    return Pace(seconds, runs, calls, spent)


@dataclass(frozen=True)
class Struck:
    """What became of the runs and answers of one blow."""

    runs: int
    stuck: int
    complete: int
    arrived: int
    again: int
    """Answers to subtasks that had been answered before, on whatever machine."""
    sent_again: int
    """Answers that the endpoint had sent whole and was asked for again: also those that a killed
    worker had not read.
    """
    unanswered: int
    """Charged, and never sent whole."""
    seconds: float


async def struck(
    place: Place, machines: int, killed: int, runs: int, *, shared: bool, share: float = 0.5
) -> Struck:
    """Kill so many workers at once, when this `share` of the runs' work has been answered."""
    told = {"HOLDFAST_SHARED_JOURNAL": str(shared).lower()}
    async with place.stand(script([STRUCK]), machines, told=told) as stand:
        handles = [await stand.start_here(STRUCK, number) for number in range(runs)]
        await seen(lambda: delivered(stand.folder) >= share * runs * SUBTASKS)
        for worker in stand.workers[:killed]:
            worker.kill()
        began = time.monotonic()
        reports = await closed(handles)
        seconds = time.monotonic() - began
        log = await stand.log()
        arrived, again = answers_twice(stand.journals)
    return Struck(
        runs,
        reports.count(None),
        sum(each is not None and each.status == "complete" for each in reports),
        arrived,
        again,
        log["again"],
        log["admitted"] - log["delivered"],
        seconds,
    )


async def closed(handles: Sequence[WorkflowHandle[Any, Report]]) -> list[Report | None]:
    """Return the reports of runs; None of one that is stuck."""

    async def one(handle: WorkflowHandle[Any, Report]) -> Report | None:
        return await outcome(handle) if await over(handle, OVER_SECONDS) else None

    return await asyncio.gather(*map(one, handles))


@dataclass(frozen=True)
class Capped:
    """What was charged under a day's cap."""

    runs: int
    stuck: int
    calls: int
    charged: Decimal
    counted: Decimal
    """By the treasurer."""


async def capped(place: Place, machines: int, killed: int, runs: int, cap: Decimal) -> Capped:
    """Run what costs more than the cap. Workers are killed, one after another, while the first
    three quarters of it are charged.
    """
    load = Load("C", "runs that cost more than there is", (AT_ONCE,))
    told = {"HOLDFAST_MOST_DOLLARS_DAY": str(cap)}
    async with place.stand(SPENDING, machines, told=told) as stand:
        handles = [await stand.start_here(load, number) for number in range(runs)]
        waiting = asyncio.create_task(closed(handles))
        for number, worker in enumerate(stand.workers[:killed], start=1):
            await _charged(stand, cap * 3 * number / (4 * killed), waiting)
            worker.kill()
        reports = await waiting
        log = await stand.log()
        counted = await _counted(stand)
    return Capped(
        runs,
        reports.count(None),
        log["admitted"],
        Decimal(log["dollars"]),
        counted,
    )


async def _charged(stand: Stand, dollars: Decimal, runs: asyncio.Task[Any]) -> None:
    """Return once so much is charged. A run may end first, at the latest when each is stuck."""
    while not runs.done() and Decimal((await stand.log())["dollars"]) < dollars:
        await asyncio.wait([runs], timeout=0.1)


async def _counted(stand: Stand) -> Decimal:
    """Return what the treasurer counts, once nobody holds anything of it."""
    treasurer = Treasurer(lambda: stand.client, QUEUE, Caps())
    async with asyncio.timeout(OVER_SECONDS):
        while True:
            with suppress(Unanswered):
                books = await treasurer.look()
                if books is not None and not books.held:
                    return books.today.paid
            await asyncio.sleep(1)


@dataclass(frozen=True)
class Billed:
    """What a server that bills by the action would count of one run."""

    load: Load
    counted: int
    beats: int
    usual: int
    """Heartbeats of calls that beat as on a server that does not bill them."""


async def billed(place: Place, seconds: Sequence[float]) -> list[Billed]:
    """Count them in runs, one for each of these lengths of a call."""
    loads = [
        Load(
            f"B{each:.0f}-",
            f"calls of {each:.0f} s" if each else "calls answered at once",
            ((each,) * SUBTASKS,),
            ending=each,
        )
        for each in seconds
    ]
    async with place.stand(script(loads), 1) as stand:
        return await asyncio.gather(*(_bill(stand, load) for load in loads))


async def _bill(stand: Stand, load: Load) -> Billed:
    _, (handle,) = await finished(load, stand.start_here)
    events = (await handle.fetch_history()).events
    own, executions = sum(map(is_action, events)), executions_in(events)
    counted, beats = count_actions(own, executions, BILLED_BEATS)
    return Billed(load, counted, beats, count_actions(own, executions, BEATS)[1])
