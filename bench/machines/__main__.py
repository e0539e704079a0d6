"""Workers on machines of their own, as network namespaces are. Prints Markdown. Needs root, Linux.

    python -m bench.machines [--repeat 3] [--only pace|kills|cap|actions] [--small]

One server (Temporal's development server on SQLite), one scripted endpoint and one S3 server listen
on a bridge; each worker is one process in a namespace of its own, with a state directory of its
own. All of them share this machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from statistics import median

from bench.instruments.clients import silence
from bench.instruments.tables import head, row
from bench.machines import COLUMNS, ENGINES
from bench.machines.measuring import Pace, Place, Struck, billed, capped, pace, struck
from bench.machines.network import networked
from bench.machines.stand import stored
from holdfast.embedded import server
from holdfast.errors import HoldfastError

Lines = AsyncIterator[str]


async def paces(place: Place, counts: tuple[int, ...], runs: int, repeat: int) -> Lines:
    """Both tables of throughput; in each repetition the engines take turns."""
    found: dict[tuple[int, str], list[Pace]] = {}
    for _ in range(repeat):
        for count in counts:
            for name in ENGINES:
                once = await pace(place, count, runs, bare=name != "here")
                found.setdefault((count, name), []).append(once)
                _tell(f"{count} workers, {name}: {once.seconds:.1f} s")

    def middle(count: int, name: str, of: Callable[[Pace], float]) -> float:
        return median(of(each) for each in found[count, name])

    yield head(COLUMNS[0])
    for count in counts:
        rates = [middle(count, name, lambda each: each.runs / each.seconds) for name in ENGINES]
        calls = [middle(count, name, lambda each: each.calls / each.seconds) for name in ENGINES]
        cells = [f"{each:.1f}" for pair in zip(rates, calls, strict=True) for each in pair]
        yield row((count, *cells, f"{rates[1] / rates[0]:.2f}"))
    yield "\n" + head(COLUMNS[1])
    for count, name in found:
        used = (
            middle(count, name, lambda each: each.spent.workers / each.runs),
            middle(count, name, lambda each: each.spent.server / each.runs),
            middle(count, name, lambda each: each.spent.others / each.runs),
        )
        yield row((count, name, *(f"{1_000 * each:.0f}" for each in used)))


async def kills(place: Place, machines: int, runs: int, repeat: int) -> Lines:
    """A row for each number of victims, with and without the shared journal; sums, but seconds are
    medians.
    """
    yield head(COLUMNS[2])
    for killed in sorted({1, machines - 1}):
        for shared in (False, True):
            every: list[Struck] = []
            for _ in range(repeat):
                every.append(await struck(place, machines, killed, runs, shared=shared))
                _tell(f"{killed} of {machines} killed, shared journal {shared}: {every[-1]}")
            sums = [
                sum(getattr(each, name) for each in every)
                for name in (
                    "runs",
                    "stuck",
                    "complete",
                    "arrived",
                    "again",
                    "sent_again",
                    "unanswered",
                )
            ]
            journal = "shared" if shared else "each machine's own"
            seconds = f"{median(each.seconds for each in every):.1f}"
            yield row((f"{killed} of {machines} workers", journal, *sums, seconds))


async def cap(place: Place, machines: int, killed: int, runs: int, most: Decimal) -> Lines:
    """The row of a day's cap."""
    done = await capped(place, machines, killed, runs, most)
    above = max(Decimal(0), done.charged - most)
    yield head(COLUMNS[3])
    cells = (done.charged, most, above, done.counted)
    money = [f"${each:.2f}" for each in cells]
    yield row((machines, killed, done.runs, done.stuck, done.calls, *money))


async def actions(place: Place, seconds: tuple[float, ...]) -> Lines:
    """A row for each length of a call."""
    yield head(COLUMNS[4])
    for each in await billed(place, seconds):
        yield row((each.load.name, each.counted, each.beats, each.usual))


def parts(place: Place, repeat: int, *, small: bool) -> dict[str, Lines]:
    """What is measured, by name. `small`: only to see that all of it runs."""
    if small:
        return {
            "pace": paces(place, (1, 2), 4, 1),
            "kills": kills(place, 2, 2, 1),
            "cap": cap(place, 3, 0, 10, Decimal("0.40")),
            "actions": actions(place, (0.0, 1.0)),
        }
    return {
        "pace": paces(place, (1, 2, 4), 100, repeat),
        "kills": kills(place, 4, 16, repeat),
        "cap": cap(place, 8, 3, 100, Decimal("4.00")),
        "actions": actions(place, (0.0, 1.0, 10.0)),
    }


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}; the machine's load {os.getloadavg()[0]:.1f}\n")


async def main(given: argparse.Namespace, version: str) -> None:
    # What is made here is also undone where this is told to end.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with networked(3 if given.small else 8) as network, tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(f"{os.cpu_count()} cores for all; {version}, on SQLite.\n")
        async with stored(network, Path(folder)) as store:
            place = Place(network, store)
            repeat = 1 if given.small else given.repeat
            for name, lines in parts(place, repeat, small=given.small).items():
                if given.only in (None, name):
                    sys.stdout.write("\n")
                    async for line in lines:
                        sys.stdout.write(line)
                        sys.stdout.flush()
                    _tell(f"{name} done")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.machines", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("pace", "kills", "cap", "actions"))
    parser.add_argument("--small", action="store_true", help="once and small: only that all runs")
    silence()
    try:
        version = subprocess.check_output([server.binary(), "--version"], text=True).strip()
        asyncio.run(main(parser.parse_args(), version))
    except HoldfastError as error:
        sys.exit(f"{error}")
    except asyncio.CancelledError:
        sys.exit("ended before it was done")
