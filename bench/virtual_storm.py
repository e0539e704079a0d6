"""Storms of refusals in virtual time, as the tests play them (tests/support/storms.py).

    python -m bench.virtual_storm [SEEDS]        prints Markdown; 8 seeds take about a minute

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
    ("16 chains of 3 calls", "of the time without, median", "worst", "refusals per call"),
)
CALLS = 60
CHAINS, LINKS = 16, 3
LONG = (0.2, 3.0)
MODEL = (10.0, 40.0)
OUTAGE = (0.0, 20.0)
ENDPOINTS: Sequence[tuple[str, Storm]] = (
    *((f"{n} calls/s, as many at once after a rest", Storm(Endpoint(rate=n, burst=n)))
      for n in (2, 5, 10)),
    *((f"{n} calls/s, no wait named", Storm(Endpoint(rate=n, burst=n, unnamed=1.0)))
      for n in (2, 10)),
    *((f"{n} calls/s without a burst", Storm(Endpoint(rate=n))) for n in (1, 2, 5, 10)),
    ("1 call/s, 10 to 40 s each", Storm(Endpoint(rate=1, burst=10, latency=MODEL), 120)),
    ("1 call in 5 s", Storm(Endpoint(rate=0.2, burst=2), 20)),
    *((f"{n} in flight, 0.4 s each", Storm(Endpoint(in_flight=n), CALLS * n))
      for n in (1, 2, 4, 8)),
    *((f"{n} in flight, 1 to 3 s each", Storm(Endpoint(in_flight=n, latency=(1.0, 3.0)), CALLS * n))
      for n in (1, 2, 4, 8)),
    ("4 in flight, 40 to 80 s each", Storm(Endpoint(in_flight=4, latency=(40.0, 80.0)), 40)),
    ("8 in flight, 0.4 s each, only 60 calls", Storm(Endpoint(in_flight=8))),
    *((f"{n} calls/s, said in heads", Storm(Endpoint(rate=n, burst=n, limits=True)))
      for n in (2, 5, 10)),
    *((f"{n} calls/s without a burst, said in heads", Storm(Endpoint(rate=n, limits=True)))
      for n in (1, 10)),
    ("5 calls/s, said in heads, two workers",
     Storm(Endpoint(rate=5, burst=5, limits=True), workers=2)),
    ("5 calls/s, two workers", Storm(Endpoint(rate=5, burst=5), workers=2)),
    ("4 in flight, two workers", Storm(Endpoint(in_flight=4), CALLS * 4, workers=2)),
    ("5 calls/s, and 30% refused by chance", Storm(Endpoint(rate=5, burst=5, chance=0.3), 120)),
    ("4 in flight, and 10% refused by chance", Storm(Endpoint(in_flight=4, chance=0.1), 240)),
)  # fmt: skip
CHAINED: Sequence[tuple[str, Endpoint, int]] = (
    ("10% refused at random", Endpoint(chance=0.1, latency=LONG), 1),
    ("30% refused at random", Endpoint(chance=0.3, latency=LONG), 1),
    ("30%, no wait named", Endpoint(chance=0.3, latency=LONG, unnamed=1.0), 1),
    ("30%, two workers", Endpoint(chance=0.3, latency=LONG), 2),
    ("30%, calls of 10 to 40 s", Endpoint(chance=0.3, latency=MODEL), 1),
    ("50% refused at random", Endpoint(chance=0.5, latency=LONG), 1),
    ("everything refused for 20 s, no wait named", Endpoint(down=OUTAGE, latency=LONG, unnamed=1.0),
     1),
)  # fmt: skip


def main(seeds: int) -> None:
    """Print both tables."""
    write = sys.stdout.write
    write(head(COLUMNS[0]))
    for name, storm in ENDPOINTS:
        played = [_again(storm, seed).run() for seed in range(seeds)]
        goodput = [each.goodput for each in played]
        refusals = mean(each.refusals for each in played)
        later = mean(each.later_refusals for each in played)
        figures = (median(goodput), min(goodput), refusals, later)
        write(row((name, *(f"{figure:.2f}" for figure in figures))))
        sys.stdout.flush()
    write("\n" + head(COLUMNS[1]))
    for name, endpoint, workers in CHAINED:
        chained = [Storm(endpoint, CHAINS, LINKS, workers, n).run() for n in range(seeds)]
        times = [each.seconds / without(each).run().seconds for each in chained]
        refusals = mean(each.refusals for each in chained)
        write(row((name, f"{median(times):.1f}", f"{max(times):.1f}", f"{refusals:.2f}")))


def _again(storm: Storm, seed: int) -> Storm:
    return Storm(storm.endpoint, storm.chains, workers=storm.workers, seed=seed)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8)
