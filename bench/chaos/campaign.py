"""A chaos campaign: several runs at once on a deployment of their own, random graphs, an endpoint
with faults, real starters and watchers attached, two clients that query constantly, people who give
orders; and random kills of worker, server, both and watchers, frozen processes, and outages of the
endpoint of every kind.

    python -m bench.chaos [--minutes 10] [--seed 1] [--runs 6]        prints Markdown

`--only "kill worker"` chooses a kind of blow, `--no-faults` an endpoint without faults, `--keep
FOLDER` exports the histories that do not replay.

After the last blow the runs have some minutes to close. Then every history is replayed strictly and
every bill compared with what the endpoint charged. Exit code 1 if a history does not replay, a run
is stuck, a bill is below its charge, or a process is left behind; 130 after Ctrl-C. Needs neither
key nor network, and leaves nothing else behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from bench.chaos import goals
from bench.chaos.bills import Bills
from bench.chaos.blows import WEIGHTS, Blows
from bench.chaos.goals import Asked
from bench.chaos.verdict import Verdict
from bench.instruments.clients import QUERIES, ask, silence
from bench.instruments.deployment import Deployment, deployed
from bench.instruments.histories import Histories, over
from holdfast.certifying.deployment import ended
from holdfast.certifying.people import answer_to, say, waits_for
from holdfast.cli.screen.exits import Code
from holdfast.deployment.settings import HOME
from holdfast.embedded import ensure_up
from holdfast.storage import store_at
from holdfast.temporal.connection import connect

CLOSING_SECONDS = 300.0
"""How long runs may take to close once nothing strikes any more."""
QUERY_PAUSE_SECONDS = 0.2
ORDER_SECONDS = 15.0
PERSON_SECONDS = 3.0
"""How often people look whether a run waits for them."""
RESPITE_SECONDS = 1.0
"""How long it takes until a watcher is started again."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a campaign."""

    minutes: float = 10.0
    seed: int = 1
    runs: int = 6
    """At once."""
    only: tuple[str, ...] = tuple(WEIGHTS)
    """Blows."""
    faults: bool = True
    """True if the endpoint has faults."""
    keep: Path | None = None


@dataclass
class Campaign:
    """A campaign under way."""

    wanted: Wanted
    deployment: Deployment
    folder: Path
    begun: list[Asked] = field(default_factory=list)
    watchers: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    """Why watchers ended while their run was open."""
    answers: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)

    async def run(self) -> Blows:
        """Load and blows until the time is over, then the end of all runs; what struck."""
        chance = random.Random(self.wanted.seed)
        blows = Blows(self.deployment, self.watchers, chance, self.wanted.only)
        until = time.monotonic() + self.wanted.minutes * 60
        raining = asyncio.create_task(blows.rain())
        lanes = [asyncio.create_task(self._lane(until)) for _ in range(self.wanted.runs)]
        try:
            await asyncio.wait([raining, *lanes], timeout=until - time.monotonic())
            await ended(raining)
            await asyncio.wait(lanes, timeout=CLOSING_SECONDS)
        finally:
            # Lanes that still run watch what is stuck.
            await ended(raining, *lanes)
        for task in (raining, *lanes):
            # A mistake of the campaign's own.
            if not task.cancelled():
                task.result()
        return blows

    async def _lane(self, until: float) -> None:
        while time.monotonic() < until:
            goal = goals.asked(self.wanted.seed, len(self.begun) + 1, self.folder)
            self.begun.append(goal)
            await self._one(goal)

    async def _one(self, goal: Asked) -> None:
        """One run from its start to its end, watched and steered."""
        target = self.deployment.target
        clients = [await connect(target, 60) for _ in QUERIES]
        around = [
            asyncio.create_task(self._watch(goal)),
            asyncio.create_task(self._order(goal)),
            asyncio.create_task(self._attend(goal)),
            *(
                asyncio.create_task(
                    ask(client, query, goal.run_id, self.answers, QUERY_PAUSE_SECONDS)
                )
                for client, query in zip(clients, QUERIES, strict=True)
            ),
        ]
        handle = self.deployment.client.get_workflow_handle(goal.run_id)
        closing = asyncio.create_task(over(handle))
        try:
            # Its watcher ends by itself when the run was refused.
            await asyncio.wait([closing, around[0]], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended(closing, *around)

    async def _watch(self, goal: Asked) -> None:
        """A starter, and whenever it has gone a watcher, forever, unless the run is refused."""
        arguments = (*goal.arguments, "--id", goal.run_id)
        while True:
            process = await self._starter(*arguments)
            self.watchers[goal.run_id] = process
            try:
                code = await process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                del self.watchers[goal.run_id]
            status = await self._status(goal.run_id)
            if status is None or status is WorkflowExecutionStatus.RUNNING:
                self.left["killed" if code == -signal.SIGKILL else f"with exit code {code}"] += 1
            if status is None and code == Code.REFUSED:
                return
            if status is not None:
                arguments = ("watch", goal.run_id)
            await asyncio.sleep(RESPITE_SECONDS)

    async def _starter(self, *arguments: str) -> asyncio.subprocess.Process:
        settings = self.deployment.settings
        ours = {
            "HOLDFAST_STATE_DIR": str(settings.state_dir),
            "ANTHROPIC_BASE_URL": settings.anthropic_base_url,
            "ANTHROPIC_API_KEY": "scripted",
        }
        with (self.folder / "starters.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "starter.py",
                *arguments,
                "--embedded",
                cwd=HOME,
                env=os.environ | ours,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
            )

    async def _status(self, run_id: str) -> WorkflowExecutionStatus | None:
        """None: there is no such run, or nobody who knows."""
        with contextlib.suppress(RPCError):
            return (await self.deployment.client.get_workflow_handle(run_id).describe()).status
        return None

    async def _order(self, goal: Asked) -> None:
        """What people say by the clock."""
        handle = self.deployment.client.get_workflow_handle(goal.run_id)
        began = time.monotonic()
        for at, name, order in goal.orders:
            await asyncio.sleep(max(began + at - time.monotonic(), 0))
            if name == "cancel":
                with contextlib.suppress(RPCError):
                    await handle.cancel()
                    self.orders["cancelled runs"] += 1
            else:
                self.orders[await say(handle, name, order, ORDER_SECONDS)] += 1

    async def _attend(self, goal: Asked) -> None:
        """What people say when a run waits for them."""
        handle = self.deployment.client.get_workflow_handle(goal.run_id)
        while True:
            await asyncio.sleep(PERSON_SECONDS)
            for question in await waits_for(handle):
                name, order = answer_to(question, "chaos")
                self.orders[await say(handle, name, order, ORDER_SECONDS)] += 1


async def measured(wanted: Wanted) -> Verdict:
    """A campaign from its first process to its last."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            script = goals.ENDPOINT | (goals.FAULTS if wanted.faults else {})
            async with deployed(folder, script, through_proxy=True) as deployment:
                campaign = Campaign(wanted, deployment, folder)
                blows = await campaign.run()
                verdict = await _judged(campaign, blows)
        finally:
            behind = _swept(folder)
        verdict.behind = behind
        return verdict


async def _judged(campaign: Campaign, blows: Blows) -> Verdict:
    deployment = campaign.deployment
    # A server that was killed may have come back on another port: somebody else had taken its own.
    endpoint = await asyncio.to_thread(
        ensure_up, deployment.settings, "watcher", deployment.programs
    )
    client = await connect(endpoint.target, 60)
    log = await asyncio.to_thread(deployment.simulator.log)
    store = store_at(deployment.target.store_url)
    histories = Histories(client, store, campaign.wanted.keep)
    bills = Bills()
    for goal in campaign.begun:
        stuck = len(histories.stuck)
        await histories.take(goal.run_id)
        if len(histories.stuck) == stuck:
            charged = log["marks"].get(goal.mark, {"calls": 0, "dollars": "0"})
            await bills.compare(client, goal.run_id, charged)
    counts: dict[str, int | Counter[str]] = {
        **dict(sorted(blows.struck.items())),
        "seconds without endpoint": round(blows.seconds_out),
        "watchers that left while their run was open": campaign.left,
        "queries answered": campaign.answers,
        "orders": campaign.orders,
    }
    return Verdict(counts, histories, bills, log)


def _swept(folder: Path) -> int:
    """End what still names our folder; how many processes that were."""
    ours = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
    ]
    for process in ours:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(ours)


async def _until_told(wanted: Wanted) -> Verdict:
    """SIGTERM ends a campaign as cleanly as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await measured(wanted)


def main() -> int:
    about = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=about)
    parser.add_argument("--minutes", type=float, default=Wanted.minutes, help="of blows")
    parser.add_argument("--seed", type=int, default=Wanted.seed)
    parser.add_argument("--runs", type=int, default=Wanted.runs, help="at once")
    parser.add_argument("--only", action="append", choices=WEIGHTS, help="this kind of blow")
    parser.add_argument("--no-faults", dest="faults", action="store_false", help="of the endpoint")
    parser.add_argument("--keep", type=Path, help="folder for histories that do not replay")
    given = vars(parser.parse_args())
    given["only"] = tuple(given["only"] or WEIGHTS)
    silence()
    try:
        verdict = asyncio.run(_until_told(Wanted(**given)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    sys.stdout.write(verdict.table())
    return 1 if verdict.wrong else 0
