"""Simulator, embedded server and worker as real processes, in a folder that goes away, for whoever
measures or certifies and strikes them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from holdfast.contracts import Report
from holdfast.deployment.settings import PACKAGE, Settings
from holdfast.embedded import Programs, down, ensure_up, server, status, up
from holdfast.errors import EmbeddedError, Refused
from holdfast.history.troubles import find_report
from holdfast.temporal.connection import Target, connect
from holdfast.workers.served import find_served

HEAL_SECONDS = 0.5
POLL_SECONDS = 0.05
SIMULATOR = ("-m", "holdfast.simulator", "--child")
"""A process of its own: only tests of users import it."""


@dataclass
class Simulated:
    """A simulator in a process of its own, always on the same port; what it charged is kept in a
    file, so that it can be killed.
    """

    url: str
    command: tuple[str, ...]
    errors: Path
    """The file with what it says when it cannot start."""
    process: asyncio.subprocess.Process | None = None

    def log(self) -> dict[str, Any]:
        """Return what it was asked and what it would have charged. Blocking."""
        with urlopen(f"{self.url}/simulator/log", timeout=10) as answer:
            log: dict[str, Any] = json.load(answer)
            return log

    def reset(self, script: Mapping[str, Any]) -> None:
        """Let it forget everything, and go on with this script. Blocking."""
        body = json.dumps(dict(script)).encode()
        urlopen(Request(f"{self.url}/simulator/reset", body, method="POST"), timeout=10).close()

    async def start(self) -> None:
        """Return when it listens. Refused for a script that it cannot use."""
        with self.errors.open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *self.command,
                cwd=PACKAGE.parent,
                # It ends when this process does, however that ends.
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        if not await self.process.stdout.readline():
            await self.process.wait()
            said = self.errors.read_text().splitlines() or ["it said nothing"]
            raise Refused(f"the simulator does not start: {said[-1]}")

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
    """Server, worker and simulator, for whoever strikes them."""

    settings: Settings
    programs: Programs
    target: Target
    client: Client
    simulator: Simulated

    async def result(self, handle: WorkflowHandle[Any, Report]) -> Report:
        """Return the report, however often the server goes away; also of a run that failed."""
        while True:
            try:
                return await outcome(handle)
            except RPCError:
                await asyncio.sleep(POLL_SECONDS)

    def pid(self, name: str) -> int | None:
        """Return the pid of `server` or `worker`; None while it does not run."""
        now = status(self.settings)
        return now.server_pid if name == "server" else now.worker_pid

    def kill(self, *victims: str) -> bool:
        """Kill these with -9; True if all were there to be struck."""
        pids = [self.pid(each) for each in victims]
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return all(pids)

    async def served(self) -> None:
        """Return once a worker asks for calls."""
        while True:
            _, models = await find_served(self.client, self.target.task_queue)
            if models:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def revive(self) -> None:
        """Start what has died, once."""
        await asyncio.to_thread(ensure_up, self.settings, "watcher", self.programs)

    @asynccontextmanager
    async def kept(self, *, heals: bool = True) -> AsyncIterator[None]:
        """Return once it is served. With `heals`, whatever dies in the block is started again."""
        healing = [asyncio.create_task(self.heal())] if heals else []
        try:
            await self.served()
            yield
        finally:
            await ended(*healing)

    async def heal(self) -> None:
        """Start what has died, forever."""
        while True:
            with suppress(EmbeddedError):
                await self.revive()
            await asyncio.sleep(HEAL_SECONDS)


async def outcome(handle: WorkflowHandle[Any, Report], patience: timedelta | None = None) -> Report:
    """Return the report of a run, also of one that failed: then it is in the failure's details."""
    try:
        return await handle.result(rpc_timeout=patience)
    except WorkflowFailureError as error:
        report = find_report(error.cause)
        if report is None:
            raise
        return report


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def simulated(
    folder: Path,
    script: Mapping[str, Any],
    *,
    cassette: Path | None = None,
    requests: Path | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[Simulated]:
    """Yield a simulator with this script, or with a cassette. `requests`: gets each request;
    `host`: where it listens.
    """
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump(dict(script)))
    # A port that no client is ever given: it must still be free after an outage.
    port = server.free_port(0, set())
    files = {
        "--script": path,
        "--memory": folder / "charged.jsonl",
        "--cassette": cassette,
        "--requests": requests,
    }
    given = (part for name, file in files.items() if file for part in (name, str(file)))
    url = f"http://{host}:{port}"
    command = (sys.executable, *SIMULATOR, "--host", host, "--port", str(port), *given)
    simulator = Simulated(url, command, folder / "simulator.log")
    await simulator.start()
    try:
        yield simulator
    finally:
        await simulator.stop()


@asynccontextmanager
async def running(settings: Settings, programs: Programs) -> AsyncIterator[tuple[Target, Client]]:
    """Yield the address of a server with its worker, and a client, until the block ends."""
    starting = asyncio.create_task(asyncio.to_thread(up, settings, programs))
    try:
        # Also where this is cancelled meanwhile, whatever it starts is stopped.
        endpoint = await asyncio.shield(starting)
        yield endpoint.target, await connect(endpoint.target)
    finally:
        await asyncio.wait([starting])
        await asyncio.to_thread(down, settings)
