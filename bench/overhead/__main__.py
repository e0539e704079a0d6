"""What the engine adds, beside bare Temporal and a floor without it. Prints Markdown.

    python -m bench.overhead [--repeat 3] [--only A] [--small]

Over the ideal: seconds by those of the longest path through a run. Ranges are over repetitions; in
each the three engines take turns at each load, each with processes of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Sequence

from bench.instruments.clients import silence
from bench.instruments.tables import head
from bench.overhead import COLUMNS
from bench.overhead.engines import Measured, bare, floor, here
from bench.overhead.loads import LOADS, SMALL, Load
from bench.overhead.rows import ENGINES, of_times, of_use

Results = dict[str, dict[str, list[Measured]]]
"""Mark of the load -> engine -> what was measured, once a repetition."""


async def measured(groups: Sequence[Sequence[Load]], repeat: int) -> Results:
    """The loads of a group share processes."""
    results: Results = defaultdict(lambda: defaultdict(list))
    for number in range(repeat):
        for loads in groups:
            for name, engine in zip(ENGINES, (floor, bare, here), strict=True):
                for load, once in zip(loads, await engine(loads), strict=True):
                    results[load.mark][name].append(once)
                    done = f"{number + 1} of {repeat}: {load.name}, {name}, {once.seconds:.2f} s"
                    sys.stderr.write(f"{done}; the machine's load {os.getloadavg()[0]:.1f}\n")
    return results


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=[load.mark for load in LOADS], help="this load alone")
    parser.add_argument("--small", action="store_true", help="tiny loads, once: only that all runs")
    given = parser.parse_args()
    loads = [each for each in (SMALL if given.small else LOADS) if given.only in (None, each.mark)]
    groups = [loads] if given.small else [[load] for load in loads]
    began = os.getloadavg()[0]
    results = await measured(groups, 1 if given.small else given.repeat)
    write = sys.stdout.write
    write(f"Medians and ranges of {1 if given.small else given.repeat}; {os.cpu_count()} cores,")
    write(f" their load {began:.1f} before and {os.getloadavg()[0]:.1f} at the end.\n\n")
    for columns, of in zip(COLUMNS, (of_times, of_use), strict=True):
        write(head(columns))
        for load in loads:
            write(of(load, results[load.mark]))
        write("\n")


if __name__ == "__main__":
    silence()
    asyncio.run(main())
