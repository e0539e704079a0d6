"""A deployment of its own for a measurement: simulator, embedded server and worker as real
processes, in a folder that goes away.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from bench.instruments.proxy import Proxy, proxied
from holdfast.certifying.deployment import Deployment as Struck
from holdfast.certifying.deployment import running, simulated
from holdfast.contracts import Goal, Limits, Plan, Report, Subtask
from holdfast.deployment.settings import Settings
from holdfast.embedded import Programs
from holdfast.embedded.state import StateDir
from holdfast.embedded.supervision import WORKER
from holdfast.storage import store_at

REQUESTS = "requests.jsonl"
"""The file, in the folder of a deployment, with each request that its simulator got."""


@dataclass
class Deployment(Struck):
    """What a measurement talks to. Server and worker are started again when they die."""

    proxy: Proxy
    """Before the simulator, for whoever was told to go through it."""

    async def start(self, goal: Goal) -> WorkflowHandle[Any, Report]:
        """Start a run."""
        probe = await store_at(self.target.store_url).put(b"bench")
        return await self.client.start_workflow(
            "SupervisorWorkflow",
            goal.model_copy(update={"probe": probe}),
            id=f"bench-{uuid.uuid4().hex[:8]}",
            task_queue=self.target.task_queue,
            result_type=Report,
        )

    async def outage(self, seconds: float) -> None:
        """Kill the server, and keep everybody from starting it for this time."""
        # Waits, and this process with it, while somebody is starting it.
        with StateDir.of(self.settings).locked():
            self.kill("server")
            await asyncio.sleep(seconds)

    def kill_worker(self) -> None:
        """Kill -9, if it runs."""
        self.kill("worker")


@asynccontextmanager
async def deployed(
    folder: Path,
    script: Mapping[str, Any],
    worker: Path | None = None,
    *,
    heals: bool = True,
    through_proxy: bool = False,
    keeps: bool = False,
    **settings: Any,
) -> AsyncIterator[Deployment]:
    """Everything up; `worker` is the program to run instead of worker.py. With `heals`, whatever
    dies is started again; `through_proxy`: calls go through the proxy, which can be lost; `keeps`:
    REQUESTS gets what models are asked.
    """
    requests = folder / REQUESTS if keeps else None
    async with (
        simulated(folder, script, requests=requests) as simulator,
        proxied(simulator.url) as proxy,
    ):
        url = proxy.url if through_proxy else simulator.url
        usual = {"workers": 1, "anthropic_base_url": url, "anthropic_api_key": "scripted"}
        of_this = Settings(
            _env_file=None,
            state_dir=folder / "state",
            # What is measured and killed is one process, however many cores there are.
            **(usual | settings),
        )
        command = (sys.executable, str(worker)) if worker else WORKER
        programs = Programs(worker=command)
        async with running(of_this, programs) as (target, client):
            deployment = Deployment(of_this, programs, target, client, simulator, proxy)
            async with deployment.kept(heals=heals):
                yield deployment


def parallel(count: int, **limits: Any) -> Goal:
    """A goal whose plan is this many independent subtasks of the haiku tier."""
    subtasks = tuple(part(number) for number in range(1, count + 1))
    return planned(subtasks, **limits)


def part(number: int, *depends_on: str, tier: str = "haiku") -> Subtask:
    """One subtask."""
    instruction = f"Look at part {number} of the market and say what matters most about it"
    return Subtask.model_validate(
        {
            "id": f"t{number}",
            "title": f"Part {number}",
            "instruction": instruction,
            "role": "researcher",
            "tier": tier,
            "depends_on": depends_on,
        }
    )


def planned(subtasks: tuple[Subtask, ...], **limits: Any) -> Goal:
    """A goal with this plan and no more money than it needs a bound for."""
    plan = Plan(goal="Look at the market", subtasks=subtasks)
    bounds = Limits.model_validate(
        {"dollars": 1_000, "model_calls": 2_000, "tokens": 100_000_000} | limits
    )
    return Goal(text="Look at the market", plan=plan, limits=bounds, use_models=True)
