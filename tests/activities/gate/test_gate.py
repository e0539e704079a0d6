"""The gate: a tier that an endpoint throttles is shut, slowed and lifted, on every worker, and
never stays shut.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.gate import rate_gate as gates
from holdfast.activities.gate.flow import (
    FORGOTTEN,
    LEAST,
    LONGEST_SHUT,
    LONGEST_STEP,
    REOPENED,
    SEARCHED_FROM,
    STEP_SECONDS,
    Borne,
    Flow,
    Throttled,
    described,
    next_rate,
    regained,
    understood,
)
from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.pace import SPACING
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.contracts.errors import NotBilled

pytestmark = pytest.mark.anyio

CAUSE = "claude-haiku-5-5: 429 rate_limit_error"

seconds = st.floats(0, 100_000, allow_nan=False)
speeds = st.floats(0, 500, allow_nan=False)
refusals = st.builds(Throttled, seconds, st.text(max_size=300), speeds)
histories = st.lists(st.tuples(st.floats(0, 400), st.none() | refusals), max_size=30)


def after(history: list[tuple[float, Throttled | None]]) -> tuple[Flow, float]:
    """Where these events, each this many seconds after the one before, lead; and when that is."""
    flow, now = Flow(), 1_000.0
    for wait, event in history:
        now += wait
        flow = next_rate(flow, event, now)
    return flow, now


# ---------------------------------------------------------------- the rule


@given(histories, refusals)
def test_a_refusal_shuts_the_tier_for_as_long_as_was_asked(
    history: list[tuple[float, Throttled | None]], event: Throttled
) -> None:
    flow, now = after(history)
    shut = next_rate(flow, event, now)
    asked = min(event.seconds, LONGEST_SHUT)
    assert shut.rate == 0
    assert shut.until >= now + asked
    if asked > 0.1:
        assert next_rate(shut, None, now + asked - 0.1).rate == 0


@given(histories)
def test_no_tier_stays_shut_or_slow_for_ever(
    history: list[tuple[float, Throttled | None]],
) -> None:
    flow, now = after(history)
    now += LONGEST_SHUT
    for _ in range(50):
        now += LONGEST_STEP
        flow = next_rate(flow, None, now)
    assert flow == Flow()


@given(histories)
def test_a_rate_changes_at_most_once_a_second_and_only_climbs_by_itself(
    history: list[tuple[float, Throttled | None]],
) -> None:
    flow, now = after(history)
    if flow.rate and now < flow.refused + FORGOTTEN - LONGEST_STEP:
        assert next_rate(flow, None, flow.changed + STEP_SECONDS * 0.99) == flow
        later = next_rate(flow, None, now + LONGEST_STEP)
        assert later.rate is None or later.rate >= flow.rate >= LEAST


@given(st.floats(1, 200), seconds)
def test_a_tier_opens_just_below_what_it_took_before(measured: float, wait: float) -> None:
    shut = next_rate(Flow(), Throttled(wait, CAUSE, measured), 0.0)
    opened = next_rate(shut, None, shut.until)
    assert opened.rate == pytest.approx(REOPENED * measured, abs=0.02)


def test_any_limit_is_forgotten_when_nothing_was_refused_for_a_while() -> None:
    shut = next_rate(Flow(), Throttled(1.0, CAUSE, 0.2), 0.0)
    slow = next_rate(shut, None, 1.0)
    assert next_rate(slow, None, FORGOTTEN).rate is not None
    assert next_rate(slow, None, 1.0 + FORGOTTEN) == Flow()
    in_flight = Flow(most=4, refused=1.0)
    assert next_rate(in_flight, None, FORGOTTEN) == in_flight
    assert next_rate(in_flight, None, 1.0 + FORGOTTEN) == Flow()


def test_a_tier_that_is_refused_before_it_took_anything_doubles_its_rate_until_it_is_again() -> (
    None
):
    flow = next_rate(Flow(), Throttled(1.0, CAUSE, 0.0), 0.0)
    flow = next_rate(flow, None, 1.0)
    rates = [flow.rate]
    for _ in range(3):
        flow = next_rate(flow, Borne(), 1.0)
        rates.append(flow.rate)
    assert rates == [SEARCHED_FROM * factor for factor in (1, 2, 4, 8)]
    refused = next_rate(flow, Throttled(1.0, CAUSE, 0.0), 4.5)
    assert refused.measured == SEARCHED_FROM * 4


def test_a_rate_that_is_searched_is_doubled_by_calls_that_were_taken_and_not_by_time() -> None:
    lane = Lane()
    for at in (0.0, 0.01):
        lane.shut(1.0, CAUSE, at + 0.02, lane.left(at))
    lane.advance(1.1)
    assert lane.flow.rate == SEARCHED_FROM
    assert lane.advance(20.0) and lane.flow.rate == SEARCHED_FROM
    lane.ended(lane.left(20.0), 20.5)
    assert lane.flow.rate == 2 * SEARCHED_FROM


def test_a_refusal_of_many_that_left_at_once_holds_back_those_that_come_again() -> None:
    lane = Lane()
    sent = [lane.left(0.0) for _ in range(20)]
    for call in sent[4:]:
        lane.shut(1.0, CAUSE, 0.02, call)
    lane.advance(1.02)
    assert (lane.flow.rate, lane.flow.most) == (None, 4)


def test_refusals_by_chance_of_some_that_left_at_once_hold_back_nobody() -> None:
    lane = Lane()
    sent = [lane.left(0.0) for _ in range(20)]
    for call in sent[3::7]:
        lane.shut(1.0, CAUSE, 0.02, call)
    lane.advance(0.3)
    assert lane.flow == Flow()


def test_refusals_of_what_was_on_its_way_lower_the_estimate_of_a_burst_only() -> None:
    burst = next_rate(Flow(), Throttled(1.0, CAUSE, 8.0), 0.0)
    assert next_rate(burst, Throttled(1.0, CAUSE, 6.0), 0.1).measured == 6.0
    limited = replace(Flow(), rate=8.0, measured=8.0)
    steady = next_rate(limited, Throttled(1.0, CAUSE, 8.0), 100.0)
    assert next_rate(steady, Throttled(1.0, CAUSE, 6.0), 100.1).measured == 8.0


def test_an_endpoint_that_bore_a_burst_is_given_what_its_limit_regained() -> None:
    burst = next_rate(Flow(), Throttled(0.5, CAUSE, 8.0), 0.0)
    assert regained(burst) == 4
    assert regained(next_rate(Flow(), Throttled(60.0, CAUSE, 8.0), 0.0)) == 8
    limited = replace(Flow(), rate=8.0, measured=8.0)
    assert regained(next_rate(limited, Throttled(0.5, CAUSE, 8.0), 100.0)) == 0


def test_a_limit_that_was_measured_while_it_held_is_met_again_from_just_below() -> None:
    flow = replace(Flow(), rate=10.2, measured=10.0, step=4, refused=99.0)
    shut = next_rate(flow, Throttled(1.0, CAUSE, 10.0), 100.0)
    assert next_rate(shut, None, 101.0).rate == 9.5


def test_one_bad_second_does_not_halve_more_than_once() -> None:
    flow = replace(Flow(), rate=10.0, measured=10.0)
    assert next_rate(flow, Throttled(1.0, CAUSE, 0.1), 100.0).measured == 5.0


@given(histories)
def test_any_worker_reads_what_another_one_decided(
    history: list[tuple[float, Throttled | None]],
) -> None:
    flow, now = after(history)
    text = described("haiku", flow, now)
    read = understood("haiku", flow.rate, text, now, now)
    assert "\n" not in text
    assert read is not None
    assert (read.rate, read.measured, read.step) == (flow.rate, flow.measured, flow.step)
    if flow.rate == 0:
        assert read.after == flow.after
        assert read.until >= min(flow.until, now + LONGEST_SHUT)
        assert read.until <= max(flow.until, now) + 0.11


@given(st.integers(1, 500), st.text(max_size=50), st.floats(0, FORGOTTEN - 1))
def test_any_worker_reads_a_limit_in_flight(most: int, cause: str, since: float) -> None:
    flow = Flow(most=most, cause=" ".join(cause.split()), refused=1_000.0)
    now = 1_000.0 + since
    read = understood("haiku", None, described("haiku", flow, now), now, now)
    assert read is not None
    assert (read.rate, read.most, read.cause) == (None, most, flow.cause)
    assert abs(read.refused - flow.refused) <= 0.51


@given(seconds, st.floats(-1e6, 1e6))
def test_a_clock_that_is_wrong_keeps_no_tier_shut_for_longer(wait: float, skew: float) -> None:
    now = 1e9
    text = described("haiku", next_rate(Flow(), Throttled(wait, CAUSE, 5.0), now), now)
    read = understood("haiku", 0.0, text, now + skew, now)
    assert read is not None
    assert read.until <= now + min(wait, LONGEST_SHUT) + 0.11


def test_the_words_of_an_endpoint_cannot_pass_for_ours() -> None:
    cause = "429; then 9999.00/s of 9999.00/s"
    shut = next_rate(Flow(), Throttled(12.0, cause, 8.0), 0.0)
    read = understood("haiku", 0.0, described("haiku", shut, 0.0), 0.0, 0.0)
    assert read is not None and read.after == 7.6


@pytest.mark.parametrize("reason", ["", "quiet hours", "haiku slowed down", "sonnet at full speed"])
def test_a_limit_that_a_person_set_is_not_ours(reason: str) -> None:
    assert understood("haiku", 2.0, reason, 0.0, 0.0) is None


def test_what_a_person_reads_says_how_long_and_why() -> None:
    shut = next_rate(Flow(), Throttled(12.0, CAUSE, 8.0), 0.0)
    assert described("haiku", shut, 0.0) == f"haiku throttled 12 s: {CAUSE}; then 7.60/s of 8.00/s"


# ---------------------------------------------------------------- inside one worker


async def refuse_twice(gate: RateGate, seconds: float) -> None:
    """Let an endpoint refuse the next call, too, as a limit does."""
    for _ in range(2):
        await gate.turn("haiku")
        await gate.throttled("haiku", seconds, CAUSE)


async def test_a_call_that_would_wait_too_long_goes_back_to_its_queue() -> None:
    gate = RateGate()
    await refuse_twice(gate, 60.0)
    with pytest.raises(NotBilled) as refusal:
        await gate.turn("haiku")
    assert refusal.value.throttled
    assert not refusal.value.non_retryable
    assert refusal.value.next_retry_delay is not None
    assert refusal.value.next_retry_delay > timedelta(seconds=50)


async def test_a_tier_that_is_throttled_does_not_slow_another() -> None:
    gate = RateGate()
    await gate.throttled("haiku", 60.0, CAUSE)
    await gate.turn("sonnet")


async def test_calls_that_wait_for_their_turn_wait_again_when_the_tier_is_shut() -> None:
    gate = RateGate()
    await refuse_twice(gate, 0.2)
    waiting = [asyncio.create_task(gate.turn("haiku")) for _ in range(3)]
    await asyncio.sleep(0)
    await gate.throttled("haiku", 60.0, CAUSE)
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [NotBilled] * 3


async def test_one_refusal_is_looked_into_by_one_call_that_leaves_at_once() -> None:
    gate = RateGate()
    await gate.turn("haiku")
    await gate.throttled("haiku", 60.0, CAUSE)
    await gate.turn("haiku")
    with pytest.raises(NotBilled):
        await gate.turn("haiku")


async def test_a_call_taken_right_after_a_refused_one_opens_the_tier_again() -> None:
    gate, go_on = RateGate(), asyncio.Event()
    await gate.turn("haiku")
    await gate.throttled("haiku", 60.0, CAUSE)

    async def taken() -> None:
        await gate.turn("haiku")
        await go_on.wait()
        gate.ended()

    taking = asyncio.create_task(taken())
    await asyncio.sleep(0)
    assert "throttled" in gate.slowed()["haiku"]
    go_on.set()
    await taking
    assert gate.slowed() == {}
    await gate.turn("haiku")


async def test_calls_of_a_tier_that_was_never_refused_do_not_wait_for_each_other() -> None:
    gate, loop = RateGate(), asyncio.get_running_loop()
    times: list[float] = []

    async def call() -> None:
        await gate.turn("haiku")
        times.append(loop.time())

    await asyncio.gather(*(call() for _ in range(200)))
    assert max(times) - min(times) < 200 * SPACING / 4


async def sent_back(gate: RateGate) -> float:
    """Seconds after which a call comes again that has too long to wait."""
    with pytest.raises(NotBilled) as refusal:
        await gate.turn("haiku")
    assert refusal.value.next_retry_delay is not None
    return refusal.value.next_retry_delay.total_seconds()


async def test_calls_that_have_long_to_wait_go_back_one_behind_the_other() -> None:
    gate = RateGate()
    await gate.throttled("haiku", gates.HOLD_SECONDS + 5.0, CAUSE)
    waits = [await sent_back(gate) for _ in range(4)]
    apart = [later - sooner for sooner, later in pairwise(waits)]
    # The tier opens at half a call per second, of which nothing was measured.
    assert all(1.5 < each < 2.5 for each in apart), waits
    assert waits[0] == pytest.approx(gates.HOLD_SECONDS + 5.0 - gates.EARLY_SECONDS, abs=0.5)


async def test_no_call_stays_away_from_an_open_tier_for_longer_than_that_takes_to_recover() -> None:
    gate = RateGate()
    await gate.throttled("haiku", 10.0, CAUSE)
    waits = [await sent_back(gate) for _ in range(40)]
    assert 10.0 < max(waits) <= 10.0 + gates.LONGEST_AWAY_SECONDS
