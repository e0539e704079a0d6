"""The worker of model calls is killed with -9 and started again at once: here, by bare Temporal,
and as a process that keeps nothing and starts over.

First in a run of four layers, when the answers to the first layer have been there for a while and
those to the second are on their way; then with 120 calls in flight; then in a burst, when half of
200 answers have left. What an endpoint has sent and a killed process had not yet read also counts
as an answer that had arrived.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from bench.overhead.engines import (
    Start,
    bare_deployed,
    floor_process,
    started_here,
)
from bench.overhead.loads import Load, script
from holdfast.certifying.deployment import Simulated, simulated

COLUMNS = (
    ("worker killed with 4.5 s of work left", "restart to done, s"),
    ("worker killed with 120 calls of 3 s in flight", "restart to done, s"),
    ("worker killed in a burst of 200 answers", "answers that had arrived", "paid again",
     "restart to done, s"),
)  # fmt: skip
LAYERED = Load("L", "four layers", tuple((each,) * 6 for each in (0.6, 1.5, 1.2, 1.2)), ending=0.3)
FLYING = Load("F", "calls in flight", ((3.0,) * 120,))
BURST = Load("B", "a burst", ((1.0,) * 200,))
PAUSE_SECONDS = 0.4
"""Pause from the first layer's last answer to the blow: what it led to has surely been sent."""
FLYING_SECONDS = 2.0
"""Time from the start of a run to the blow: all its calls have left, and none was answered."""
LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class Struck:
    """One blow: seconds from the restart until all was done; answers that had arrived before, and
    how many of them were paid again.
    """

    seconds: float
    arrived: int
    again: int


@dataclass(frozen=True)
class Blow:
    """Falls this many seconds after this many answers have arrived."""

    load: Load
    answers: int
    pause: float = 0.0


Engine = Callable[[Blow], Awaitable[Struck]]


async def floor(blow: Blow) -> Struck:
    """It starts over."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        async with simulated(place, script([blow.load])) as simulator:
            process = await floor_process(simulator.url, place, [blow.load])
            await _moment(place, blow)
            process.kill()
            await process.communicate()
            arrived = delivered(place)
            began = time.monotonic()
            process = await floor_process(simulator.url, place, [blow.load])
            await process.communicate()
            assert process.returncode == 0
            return Struck(time.monotonic() - began, arrived, await _again(simulator))


async def bare(blow: Blow, sticky: float) -> Struck:
    """A run waits `sticky` seconds for the worker that had it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return await _struck(
            place, blow, bare_deployed(place, [blow.load], sticky=sticky, heals=False)
        )


async def here(blow: Blow) -> Struck:
    """This project."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        async with deployed(place, script([blow.load]), heals=False) as deployment:
            return await _under_fire(place, blow, deployment, started_here(deployment))


async def _struck(
    place: Path, blow: Blow, up: AbstractAsyncContextManager[tuple[Deployment, Start]]
) -> Struck:
    async with up as (deployment, start):
        return await _under_fire(place, blow, deployment, start)


async def _under_fire(place: Path, blow: Blow, deployment: Deployment, start: Start) -> Struck:
    handles = await asyncio.gather(*(start(blow.load, n) for n in range(blow.load.runs)))
    await _moment(place, blow)
    deployment.kill_worker()
    await seen(lambda: not deployment.pid("worker"))
    arrived = delivered(place)
    began = time.monotonic()
    await deployment.revive()
    for result in await asyncio.gather(*(handle.result() for handle in handles)):
        assert getattr(result, "status", "complete") == "complete", result
    return Struck(time.monotonic() - began, arrived, await _again(deployment.simulator))


async def _moment(place: Path, blow: Blow) -> None:
    await seen(lambda: delivered(place) >= blow.answers)
    await asyncio.sleep(blow.pause)


async def seen(what: Callable[[], bool]) -> None:
    while True:
        if what():
            return
        await asyncio.sleep(LOOK_SECONDS)


def delivered(place: Path) -> int:
    """Whole answers that have left the simulator, by what it wrote down."""
    path = place / "charged.jsonl"
    # The last line may be half written.
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return sum(json.loads(line)["usage"] is None for line in whole.splitlines())


async def _again(simulator: Simulated) -> int:
    log = await asyncio.to_thread(simulator.log)
    return int(log["again"])


ENGINES: dict[str, Engine] = {
    "floor: it starts over": floor,
    "bare Temporal, sticky queue 1 s": partial(bare, sticky=1.0),
    "bare Temporal, sticky queue 10 s, the default": partial(bare, sticky=10.0),
    "here": here,
}


def _range(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


async def main(repeats: int) -> None:
    """Print the tables."""
    write = sys.stdout.write
    write(f"medians and ranges of {repeats}\n\n")
    layered = Blow(LAYERED, len(LAYERED.layers[0]), PAUSE_SECONDS)
    for columns, blow in zip(COLUMNS, (layered, Blow(FLYING, 0, FLYING_SECONDS)), strict=False):
        write(head(columns))
        for name, engine in ENGINES.items():
            struck = [await engine(blow) for _ in range(repeats)]
            write(row((name, _range([each.seconds for each in struck]))))
            sys.stdout.flush()
        write("\n")
    write(head(COLUMNS[2]))
    for name, engine in ENGINES.items():
        struck = [await engine(Blow(BURST, BURST.size // 2)) for _ in range(repeats)]
        counts = [(each.arrived, each.again, each.seconds) for each in struck]
        write(row((name, *(_range(each) for each in zip(*counts, strict=True)))))
        sys.stdout.flush()
