"""Storms in virtual time, as fast as the gate may, against endpoints of different make. What they
cost in real time is measured by `bench/storm.py`.
"""

from __future__ import annotations

from statistics import mean, median

import pytest

from holdfast.activities.claude.classify import classify
from holdfast.activities.gate.flow import FORGOTTEN, Flow
from storms import Endpoint, Storm, without

pytestmark = pytest.mark.long

SEEDS = range(8)
CHAINS, LINKS = 16, 3
LONG = (0.2, 3.0)
A_MINUTE = 60.0


def storms(endpoint: Endpoint, chains: int = 60, workers: int = 1) -> list[Storm]:
    """The same storm with other luck."""
    return [Storm(endpoint, chains, workers=workers, seed=seed).run() for seed in SEEDS]


# ---------------------------------------------------------------- a limit of the rate


@pytest.mark.parametrize(("rate", "burst"), [(2, 2), (5, 5), (10, 10), (2, 10), (3, 30)])
def test_a_storm_is_admitted_at_nearly_the_endpoints_rate_with_few_refusals(
    rate: int, burst: int
) -> None:
    played = storms(Endpoint(rate=rate, burst=burst))
    assert median(storm.goodput for storm in played) >= 0.9
    assert min(storm.goodput for storm in played) >= 0.8
    assert mean(storm.later_refusals for storm in played) <= 0.25


@pytest.mark.parametrize(("rate", "least"), [(1, 0.75), (2, 0.75), (5, 0.5), (10, 0.5)])
def test_an_endpoint_that_bears_no_burst_is_found_out(rate: int, least: float) -> None:
    played = storms(Endpoint(rate=rate, burst=1))
    assert median(storm.goodput for storm in played) >= least
    assert mean(storm.later_refusals for storm in played) <= 0.3


@pytest.mark.parametrize(("rate", "burst"), [(2, 2), (5, 5), (10, 10)])
def test_an_endpoint_far_away_refuses_what_is_on_its_way_and_is_met_all_the_same(
    rate: int, burst: int
) -> None:
    played = storms(Endpoint(rate=rate, burst=burst, round_trip=0.15))
    assert median(storm.goodput for storm in played) >= 0.8


def test_a_longer_storm_comes_closer_to_the_rate() -> None:
    assert median(s.goodput for s in storms(Endpoint(rate=10, burst=10), 400)) >= 0.93
    assert median(s.goodput for s in storms(Endpoint(rate=10, burst=1), 400)) >= 0.7


# ---------------------------------------------------------------- a limit in flight


@pytest.mark.parametrize("latency", [(0.4, 0.4), (0.2, 0.6), (1.0, 3.0)])
@pytest.mark.parametrize("most", [1, 2, 4, 8])
def test_an_endpoint_with_a_limit_in_flight_is_kept_busy(
    most: int, latency: tuple[float, float]
) -> None:
    # Those that left at once and were refused are away for a second or two.
    played = storms(Endpoint(in_flight=most, latency=latency), 60 * most)
    assert median(storm.goodput for storm in played) >= 0.95
    assert min(storm.goodput for storm in played) >= 0.85
    assert mean(storm.later_refusals for storm in played) <= 0.25


@pytest.mark.parametrize("most", [2, 4, 8])
def test_an_endpoint_far_away_with_a_limit_in_flight_is_kept_busy(most: int) -> None:
    played = storms(Endpoint(in_flight=most, round_trip=0.3), chains=120)
    assert median(storm.goodput for storm in played) >= 0.95


@pytest.mark.parametrize("most", [2, 4, 8])
def test_an_endpoint_whose_places_become_free_a_little_late_is_kept_busy(most: int) -> None:
    played = storms(Endpoint(in_flight=most, releases=0.01), chains=150)
    assert median(storm.goodput for storm in played) >= 0.9


def test_a_limit_in_flight_that_is_raised_is_found_out() -> None:
    first = Storm(Endpoint(in_flight=4), chains=60).run()
    later = Storm(Endpoint(in_flight=16), chains=2_000, lanes=first.lanes, now=first.now).run()
    assert later.goodput >= 0.6


def test_a_limit_in_flight_that_is_lowered_is_found_out() -> None:
    for seed in SEEDS:
        first = Storm(Endpoint(in_flight=8), seed=seed).run()
        later = Storm(Endpoint(in_flight=4), seed=seed, lanes=first.lanes, now=first.now).run()
        assert later.goodput >= 0.85


def test_calls_of_a_minute_keep_a_limited_endpoint_busy() -> None:
    storm = Storm(Endpoint(in_flight=4, latency=(40.0, 80.0)), chains=40).run()
    assert storm.goodput >= 0.85


# ---------------------------------------------------------------- chance


@pytest.mark.parametrize("round_trip", [0.015, 0.15])
@pytest.mark.parametrize(("chance", "most"), [(0.05, 1.5), (0.1, 1.6), (0.3, 2.5)])
def test_random_refusals_cost_little_more_than_their_own_waits(
    chance: float, most: float, round_trip: float
) -> None:
    endpoint = Endpoint(chance=chance, latency=LONG, round_trip=round_trip)
    played = [Storm(endpoint, CHAINS, LINKS, seed=seed).run() for seed in SEEDS]
    times = [storm.seconds / without(storm).run().seconds for storm in played]
    assert median(times) <= most


@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.parametrize(("chance", "most"), [(0.1, 1.6), (0.3, 2.5)])
def test_random_refusals_that_name_no_wait_cost_as_little_as_those_that_name_one(
    chance: float, most: float, status: int
) -> None:
    meant = classify("status", status, "", {})
    assert meant.retry_after is not None
    endpoint = Endpoint(chance=chance, latency=LONG, unnamed=meant.retry_after)
    played = [Storm(endpoint, CHAINS, LINKS, seed=seed).run() for seed in SEEDS]
    assert median(storm.seconds / without(storm).run().seconds for storm in played) <= most


@pytest.mark.parametrize("chance", [0.1, 0.3])
def test_a_tier_that_is_refused_by_chance_is_not_slowed(chance: float) -> None:
    for storm in storms(Endpoint(chance=chance)):
        # Sixty calls of 0.4 s, and for each refusal of the unluckiest one 2.25 s at most.
        assert storm.seconds <= 30


def test_a_storm_of_the_rate_is_left_behind_when_only_chance_is_at_work() -> None:
    for seed in SEEDS:
        storm = Storm(Endpoint(rate=5, burst=5), seed=seed).run()
        endpoint = Endpoint(chance=0.3, latency=LONG)
        later = Storm(endpoint, CHAINS, LINKS, seed=seed, lanes=storm.lanes, now=storm.now).run()
        assert later.seconds <= 6 * without(later).run().seconds


# ---------------------------------------------------------------- afterwards, and together


@pytest.mark.parametrize(
    "endpoint",
    [Endpoint(rate=2, burst=2), Endpoint(rate=1), Endpoint(in_flight=2), Endpoint(chance=0.5)],
)
def test_nothing_of_a_storm_is_left_a_minute_later(endpoint: Endpoint) -> None:
    storm = Storm(endpoint).run()
    (lane,) = storm.lanes
    lane.advance(storm.now + FORGOTTEN)
    lane.advance(storm.now + A_MINUTE)
    assert lane.flow == Flow()
    calm = Storm(Endpoint(), lanes=[lane], now=storm.now + A_MINUTE).run()
    assert calm.seconds <= without(calm).run().seconds + 0.1


@pytest.mark.parametrize(
    "endpoint",
    [Endpoint(rate=5, burst=5), Endpoint(rate=10, burst=10), Endpoint(in_flight=4)],
)
def test_a_later_storm_is_met_as_well_as_the_first(endpoint: Endpoint) -> None:
    later = []
    for first in storms(endpoint):
        now = first.now + A_MINUTE
        later.append(Storm(endpoint, seed=first.seed + 100, lanes=first.lanes, now=now).run())
    assert median(storm.goodput for storm in later) >= 0.88


@pytest.mark.parametrize("endpoint", [Endpoint(rate=5, burst=5), Endpoint(rate=10, burst=10)])
def test_two_workers_share_a_rate(endpoint: Endpoint) -> None:
    assert median(s.goodput for s in storms(endpoint, 100, workers=2)) >= 0.7


@pytest.mark.parametrize("most", [4, 8])
def test_two_workers_share_a_limit_in_flight(most: int) -> None:
    played = storms(Endpoint(in_flight=most, latency=(0.4, 0.4)), 400, workers=2)
    assert median(storm.goodput for storm in played) >= 0.8


def test_calls_of_a_tier_that_was_never_refused_leave_at_once() -> None:
    storm = Storm(Endpoint(latency=(1.0, 1.0)), chains=200).run()
    assert storm.admitted[-1] == storm.admitted[0]


def test_calls_of_a_tier_whose_limit_was_lifted_leave_at_once() -> None:
    limited = Storm(Endpoint(rate=5, burst=5)).run()
    now = limited.now + A_MINUTE
    storm = Storm(Endpoint(), chains=200, lanes=limited.lanes, now=now).run()
    assert storm.admitted[-1] == storm.admitted[0]


def test_what_left_at_once_is_refused_once_and_comes_back_by_what_was_learned() -> None:
    for storm in storms(Endpoint(rate=5, burst=5), 200):
        assert storm.at_first == 195
        assert storm.later_refusals <= 0.25


@pytest.mark.parametrize(
    ("endpoint", "least"),
    [
        (Endpoint(rate=10, burst=10, chance=0.1), 0.5),
        (Endpoint(rate=5, burst=5, chance=0.3), 0.4),
        (Endpoint(in_flight=4, chance=0.1), 0.6),
    ],
)
def test_a_limit_and_chance_together_bring_no_tier_to_a_crawl(
    endpoint: Endpoint, least: float
) -> None:
    assert median(storm.goodput for storm in storms(endpoint, 120)) >= least
