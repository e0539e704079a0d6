"""Works under fire: the worker, and now and then the server, killed with -9 at random moments."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from bench.instruments.deployment import Deployment
from bench.instruments.tables import row
from bench.map.measuring import counts_of, digest_of, left_of, place
from bench.map.work import Work
from holdfast.contracts import Report

PAUSE = (4.0, 16.0)
"""Seconds between two kills."""
SERVER = 6
"""Every so many kills, it is the server's turn, where servers are killed at all."""


@dataclass(frozen=True)
class Struck:
    """What was done to a work: kills, and whether servers are killed, too."""

    work: Work
    kills: int
    servers: bool
    cap: Decimal


async def strike(struck: Struck, undisturbed: str, seed: int) -> str:
    """Return the row of a work under fire; `undisturbed` is the digest of its table otherwise."""
    chance = random.Random(seed)
    work = struck.work
    async with place() as (deployment, folder):
        handle = await deployment.start(work.goal(work.write(folder), str(struck.cap)))
        done = asyncio.create_task(deployment.result(handle))
        kills, servers = await _kill(deployment, struck, done, chance)
        report = await done
        _, _, table = await left_of(deployment, handle)
        same = "equal" if await digest_of(deployment, table) == undisturbed else "differs"
        log = await asyncio.to_thread(counts_of, deployment)
        # Of a batch, which has no answers in the journal, no row may be charged twice at all.
        journal = deployment.settings.state_dir / "journal"
        twice = log["duplicates"] if work.lane == "batch" else answered_twice(journal)
    never = log["admitted"] - log["delivered"]
    complete = table.counts.complete
    name = f"{work.lane}, {kills} kills of the worker, {servers} of the server"
    ledger = f"${report.dollars} / ${log['dollars']} / ${struck.cap}"
    return row((name, f"{work.rows:,}", f"{complete:,}", never, twice, ledger, same))


def answered_twice(journal: Path) -> int:
    """Return the answers that arrived for what had been answered before: the last part of a key is
    a digest of all that is asked, which try it is included.
    """
    keys = (path.with_suffix(".sent").read_text() for path in journal.glob("*.answer"))
    answers = Counter(key.rpartition("/")[2] for key in keys)
    return sum(count - 1 for count in answers.values())


async def _kill(
    deployment: Deployment, struck: Struck, done: asyncio.Task[Report], chance: random.Random
) -> tuple[int, int]:
    """Kill until the run is over or enough were killed; return how many workers and servers."""
    killed = [0, 0]
    while sum(killed) < struck.kills:
        await asyncio.wait([done], timeout=chance.uniform(*PAUSE))
        if done.done():
            break
        server = struck.servers and sum(killed) % SERVER == SERVER - 1
        name = "server" if server else "worker"
        if deployment.pid(name):
            deployment.kill(name)
            killed[server] += 1
    return killed[0], killed[1]
