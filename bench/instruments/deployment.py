"""A deployment of its own for a measurement: simulator, embedded server and worker as real
processes, in a folder that goes away.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from bench.instruments.clients import ended, outcome
from bench.instruments.proxy import Proxy, proxied
from holdfast.contracts import Goal, Limits, Plan, Report, Subtask
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import Programs, down, ensure_up, server, status, up
from holdfast.embedded.state import StateDir
from holdfast.embedded.supervision import WORKER
from holdfast.errors import EmbeddedError
from holdfast.storage import store_at
from holdfast.temporal.connection import Target, connect
from holdfast.workers.served import find_served

HEAL_SECONDS = 0.5
POLL_SECONDS = 0.05
REQUESTS = "requests.jsonl"
"""The file, in the folder of a deployment, with each request that its simulator got."""


@dataclass
class Simulated:
    """A simulator in a process of its own, always on the same port; what it charged is kept in a
    file, so that it can be killed.
    """

    url: str
    command: tuple[str, ...]
    process: asyncio.subprocess.Process | None = None

    def log(self) -> dict[str, Any]:
        """What it was asked and what it would have charged. Blocking."""
        with urlopen(f"{self.url}/simulator/log", timeout=10) as answer:
            log: dict[str, Any] = json.load(answer)
            return log

    async def start(self) -> None:
        """Return when it listens."""
        self.process = await asyncio.create_subprocess_exec(
            *self.command, cwd=HOME, stdout=asyncio.subprocess.PIPE
        )
        assert self.process.stdout is not None
        if not await self.process.stdout.readline():
            raise RuntimeError(f"no simulator at {self.url}: {await self.process.wait()}")

    async def stop(self, *, kill: bool = False) -> None:
        """End it, politely or with -9."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                # Ctrl-C at a terminal has ended it already.
                self.process.kill() if kill else self.process.terminate()
            await self.process.communicate()
            self.process = None

    async def outage(self, seconds: float) -> None:
        """Kill it, and start it again after this time."""
        try:
            await self.stop(kill=True)
            await asyncio.sleep(seconds)
        finally:
            await self.start()


@dataclass
class Deployment:
    """What a measurement talks to. Server and worker are started again when they die."""

    settings: Settings
    programs: Programs
    target: Target
    client: Client
    simulator: Simulated
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

    async def result(self, handle: WorkflowHandle[Any, Report]) -> Report:
        """The report, however often the server goes away meanwhile; also of a run that failed."""
        while True:
            try:
                return await outcome(handle)
            except RPCError:
                await asyncio.sleep(POLL_SECONDS)

    def pid(self, name: str) -> int | None:
        """Return the pid of `server` or `worker`; None while it does not run."""
        now = status(self.settings)
        return now.server_pid if name == "server" else now.worker_pid

    async def served(self) -> None:
        """Return once a worker asks for calls."""
        while True:
            _, models = await find_served(self.client, self.target.task_queue)
            if models:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def outage(self, seconds: float) -> None:
        """Kill the server, and keep everybody from starting it for this time."""
        # Waits, and this process with it, while somebody is starting it.
        with StateDir.of(self.settings).locked():
            if pid := self.pid("server"):
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(seconds)

    def kill_worker(self) -> None:
        """Kill -9, if it runs."""
        pid = self.pid("worker")
        if pid:
            os.kill(pid, signal.SIGKILL)

    async def revive(self) -> None:
        """Start what has died, once."""
        await asyncio.to_thread(ensure_up, self.settings, "watcher", self.programs)

    async def heal(self) -> None:
        """Start what has died, forever."""
        while True:
            with suppress(EmbeddedError):
                await self.revive()
            await asyncio.sleep(HEAL_SECONDS)


@asynccontextmanager
async def simulated(
    folder: Path, script: Mapping[str, Any], *, keeps: bool = False
) -> AsyncIterator[Simulated]:
    """A simulator with this script, which `keeps` each request in a file of the folder."""
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump(dict(script)))
    # A port that no client is ever given: it must still be free after an outage.
    port = server.free_port(0, set())
    simulator = Simulated(
        f"http://127.0.0.1:{port}",
        (
            sys.executable,
            "-m",
            "simulator",
            "--script",
            str(path),
            "--port",
            str(port),
            "--memory",
            str(folder / "charged.jsonl"),
            *(("--requests", str(folder / REQUESTS)) if keeps else ()),
        ),
    )
    await simulator.start()
    try:
        yield simulator
    finally:
        await simulator.stop()


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
    async with simulated(folder, script, keeps=keeps) as simulator, proxied(simulator.url) as proxy:
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
        endpoint = await asyncio.to_thread(up, of_this, programs)
        client = await connect(endpoint.target)
        deployment = Deployment(of_this, programs, endpoint.target, client, simulator, proxy)
        healing = [asyncio.create_task(deployment.heal())] if heals else []
        try:
            await deployment.served()
            yield deployment
        finally:
            await ended(*healing)
            await asyncio.to_thread(down, of_this)


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
