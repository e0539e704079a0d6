"""What strikes a deployment in a chaos campaign: kills, frozen processes, outages."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from bench.instruments.deployment import Deployment
from bench.instruments.proxy import KINDS

PAUSE = (3.0, 14.0)
"""Seconds between two blows: a worker takes some to come back, and has to get somewhere."""
STOP_SECONDS = 20.0
LONG_STOP_SECONDS = 65.0
"""Longer than any stall limit."""
AWAY_SECONDS = 30.0
"""How long nobody may start the server again: a worker gives up handing over sooner."""
OUTAGE = (5.0, 60.0)
"""Seconds for which the endpoint is lost."""
WEIGHTS = {
    "kill worker": 36,
    "kill server": 14,
    "kill server and worker": 12,
    "kill a watcher": 20,
    "server gone for 30 s": 3,
    "stop worker for 20 s": 4,
    "stop server and worker for 20 s": 4,
    "stop worker for 65 s": 1,
    "stop server and worker for 65 s": 1,
    "endpoint killed": 4,
    **{f"endpoint {kind}": 1 for kind in KINDS},
}
BOTH = ("server", "worker")


@dataclass
class Blows:
    """Strikes until it is cancelled; counts what really struck."""

    deployment: Deployment
    watchers: Mapping[str, asyncio.subprocess.Process]
    """The starters at work just now."""
    chance: Random
    only: tuple[str, ...] = tuple(WEIGHTS)
    """The ones to strike."""
    struck: Counter[str] = field(default_factory=Counter)
    seconds_out: float = 0.0
    """How long the endpoint was away, in all."""
    _outages: set[asyncio.Task[None]] = field(default_factory=set)

    async def rain(self) -> None:
        """Strike until cancelled; then frozen processes go on, and the endpoint is back."""
        weights = [WEIGHTS[name] for name in self.only]
        try:
            while True:
                await asyncio.sleep(self.chance.uniform(*PAUSE))
                [name] = self.chance.choices(self.only, weights)
                self.struck[name] += await self._strike(name)
        finally:
            for outage in self._outages:
                outage.cancel()
            await asyncio.gather(*self._outages, return_exceptions=True)

    async def _strike(self, name: str) -> bool:
        blows: dict[str, Callable[[], Awaitable[bool]]] = {
            "kill worker": lambda: self._kill("worker"),
            "kill server": lambda: self._kill("server"),
            "kill server and worker": lambda: self._kill(*BOTH),
            "kill a watcher": self._kill_watcher,
            "server gone for 30 s": self._away,
            "stop worker for 20 s": lambda: self._freeze(STOP_SECONDS, "worker"),
            "stop server and worker for 20 s": lambda: self._freeze(STOP_SECONDS, *BOTH),
            "stop worker for 65 s": lambda: self._freeze(LONG_STOP_SECONDS, "worker"),
            "stop server and worker for 65 s": lambda: self._freeze(LONG_STOP_SECONDS, *BOTH),
            "endpoint killed": lambda: self._outage(self.deployment.simulator.outage),
            **{f"endpoint {kind}": partial(self._lost, kind) for kind in KINDS},
        }
        return await blows[name]()

    async def _kill(self, *victims: str) -> bool:
        return all([_signalled(self.deployment.pid(each), signal.SIGKILL) for each in victims])

    async def _kill_watcher(self) -> bool:
        alive = list(self.watchers.values())
        return bool(alive) and _signalled(self.chance.choice(alive).pid, signal.SIGKILL)

    async def _away(self) -> bool:
        await self.deployment.outage(AWAY_SECONDS)
        return True

    async def _freeze(self, seconds: float, *victims: str) -> bool:
        pids = [self.deployment.pid(each) for each in victims]
        try:
            struck = all([_signalled(pid, signal.SIGSTOP) for pid in pids])
            await asyncio.sleep(seconds)
        finally:
            for pid in pids:
                _signalled(pid, signal.SIGCONT)
        return struck

    async def _lost(self, kind: str) -> bool:
        """The proxy before the endpoint loses it in this way."""
        return await self._outage(partial(self.deployment.proxy.outage, kind))

    async def _outage(self, strikes: Callable[[float], Coroutine[Any, Any, None]]) -> bool:
        """Runs beside other blows; one at a time."""
        if self._outages:
            return False
        seconds = self.chance.uniform(*OUTAGE)
        self.seconds_out += seconds
        outage = asyncio.create_task(strikes(seconds))
        self._outages.add(outage)
        outage.add_done_callback(self._outages.discard)
        return True


def _signalled(pid: int | None, number: signal.Signals) -> bool:
    """True if a process that we know by its record was there to be struck."""
    if not pid:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
