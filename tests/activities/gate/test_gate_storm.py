"""Storms in virtual time, as fast as the gate may, against endpoints of different make. What they
cost in real time is measured by `bench/storm.py`.
"""

from __future__ import annotations

import asyncio
from statistics import mean, median

import pytest

from parameters import rest_long
from storms import Endpoint, Storm, in_virtual_time, without

SEEDS = range(3)
CHAINS, LINKS = 16, 3
LONG = (0.2, 3.0)
MODEL = (10.0, 40.0)
A_MINUTE = 60.0


def storms(endpoint: Endpoint, chains: int = 60, workers: int = 1) -> list[Storm]:
    """The same storm with other luck."""
    return [Storm(endpoint, chains, workers=workers, seed=seed).run() for seed in SEEDS]


def times(endpoint: Endpoint) -> list[float]:
    """How many times as long as without refusals the chains take."""
    played = [Storm(endpoint, CHAINS, LINKS, seed=seed).run() for seed in SEEDS]
    return [storm.seconds / without(storm).run().seconds for storm in played]


def twice(first: Endpoint, later: Endpoint, *, pause: float = 0.0, chains: int = 60) -> Storm:
    """The second of two storms that one gate meets."""

    async def both() -> Storm:
        before = await Storm(first).play()
        await asyncio.sleep(pause)
        return await Storm(later, chains, gates=before.gates).play()

    return in_virtual_time(both())


# ---------------------------------------------------------------- a limit of the rate


@pytest.mark.parametrize(("rate", "least"), rest_long([(5, 0.75), (2, 0.7), (10, 0.75)]))
def test_most_of_a_limited_rate_is_used_with_few_refusals(rate: int, least: float) -> None:
    played = storms(Endpoint(rate=rate, burst=rate))
    assert median(storm.goodput for storm in played) >= least
    assert mean(storm.later_refusals for storm in played) <= 0.4


@pytest.mark.parametrize(("rate", "least"), rest_long([(2, 0.45), (1, 0.5), (5, 0.4), (10, 0.2)]))
def test_a_rate_that_bears_no_burst_is_found_though_not_used_up(rate: int, least: float) -> None:
    played = storms(Endpoint(rate=rate))
    assert median(storm.goodput for storm in played) >= least
    assert mean(storm.later_refusals for storm in played) <= 0.8


@pytest.mark.long
def test_calls_as_long_as_a_models_use_up_a_rate() -> None:
    played = storms(Endpoint(rate=1, burst=10, latency=MODEL), 120)
    assert median(storm.goodput for storm in played) >= 0.85


# ---------------------------------------------------------------- a limit in flight


@pytest.mark.parametrize("latency", [(0.4, 0.4), (1.0, 3.0)])
@pytest.mark.parametrize("most", rest_long([2, 1, 4, 8]))
def test_an_endpoint_with_a_limit_in_flight_is_kept_busy(
    most: int, latency: tuple[float, float]
) -> None:
    played = storms(Endpoint(in_flight=most, latency=latency), 60 * most)
    assert median(storm.goodput for storm in played) >= 0.85
    assert mean(storm.later_refusals for storm in played) <= 0.4


@pytest.mark.parametrize(
    "endpoint",
    rest_long([Endpoint(in_flight=4, releases=0.01), Endpoint(in_flight=4, round_trip=0.3)]),
    ids=["places free a little late", "far away"],
)
def test_an_endpoint_that_shows_its_limit_in_flight_late_is_kept_busy(endpoint: Endpoint) -> None:
    assert median(storm.goodput for storm in storms(endpoint, 240)) >= 0.85


@pytest.mark.long
def test_a_limit_in_flight_that_is_raised_or_lowered_is_found_out() -> None:
    assert twice(Endpoint(in_flight=4), Endpoint(in_flight=16), chains=1_000).goodput >= 0.6
    assert twice(Endpoint(in_flight=8), Endpoint(in_flight=4), chains=240).goodput >= 0.6


# ---------------------------------------------------------------- chance


@pytest.mark.parametrize("unnamed", [0.0, 1.0], ids=["a wait named", "no wait named"])
@pytest.mark.parametrize(("chance", "most"), rest_long([(0.3, 1.9), (0.1, 1.4)]))
def test_refusals_by_chance_cost_little_more_than_the_waits_of_the_refused(
    chance: float, most: float, unnamed: float
) -> None:
    # With no gate at all it is 1.1 times as long, and 1.65 times.
    assert median(times(Endpoint(chance=chance, latency=LONG, unnamed=unnamed))) <= most


def test_calls_as_long_as_a_models_lose_nothing_to_refusals_by_chance() -> None:
    assert median(times(Endpoint(chance=0.3, latency=MODEL))) <= 1.3


@pytest.mark.parametrize(
    ("endpoint", "least"),
    rest_long(
        [(Endpoint(rate=5, burst=5, chance=0.3), 0.3), (Endpoint(in_flight=4, chance=0.1), 0.4)]
    ),
)
def test_a_limit_and_chance_together_bring_no_tier_to_a_crawl(
    endpoint: Endpoint, least: float
) -> None:
    assert median(storm.goodput for storm in storms(endpoint, 120)) >= least


def test_an_endpoint_that_refused_everything_for_a_while_is_used_again_soon() -> None:
    down = Endpoint(down=(0.0, 20.0), latency=LONG, unnamed=1.0)
    for seed in SEEDS:
        storm = Storm(down, CHAINS, LINKS, seed=seed).run()
        assert storm.seconds <= 80
        assert storm.refusals <= 1, "meanwhile it is seldom asked"


# ---------------------------------------------------------------- afterwards, and together


@pytest.mark.parametrize(
    "endpoint",
    rest_long(
        [Endpoint(rate=2, burst=2), Endpoint(rate=1), Endpoint(in_flight=2), Endpoint(chance=0.5)]
    ),
)
def test_nothing_of_a_storm_is_left_a_minute_later(endpoint: Endpoint) -> None:
    calm = twice(endpoint, Endpoint(), pause=A_MINUTE, chains=200)
    assert calm.admitted[-1] == calm.admitted[0]


@pytest.mark.parametrize(
    ("endpoint", "least"),
    rest_long([(Endpoint(in_flight=4), 0.4), (Endpoint(rate=5, burst=5), 0.4)]),
)
def test_two_workers_share_a_limit(endpoint: Endpoint, least: float) -> None:
    assert median(s.goodput for s in storms(endpoint, 200, workers=2)) >= least


def test_calls_of_a_tier_that_was_never_refused_leave_at_once() -> None:
    storm = Storm(Endpoint(latency=(1.0, 1.0)), chains=200).run()
    assert storm.admitted[-1] == storm.admitted[0]


# ---------------------------------------------------------------- stated limits


@pytest.mark.parametrize(
    ("rate", "burst"), rest_long([(2, 2), (10, 1), (10, 10), (3, 30), (1, 1)], first=2)
)
def test_an_endpoint_that_says_what_is_left_refuses_only_what_left_before_it_said_so(
    rate: int, burst: int
) -> None:
    for storm in storms(Endpoint(rate=rate, burst=burst, limits=True)):
        assert storm.later_refusals == 0
        assert storm.goodput >= 0.6


def test_a_fan_out_after_one_answer_meets_no_refusal_at_all() -> None:
    told = Endpoint(rate=5, burst=5, limits=True, round_trip=0.15)

    async def both() -> Storm:
        first = await Storm(told, chains=1).play()
        return await Storm(told, 200, gates=first.gates).play()

    storm = in_virtual_time(both())
    assert storm.refused == 0
    assert storm.goodput >= 0.9
