"""Takeovers of watched runs: the process that owns the runs is killed with -9 and another takes
over, while two clients query each run constantly; results, timers and orders land around it.

    python -m bench.takeover [--times 30] [--seed 1] [--runs 4]        prints Markdown

Server, activities and simulator stay up, so that everything that lands is one event of history. Two
of three takeovers are timed for what poisons histories best: results land between a query's
activation and the new owner's first workflow task, or after a task that the dead owner had begun.
At the end every history is replayed strictly. Exit code 1 if one does not replay or a run does not
close. `--unwatched` is the control: nobody queries. `--keep FOLDER` exports what does not replay.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from bench.instruments.clients import QUERIES, ask, silence
from bench.instruments.histories import Histories, over
from bench.takeover.goals import KINDS, LAST, WIDTH, Kind
from bench.takeover.halves import Half, Hands
from holdfast.certifying.deployment import ended
from holdfast.certifying.people import say
from holdfast.contracts import Order
from holdfast.embedded import server
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage import store_at
from holdfast.temporal.connection import Target, connect

QUEUE = "takeover"
TAKEOVERS_PER_ROUND = 2
"""A history that was poisoned at the first is met at the second: such a run is stuck."""
CLOSING_SECONDS = 40.0
ORDER_SECONDS = 20.0
QUIET_SECONDS = 0.6
"""When no further result was held for this long, all is under way that can be."""


@dataclass(frozen=True)
class Wanted:
    """What is to be measured."""

    times: int = 30
    seed: int = 1
    runs: int = 4
    """At once."""
    watched: bool = True
    keep: Path | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds after the blow."""

    successor: float
    """When another process begins to take over."""
    first: float
    """When the first result lands."""
    rest: tuple[float, float]
    orders: tuple[float, float]


def timing(number: int, chance: random.Random) -> Timing:
    """Return the timing of this takeover: two of three are where it hurts most."""
    match number % 3:
        case 0:
            # The dead owner's own queue keeps its tasks for a second: the successor is asked before
            # it may work.
            first = chance.uniform(0.4, 0.95)
            return Timing(chance.uniform(0.3, 1.1), first, (first + 0.2, first + 1.1), (-0.3, 2.0))
        case 1:
            # The owner dies with a task in hand, which times out after 10 s: until then the
            # successor is asked about a history that ends with it.
            first = chance.uniform(-0.1, 0.0)
            return Timing(chance.uniform(0.2, 1.0), first, (0.5, 10.0), (1.0, 9.0))
    first = chance.uniform(-0.3, 2.0)
    return Timing(chance.uniform(0.0, 2.0), first, (-0.3, 2.5), (-0.5, 2.5))


@dataclass(frozen=True)
class Run:
    """One run and what it is about."""

    kind: Kind
    handle: WorkflowHandle[Any, Any]


@dataclass
class Takeovers:
    """A measurement under way, and its counts."""

    target: Target
    clients: tuple[Client, ...]
    """One to start and to steer, and one for each of the queries."""
    simulator: Simulator
    hands: Hands
    owner: Half
    folder: Path
    chance: random.Random
    histories: Histories
    watched: bool
    done: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)

    async def round(self, kinds: Sequence[Kind], takeovers: int) -> None:
        """Runs of these kinds, all of them taken over this many times."""
        self.hands.tell("shut")
        runs = await self._started(kinds)
        asking = [
            asyncio.create_task(ask(client, query, run.handle.id, self.answers))
            for client, query in zip(self.clients[1:], QUERIES, strict=True)
            for run in runs
            if self.watched
        ]
        saying: list[asyncio.Task[None]] = []
        for _ in range(takeovers):
            saying += await self._taken_over(runs)
        self.hands.tell("open")
        await asyncio.gather(*(self._ended(run) for run in runs), *saying)
        await ended(*asking)
        for run in runs:
            await self.histories.take(run.handle.id)
            with suppress(RPCError):
                # A stuck run would keep every owner to come busy.
                await run.handle.terminate()

    async def _started(self, kinds: Sequence[Kind]) -> list[Run]:
        names = [uuid.uuid4().hex[:8] for _ in kinds]
        self.simulator.reset()
        rules = [rule for kind, name in zip(kinds, names, strict=True) for rule in kind.rules(name)]
        self.simulator.script = Script.model_validate({"rules": rules})
        runs = []
        for kind, name in zip(kinds, names, strict=True):
            run_id = f"{kind.name}-{name}".replace(" ", "-")
            handle = await self.clients[0].start_workflow(
                "SupervisorWorkflow", kind.goal(name), id=run_id, task_queue=QUEUE
            )
            runs.append(Run(kind, handle))
        return runs

    async def _taken_over(self, runs: Sequence[Run]) -> list[asyncio.Task[None]]:
        """One takeover; what was said to the runs may be answered later."""
        successor = await Half.waiting("owner", self.target, self.folder)
        holding = await self.hands.quiet(QUIET_SECONDS)
        at, acts = timing(self.done, self.chance), [_at(0, self.owner.kill)]
        acts.append(_at(at.successor, _once(partial(successor.tell, "begin"))))
        for key in holding:
            is_last = int(key[1].removeprefix("t")) % WIDTH == LAST % WIDTH
            lands = at.first if is_last else self.chance.uniform(*at.rest)
            acts.append(_at(lands, _once(partial(self.hands.go, key))))
        said = [(run, *each) for run in runs for each in run.kind.orders]
        self.chance.shuffle(said)
        saying = [
            asyncio.create_task(self._say(run, name, order, self.chance.uniform(*at.orders)))
            for run, name, order in said
        ]
        await asyncio.gather(*acts)
        self.owner = successor
        self.done += 1
        return saying

    async def _say(self, run: Run, name: str, order: Order, after: float) -> None:
        await asyncio.sleep(max(after + LEAD_SECONDS, 0))
        self.orders[await say(run.handle, name, order, ORDER_SECONDS)] += 1

    async def _ended(self, run: Run) -> None:
        """Wait until a run closes; meanwhile people answer whatever it may still ask."""

        people = asyncio.create_task(self._answer(run))
        await over(run.handle, CLOSING_SECONDS)
        await ended(people)

    async def _answer(self, run: Run) -> None:
        while True:
            for name, order in run.kind.ending:
                await say(run.handle, name, order, 5)
            await asyncio.sleep(1)


LEAD_SECONDS = 0.5
"""How long before the blow the first order may be said."""


async def _at(seconds: float, act: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(max(seconds + LEAD_SECONDS, 0))
    await act()


def _once(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def acted() -> None:
        act()

    return acted


@asynccontextmanager
async def takeovers(folder: Path, wanted: Wanted) -> AsyncIterator[Takeovers]:
    """Everything up: server, simulator, activities, and a first owner."""
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(
            await WorkflowEnvironment.start_local(
                dev_server_existing_path=str(server.binary()),
                dev_server_log_level="never",
                dev_server_extra_args=[
                    part for flag in server.DYNAMIC for part in ("--dynamic-config-value", flag)
                ],
            )
        )
        address = environment.client.service_client.config.target_host
        target = Target(address, task_queue=QUEUE, store_url=(folder / "store").as_uri())
        simulator = await stack.enter_async_context(Simulator())
        clients = tuple([await connect(target) for _ in ("steering", *QUERIES)])
        names = {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "scripted"}
        hands, owner = await asyncio.gather(
            Hands.waiting("hands", target, folder, **names),
            Half.waiting("owner", target, folder),
        )
        stack.push_async_callback(hands.kill)
        listening = asyncio.create_task(hands.listen())
        stack.push_async_callback(ended, listening)
        owner.tell("begin")
        under_way = Takeovers(
            target,
            clients,
            simulator,
            hands,
            owner,
            folder,
            random.Random(wanted.seed),
            Histories(clients[0], store_at(target.store_url), wanted.keep),
            wanted.watched,
        )
        stack.push_async_callback(lambda: under_way.owner.kill())
        yield under_way


async def measured(wanted: Wanted) -> Takeovers:
    """This many takeovers of this many runs at once, of all kinds in turn."""
    turn = 0
    with tempfile.TemporaryDirectory() as place:
        async with takeovers(Path(place), wanted) as under_way:
            while (left := wanted.times - under_way.done) > 0:
                kinds = [KINDS[(turn + each) % len(KINDS)] for each in range(wanted.runs)]
                turn += wanted.runs
                await under_way.round(kinds, min(TAKEOVERS_PER_ROUND, left))
            return under_way


def table(measure: Takeovers) -> str:
    """The counts as Markdown, and a line for each history that is not sound."""
    histories = measure.histories
    rows = {
        "takeovers": measure.done,
        "runs": histories.runs,
        "runs closed": histories.closed,
        "runs stuck": len(histories.stuck),
        "histories that do not replay (TMPRL1100)": len(histories.poisoned),
        "histories that replay with other arguments": len(histories.different),
        **{f"`{query}` answered": measure.answers[query] for query in QUERIES},
        **{f"orders {what}": count for what, count in sorted(measure.orders.items())},
    }
    lines = ["| what | count |", "|---|---|", *(f"| {what} | {n} |" for what, n in rows.items())]
    wrong = [*histories.stuck, *histories.poisoned, *histories.different]
    return "\n".join(lines) + "\n" + "".join(f"\n{line}" for line in wrong) + "\n"


def main() -> int:
    about = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.takeover", description=about)
    parser.add_argument("--times", type=int, default=Wanted.times)
    parser.add_argument("--seed", type=int, default=Wanted.seed)
    parser.add_argument("--runs", type=int, default=Wanted.runs, help="at once")
    parser.add_argument("--unwatched", dest="watched", action="store_false", help="nobody queries")
    parser.add_argument("--keep", type=Path, help="folder for histories that do not replay")
    silence()
    measure = asyncio.run(measured(Wanted(**vars(parser.parse_args()))))
    sys.stdout.write(table(measure))
    return 0 if measure.histories.sound else 1
