"""Storms of refusals in virtual time, as the tests play them (tests/support/storms.py).

    python -m bench.virtual_storm [SEEDS]        prints Markdown; 30 seeds take some ten seconds

A refusal is back after 15 ms and asks for 1 s; a call that is tried again is up to 1.25 s late, as
Temporal may be. Goodput is of what the endpoint would have taken in that time; 60 calls at once.
The same seeds give the same figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from bench.instruments.tables import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from storms import Endpoint, Storm, without

COLUMNS = (
    ("endpoint", "goodput, median", "worst", "refusals per call", "after the first moment"),
    ("refused at random", "of the time without, median", "worst"),
)
CALLS = 60
CHAINS, LINKS = 16, 3
LONG = (0.2, 3.0)
ENDPOINTS: Sequence[tuple[str, Endpoint, int]] = (
    *((f"{n} calls/s, as many at once after a rest", Endpoint(rate=n, burst=n), 1)
      for n in (2, 5, 10)),
    *((f"{n} calls/s without a burst", Endpoint(rate=n), 1) for n in (1, 2, 5, 10)),
    *((f"{n} in flight, 0.4 s each", Endpoint(in_flight=n), 1) for n in (1, 2, 4, 8)),
    *((f"{n} in flight, 1 to 3 s each", Endpoint(in_flight=n, latency=(1.0, 3.0)), 1)
      for n in (1, 2, 4, 8)),
    *((f"{n} calls/s, said in heads", Endpoint(rate=n, burst=n, limits=True), 1)
      for n in (2, 5, 10)),
    *((f"{n} calls/s without a burst, said in heads", Endpoint(rate=n, limits=True), 1)
      for n in (1, 10)),
    ("5 calls/s, said in heads, two workers", Endpoint(rate=5, burst=5, limits=True), 2),
    ("5 calls/s, two workers", Endpoint(rate=5, burst=5), 2),
    ("4 in flight, two workers", Endpoint(in_flight=4), 2),
)  # fmt: skip


def main(seeds: int) -> None:
    """Print both tables."""
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    for name, endpoint, workers in ENDPOINTS:
        played = [Storm(endpoint, CALLS, workers=workers, seed=n).run() for n in range(seeds)]
        goodput = [storm.goodput for storm in played]
        refusals = mean(storm.refusals for storm in played)
        later = mean(storm.later_refusals for storm in played)
        figures = (median(goodput), min(goodput), refusals, later)
        write(row((name, *(f"{figure:.2f}" for figure in figures))))
    write("\n" + head(COLUMNS[1]))
    for chance, unnamed in ((0.1, 0.0), (0.3, 0.0), (0.3, 1.0)):
        endpoint = Endpoint(chance=chance, latency=LONG, unnamed=unnamed)
        chained = [Storm(endpoint, CHAINS, LINKS, seed=n).run() for n in range(seeds)]
        times = [storm.seconds / without(storm).run().seconds for storm in chained]
        asks = ", no wait named" if unnamed else ""
        write(row((f"{chance:.0%}{asks}", f"{median(times):.1f}", f"{max(times):.1f}")))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 30)
