"""The two halves of a worker as processes of their own, so that one can be killed alone: the owner
has the runs and asks no model, the hands have every activity.

    python -m bench.takeover.halves owner|hands ADDRESS QUEUE STORE_URL FOLDER

Each says `ready` once it could begin, and begins with the first line that it is sent, so that a
successor takes over within milliseconds. Each ends with its standard input.

The hands keep what a subtask's call returned until they are told `go RUN SUBTASK`, so that results
land when a measurement wants; they say `held RUN SUBTASK`, and `gone RUN SUBTASK` when it was cut.
After `open` they keep nothing, until `shut`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    UnsandboxedWorkflowRunner,
)

from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.wiring import build
from holdfast.deployment.settings import HOME, Settings
from holdfast.serving.throttle_notes import ShowThrottles
from holdfast.serving.worker import deployment_of, workers
from holdfast.telemetry.logs import LogContext
from holdfast.temporal.connection import Target, connect

BUILD = deployment_of("takeover", "takeover", pinned=False)
Key = tuple[str, str]
"""Ids of a run and of a subtask."""

# ---------------------------------------------------------------- as the measurement sees them


@dataclass
class Half:
    """One such process."""

    process: asyncio.subprocess.Process

    @classmethod
    async def waiting(
        cls, half: Literal["owner", "hands"], target: Target, folder: Path, **environment: str
    ) -> Self:
        """One that could begin at once. RuntimeError if it does not come up."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.takeover.halves",
            half,
            target.address,
            target.task_queue,
            target.store_url,
            str(folder),
            cwd=HOME,
            env=os.environ | environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the {half} of {target.task_queue} did not come up")
        return cls(process)

    def tell(self, line: str) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def kill(self) -> None:
        """Kill it with SIGKILL."""
        with suppress(ProcessLookupError):
            self.process.kill()
        # Drains and closes the pipes, too.
        await self.process.communicate()


@dataclass
class Hands(Half):
    """The process with the activities, and what it holds."""

    held: set[Key] = field(default_factory=set)

    async def listen(self) -> None:
        """Keep `held` up to date, forever."""
        assert self.process.stdout is not None
        while line := (await self.process.stdout.readline()).decode():
            what, run, subtask = line.split()
            (self.held.add if what == "held" else self.held.discard)((run, subtask))

    async def quiet(self, seconds: float) -> list[Key]:
        """What is held, once nothing has come for this time."""
        seen = -1
        while seen != len(self.held):
            seen = len(self.held)
            await asyncio.sleep(seconds)
        return sorted(self.held)

    def go(self, key: Key) -> None:
        """Let a result land."""
        self.held.discard(key)
        self.tell(f"go {' '.join(key)}")


# ---------------------------------------------------------------- as processes


class Holding(Interceptor):
    """Holds results back."""

    def __init__(self) -> None:
        self.waiting: dict[Key, asyncio.Event] = {}
        self.is_open = False

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Holds(next, self)

    def told(self, line: str) -> None:
        """Do what the measurement says."""
        match line.split():
            case ["go", run, subtask] if (run, subtask) in self.waiting:
                self.waiting[run, subtask].set()
            case ["open" | "shut" as what]:
                self.is_open = what == "open"
                for event in self.waiting.values() if self.is_open else ():
                    event.set()

    async def until_let_go(self, key: Key) -> None:
        """Return when told, or when the activity was cut: the result is there all the same."""
        event = self.waiting[key] = asyncio.Event()
        _say(f"held {' '.join(key)}")
        try:
            while not event.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await event.wait()
                activity.heartbeat()
        except asyncio.CancelledError:
            _say(f"gone {' '.join(key)}")
        finally:
            del self.waiting[key]


class _Holds(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, holding: Holding) -> None:
        super().__init__(next)
        self._holding = holding

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        result = await super().execute_activity(input)
        info = activity.info()
        if info.activity_type == "work" and info.workflow_id and not self._holding.is_open:
            await self._holding.until_let_go((info.workflow_id, input.args[0].subtask_id))
        return result


async def owner(target: Target, folder: Path) -> None:
    """Own runs until standard input ends."""
    client = await connect(target)
    whole = build(Settings(_env_file=None, state_dir=folder), target)
    half = replace(whole, free=[], asking=[], tiers=())
    interceptors = [LogContext(), ShowThrottles(dict)]
    runner = UnsandboxedWorkflowRunner()
    mine, _ = workers(client, target.task_queue, half, BUILD, interceptors, workflow_runner=runner)
    _say("ready")
    if await asyncio.to_thread(sys.stdin.readline):
        serving = asyncio.create_task(mine.run())
        await asyncio.to_thread(sys.stdin.read)
        serving.cancel()


async def hands(target: Target, folder: Path) -> None:
    """Carry out activities until standard input ends; the environment names the model endpoint."""
    client = await connect(target)
    served = build(Settings(_env_file=None, state_dir=folder), target, RateGate())
    holding = Holding()
    async with AsyncExitStack() as stack:
        for half in workers(client, target.task_queue, served, BUILD, [holding], workflows=()):
            await stack.enter_async_context(half)
        _say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            holding.told(line)
        # Nobody is left to hand anything over to.
        os._exit(0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    half, address, queue, store_url, place = sys.argv[1:]
    where = Target(address, task_queue=queue, store_url=store_url)
    asyncio.run((owner if half == "owner" else hands)(where, Path(place)))
    os._exit(0)
