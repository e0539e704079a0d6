"""A run that another process takes over while it is watched keeps a history that replays: real
server, real processes, kill -9, two clients that query constantly, results, timers and orders that
land around it. `python -m bench.takeover` does the same thirty times.
"""

from __future__ import annotations

import asyncio

import pytest

from bench.instruments.clients import QUERIES
from bench.takeover.handing_over import Wanted, measured, table

pytestmark = pytest.mark.long

TAKEOVERS = 2
RUNS = 5
"""At once, each of another kind."""


def test_a_watched_run_that_is_taken_over_replays_strictly_and_closes() -> None:
    measure = asyncio.run(measured(Wanted(times=TAKEOVERS, seed=9, runs=RUNS)))
    assert measure.done == TAKEOVERS
    assert measure.histories.sound, table(measure)
    assert measure.histories.closed == RUNS
    assert all(measure.answers[query] > 0 for query in QUERIES), "nobody watched"
    assert measure.orders["carried out"] > 0, "nobody steered"
