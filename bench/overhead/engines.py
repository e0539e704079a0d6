"""Does loads by each of the three engines; each has a simulator of its own, those on Temporal also
a server and a worker, the same server with the same flags.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.usage import Usage, used
from bench.overhead.loads import WARM_UP, Load, fixed_parts, script
from holdfast.certifying.deployment import simulated
from holdfast.deployment.settings import HOME

BARE_WORKER = HOME / "bench" / "overhead" / "bare_worker.py"
Start = Callable[[Load, int], Awaitable[WorkflowHandle[Any, Any]]]
"""Starts one run of a load, by its number."""


@dataclass(frozen=True)
class Measured:
    """One load, done once. What is used, and what is in histories, is of one run."""

    seconds: float
    runs: int
    used: Usage
    events: float = 0.0
    kilobytes: float = 0.0


async def floor(loads: Sequence[Load]) -> list[Measured]:
    """asyncio and the SDK."""
    with tempfile.TemporaryDirectory() as place:
        async with simulated(Path(place), script(loads)) as simulator:
            process = await floor_process(simulator.url, Path(place), [WARM_UP, *loads])
            said, _ = await process.communicate()
            if process.returncode:
                raise SystemExit(f"the floor ended with {process.returncode}")
            calls = {load.mark: load.runs * (load.size + 2) for load in loads}
            admitted = await asyncio.to_thread(simulator.log)
            assert admitted["admitted"] == sum(calls.values()) + WARM_UP.size + 2
    lines = [json.loads(line) for line in said.splitlines()][1:]
    return [
        Measured(
            line["seconds"],
            load.runs,
            Usage(worker=line["cpu"], calls=calls[load.mark]) / load.runs,
        )
        for load, line in zip(loads, lines, strict=True)
    ]


async def floor_process(url: str, place: Path, loads: Sequence[Load]) -> asyncio.subprocess.Process:
    """Start the floor on these loads."""
    write_fixed(place)
    plans = [[[asdict(s) for s in load.plan(n)] for n in range(load.runs)] for load in loads]
    (place / "plans.json").write_text(json.dumps(plans))
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.overhead.floor",
        url,
        str(place),
        cwd=HOME,
        stdout=asyncio.subprocess.PIPE,
    )


def write_fixed(place: Path) -> Path:
    """The file with what all requests of a call share."""
    path = place / "fixed.json"
    path.write_text(json.dumps(fixed_parts()))
    return path


async def here(loads: Sequence[Load]) -> list[Measured]:
    """This project."""
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), script(loads)) as deployment:
            return await _measured(deployment, loads, started_here(deployment))


async def bare(loads: Sequence[Load]) -> list[Measured]:
    """Bare Temporal."""
    with tempfile.TemporaryDirectory() as place:
        async with bare_deployed(Path(place), loads) as (deployment, start):
            return await _measured(deployment, loads, start)


def started_here(deployment: Deployment) -> Start:
    """Starts runs of this project."""

    async def start(load: Load, run: int) -> WorkflowHandle[Any, Any]:
        return await deployment.start(load.goal(run))

    return start


@asynccontextmanager
async def bare_deployed(
    place: Path, loads: Sequence[Load], *, sticky: float = 1.0, heals: bool = True
) -> AsyncIterator[tuple[Deployment, Start]]:
    """Bare Temporal, and what starts its runs, which wait this many seconds (`sticky`) for the
    worker that had them.
    """
    variables = {"BARE_FIXED": str(write_fixed(place)), "BARE_STICKY_SECONDS": str(sticky)}
    with environment(variables):
        async with deployed(place, script(loads), BARE_WORKER, heals=heals) as deployment:
            # This project's client stores big payloads where a stranger's worker finds none.
            client = await Client.connect(deployment.target.address)

            async def start(load: Load, run: int) -> WorkflowHandle[Any, Any]:
                return await client.start_workflow(
                    "BareWorkflow",
                    load.plan(run),
                    id=f"bare-{load.mark}{run}",
                    task_queue=deployment.target.task_queue,
                )

            yield deployment, start


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of the processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _measured(deployment: Deployment, loads: Sequence[Load], start: Start) -> list[Measured]:
    await finished(WARM_UP, start)
    done, so_far = [], await used(deployment)
    for load in loads:
        seconds, handles = await finished(load, start)
        now = await used(deployment)
        done.append((load, seconds, handles, now - so_far))
        so_far = now
    # Only now, because to ask about histories is a request, too.
    return [
        Measured(seconds, load.runs, spent / load.runs, *await _histories(handles))
        for load, seconds, handles, spent in done
    ]


async def _histories(handles: Sequence[WorkflowHandle[Any, Any]]) -> tuple[float, float]:
    """Events and KB of a run."""
    about = [(await each.describe()).raw_description for each in handles]
    infos = [each.workflow_execution_info for each in about]
    return (
        sum(each.history_length for each in infos) / len(infos),
        sum(each.history_size_bytes for each in infos) / len(infos) / 1_000,
    )


async def finished(load: Load, start: Start) -> tuple[float, list[WorkflowHandle[Any, Any]]]:
    """Do a load; seconds until the last of its runs, started together, and the runs."""
    began = time.monotonic()
    handles = await asyncio.gather(*(start(load, run) for run in range(load.runs)))
    results = await asyncio.gather(*(handle.result() for handle in handles))
    seconds = time.monotonic() - began
    for result in results:
        assert getattr(result, "status", "complete") == "complete", result
    return seconds, handles
