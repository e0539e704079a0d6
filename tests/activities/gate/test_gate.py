"""The gate of one worker: a tier that an endpoint throttles is shut, slowed and opened again."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.gate.lane import FIRST_RATE, FORGOTTEN, Lane
from holdfast.activities.gate.quotas import cost_of
from holdfast.activities.gate.rate_gate import HOLD_SECONDS, SPREAD_SECONDS, RateGate
from holdfast.activities.gate.throttle import (
    FULL_SPEED,
    LONGEST_SHUT,
    Throttle,
    describe,
    parse,
    shut_for,
)
from holdfast.contracts.errors import NotBilled

pytestmark = pytest.mark.anyio

CAUSE = "claude-haiku-5-5: 429 rate_limit_error"
ONE = cost_of()

seconds = st.floats(0, 100_000, allow_nan=False)


def burst(calls: int, refused: slice, now: float = 0.0) -> Lane:
    """A tier of which so many calls left at once, and these were refused for a second."""
    lane = Lane()
    sent = [lane.left(now, ONE) for _ in range(calls)]
    for call in sent[refused]:
        lane.refused(call, 1.0, CAUSE, now + 0.02)
    return lane


# ---------------------------------------------------------------- the rule


def test_a_refusal_of_most_that_left_at_once_shuts_the_tier_and_then_lets_as_many_go() -> None:
    lane = burst(20, slice(4, None))
    assert lane.throttle.shut(1.0) and not lane.throttle.shut(1.03)
    assert (lane.throttle.rate, lane.throttle.most) == (0, 4)


def test_refusals_of_a_few_that_left_at_once_are_chance_and_hold_back_nobody() -> None:
    lane = burst(20, slice(3, None, 7))
    lane.advance(0.3)
    assert lane.throttle == FULL_SPEED


def test_one_call_tests_a_refusal_at_once_and_opens_the_tier_if_it_is_taken() -> None:
    lane = burst(1, slice(None))
    assert lane.ready(0.05, ONE) == 0.05
    test = lane.left(0.05, ONE)
    assert lane.ready(0.05, ONE) == lane.throttle.until
    lane.ended(test, 0.5, 0)
    assert lane.throttle == FULL_SPEED


def test_a_tier_whose_test_is_refused_opens_slowly_and_climbs_by_calls_that_are_taken() -> None:
    lane = burst(1, slice(None))
    lane.refused(lane.left(0.03, ONE), 1.0, CAUSE, 0.05)
    assert lane.advance(1.1) and lane.throttle.rate == FIRST_RATE
    assert lane.advance(9.0) and lane.throttle.rate == FIRST_RATE, "time alone proves nothing"
    rates = []
    for now in range(10, 14):
        lane.ended(lane.left(now, ONE), now + 0.5, 0)
        lane.advance(now + 0.9)
        rates.append(lane.throttle.rate)
    assert rates == sorted(rates) and rates[-1] > FIRST_RATE


def test_a_rate_is_halved_at_most_when_it_is_refused() -> None:
    lane = Lane(throttle=Throttle(CAUSE, rate=10.0))
    lane.ended(lane.left(0.0, ONE), 0.1, 0)
    lane.ended(lane.left(1.0, ONE), 1.1, 0)
    lane.refused(lane.left(100.0, ONE), 1.0, CAUSE, 100.02)
    assert lane.throttle.rate == 5.0


def test_any_limit_is_forgotten_when_nothing_was_refused_for_a_while() -> None:
    lane = burst(20, slice(4, None))
    assert lane.advance(FORGOTTEN) and lane.throttle.most == 4
    assert lane.advance(FORGOTTEN + 2) and lane.throttle == FULL_SPEED


# ---------------------------------------------------------------- what a person and a worker read


@given(seconds, st.text(max_size=300), st.floats(0.01, 500), st.integers(0, 99), st.booleans())
def test_any_worker_reads_what_another_one_decided(
    wait: float, cause: str, rate: float, most: int, over: bool
) -> None:
    shut = shut_for(wait, cause, 1_000.0)
    held = Throttle(shut.cause, shut.since, shut.until, 0.0 if most else rate, most)
    now = shut.until if over else 1_000.0
    line = describe("haiku", held, now)
    read = parse("haiku", held.per_second(now), line, 1_000.0, now)
    assert "\n" not in line
    assert (read.cause, read.most) == (held.cause, most)
    assert read.rate == pytest.approx(held.rate, abs=0.01)
    assert over or read.until == pytest.approx(held.until, abs=0.1)
    assert read.until <= 1_000.0 + LONGEST_SHUT + 0.1


@given(st.floats(1, 100_000), st.floats(-1e6, 1e6))
def test_a_clock_that_is_wrong_keeps_no_tier_shut_for_longer(wait: float, skew: float) -> None:
    line = describe("haiku", shut_for(wait, CAUSE, 1e9), 1e9)
    read = parse("haiku", 0.0, line, 1e9 + skew, 1e9)
    assert read.until <= 1e9 + min(wait, LONGEST_SHUT) + 0.1


def test_what_a_person_reads_says_how_long_and_why_and_stays_the_same() -> None:
    shut = Throttle("429; then 9999.00/s: x", 0.0, 12.0, rate=7.6)
    line = "haiku throttled 12 s, then 7.60/s: 429; then 9999.00/s: x"
    assert describe("haiku", shut, 0.0) == describe("haiku", shut, 11.0) == line
    assert parse("haiku", 0.0, line, 0.0, 0.0) == shut
    limited = Throttle(CAUSE, most=4)
    assert describe("haiku", limited, 0.0) == f"haiku held to 4 in flight after a refusal: {CAUSE}"


@pytest.mark.parametrize("reason", ["", "quiet hours", "haiku slowed down", "sonnet at full speed"])
def test_a_limit_that_a_person_set_is_not_ours_and_no_refusal_changes_it(reason: str) -> None:
    lane = Lane(throttle=parse("haiku", 2.0, reason, 0.0, 0.0))
    assert lane.throttle == Throttle(reason, rate=2.0, by_hand=True)
    for _ in range(3):
        lane.refused(lane.left(0.0, ONE), 60.0, CAUSE, 0.1)
    lane.advance(1_000.0)
    assert lane.throttle == Throttle(reason, rate=2.0, by_hand=True)


# ---------------------------------------------------------------- inside one worker


async def refuse_twice(gate: RateGate, wait: float) -> None:
    """Let an endpoint refuse the next call, too, as a limit does."""
    for _ in range(2):
        await gate.turn("haiku")
        await gate.throttled("haiku", wait, CAUSE)


async def sent_back(gate: RateGate) -> float:
    """Seconds after which a call comes again that has too long to wait."""
    with pytest.raises(NotBilled) as refusal:
        await gate.turn("haiku")
    assert refusal.value.throttled and not refusal.value.non_retryable
    assert refusal.value.next_retry_delay is not None
    return refusal.value.next_retry_delay.total_seconds()


async def test_a_call_of_a_shut_tier_goes_back_until_it_opens_and_other_tiers_go_on() -> None:
    gate = RateGate()
    await refuse_twice(gate, 60.0)
    assert await sent_back(gate) == pytest.approx(60.0, abs=1)
    await gate.turn("sonnet")


async def test_calls_that_wait_for_their_turn_go_back_when_the_tier_is_shut() -> None:
    gate = RateGate()
    await refuse_twice(gate, 0.2)
    waiting = [asyncio.create_task(gate.turn("haiku")) for _ in range(3)]
    await asyncio.sleep(0)
    await gate.throttled("haiku", 60.0, CAUSE)
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [NotBilled] * 3


async def test_calls_that_go_back_come_again_one_behind_the_other_and_none_too_late() -> None:
    gate, wait = RateGate(), HOLD_SECONDS + 5.0
    await gate.throttled("haiku", wait, CAUSE)
    waits = [await sent_back(gate) for _ in range(80)]
    # The tier opens at one call per second, and each comes after half of its wait.
    assert all(0.3 < later - sooner < 0.7 for sooner, later in pairwise(waits[:20])), waits
    assert wait - 1 <= min(waits) and max(waits) <= wait + SPREAD_SECONDS / 2


async def test_calls_of_a_tier_that_was_never_refused_do_not_wait_for_each_other() -> None:
    gate, loop = RateGate(), asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(gate.turn("haiku") for _ in range(200)))
    assert loop.time() - began < 1
    assert gate.slowed() == {}
    assert gate.figures() == {"haiku": (0, None)}
