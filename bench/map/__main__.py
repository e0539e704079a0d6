"""Maps of stated rows, undisturbed and under fire. Prints Markdown.

    python -m bench.map [ROWS] [--kills 30] [--servers] [--seed 7] [--only now|batch|bare|kills]
    python -m bench.map --hundred-thousand

A row takes 0.6 to 1.4 s by itself, 50 at once; a batch 20 to 40 s. The bound is all calls at that
concurrency. One row of 97 is first answered by what is no JSON. The plan says how many tokens an
answer usually has, which the price said before is made of: no schema says it. Bare Temporal asks
2,000 rows, an activity each, by a workflow written by hand. Peaks are of a worker that did nothing
else.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.instruments.clients import silence
from bench.instruments.tables import head, row
from bench.instruments.usage import used
from bench.map import COLUMNS
from bench.map.kills import Struck, strike
from bench.map.measuring import Done, Size, do, size_of
from bench.map.work import AT_ONCE, MEAN, Work
from bench.overhead.engines import bare_deployed
from bench.overhead.loads import Load
from holdfast.contracts.plans import Lane

FEW = 1_000
BARE_ROWS = 2_000
LANES: tuple[Lane, ...] = ("now", "batch")
ROOM = 4
"""The cap of a work under fire, over what it costs undisturbed: each row that was in flight at a
kill counts at its worst case. By batches it is what all rows cost at worst, as a batch is reserved
whole.
"""
HUNDRED_THOUSAND = 100_000


def figures(work: Work, done: Done) -> str:
    """Return a work's row of the first table."""
    over = f"{done.seconds / work.bound:.2f}" if work.lane == "now" else ""
    money = f"${done.expected:.4f} / ${done.report.dollars or 0:.4f} / ${done.charged:.4f}"
    return row(
        (
            work.lane,
            f"{done.counts.complete:,} of {work.rows:,}",
            f"{done.seconds:.0f}",
            over,
            f"{done.run.events:,}, {done.map.events:,}",
            f"{done.run.bytes / 1_000:.0f}, {done.map.bytes / 1_000:.0f}",
            f"{done.peak:.0f}",
            f"{1_000 * done.used.worker:.1f}",
            f"{1_000 * done.used.server:.2f}",
            money,
        )
    )


async def bare(rows: int) -> str:
    """Return the row of bare Temporal."""
    load = Load("R", "rows", ((MEAN,),))
    with tempfile.TemporaryDirectory() as name:
        async with bare_deployed(Path(name), [load]) as (deployment, _):
            before, began = await used(deployment), time.monotonic()
            handle = await deployment.client.start_workflow(
                "BareRowsWorkflow",
                args=[rows, AT_ONCE],
                id="bare-rows",
                task_queue=deployment.target.task_queue,
            )
            await handle.result()
            seconds = time.monotonic() - began
            spent = (await used(deployment) - before) / rows
            size: Size = await size_of(handle)
    return row(
        (
            "bare Temporal, an activity a row",
            f"{rows:,} of {rows:,}",
            f"{seconds:.0f}",
            f"{seconds / (rows * MEAN / AT_ONCE):.2f}",
            f"{size.events:,}",
            f"{size.bytes / 1_000:.0f}",
            "",
            f"{1_000 * spent.worker:.1f}",
            f"{1_000 * spent.server:.2f}",
            "",
        )
    )


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.map", description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=10_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--servers", action="store_true", help="every sixth kill is the server's")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", choices=("now", "batch", "bare", "kills"))
    parser.add_argument("--lane", choices=LANES, help="kills in this lane alone")
    parser.add_argument("--hundred-thousand", action="store_true", help="by batches, once")
    given = parser.parse_args()
    say(f"{os.cpu_count()} cores, their load {os.getloadavg()[0]:.1f} before.\n\n")
    say(head(COLUMNS[0]))
    if given.hundred_thousand:
        work = Work(HUNDRED_THOUSAND, lane="batch")
        say(figures(work, await do(work)))
        return
    done: dict[Lane, Done] = {}
    for lane in LANES:
        if given.only in (None, lane):
            sizes = sorted({min(FEW, given.rows), given.rows})
        else:
            sizes = [given.rows] if given.only == "kills" and given.lane in (None, lane) else []
        for rows in sizes:
            work = Work(rows, lane=lane)
            done[lane] = await do(work)
            say(figures(work, done[lane]))
    if given.only in (None, "bare"):
        say(await bare(min(BARE_ROWS, given.rows)))
    if given.kills and given.only in (None, "kills"):
        say("\n" + head(COLUMNS[1]))
        for lane, calm in done.items():
            wide = calm.charged * ROOM if lane == "now" else calm.high
            # Half of what few rows cost does not pay for the least that a map begins with.
            caps = (wide, calm.charged / 2) if given.rows >= FEW else (wide,)
            for cap in caps:
                struck = Struck(Work(given.rows, lane=lane), given.kills, given.servers, cap)
                say(await strike(struck, calm.table, given.seed))


if __name__ == "__main__":
    silence()
    asyncio.run(main())
