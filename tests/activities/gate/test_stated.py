"""What an endpoint says of its limits holds calls back before any is refused."""

from __future__ import annotations

import asyncio
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.gate.flow import LONGEST_SHUT, Flow
from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.quotas import MARGIN, cost_of
from holdfast.activities.gate.rate_gate import EARLY_SECONDS, RateGate
from holdfast.activities.gate.refusals import Sent
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Head, Quota
from storms import Endpoint, Storm

pytestmark = pytest.mark.anyio

SEEDS = range(8)
FULL = Quota(limit=10, remaining=10, seconds=0.0)
EMPTY = Quota(limit=10, remaining=0, seconds=10.0)


def told(**quotas: Quota) -> tuple[Lane, Sent]:
    """A tier that heard this of a call which left at 0."""
    lane = Lane()
    sent = lane.left(0.0)
    lane.heard(sent, Head(True, dict(quotas)), 0.0)  # type: ignore[arg-type]
    return lane, sent


def leaving(lane: Lane, calls: int, tokens: int = 0, max_output: int = 0) -> list[float]:
    """When these leave that all came at 0."""
    now, times, cost = 0.0, [], cost_of(tokens, max_output)
    for _ in range(calls):
        now = max(now, lane.ready(now, cost))
        lane.left(now, cost)
        times.append(now)
    return times


# ---------------------------------------------------------------- whole storms


@pytest.mark.parametrize(("rate", "burst"), [(2, 2), (5, 5), (10, 10), (3, 30), (1, 1), (10, 1)])
def test_an_endpoint_that_says_what_is_left_refuses_only_what_left_before_it_said_so(
    rate: int, burst: int
) -> None:
    for seed in SEEDS:
        storm = Storm(Endpoint(rate=rate, burst=burst, limits=True), seed=seed).run()
        assert storm.later_refusals == 0
        assert storm.goodput >= 0.7


@pytest.mark.parametrize("round_trip", [0.015, 0.15])
def test_a_fan_out_after_one_answer_meets_no_refusal_at_all(round_trip: float) -> None:
    endpoint = Endpoint(rate=5, burst=5, limits=True, round_trip=round_trip)
    first = Storm(endpoint, chains=1).run()
    storm = Storm(endpoint, 200, lanes=first.lanes, now=first.now).run()
    assert storm.refused == 0
    assert storm.goodput >= 0.95


def test_two_workers_that_hear_for_themselves_are_refused_no_more_and_lose_little() -> None:
    played = [
        Storm(Endpoint(rate=5, burst=5, limits=True), 100, workers=2, seed=seed).run()
        for seed in SEEDS
    ]
    assert max(storm.later_refusals for storm in played) <= 0.02
    assert median(storm.goodput for storm in played) >= 0.85


def test_a_refusal_that_its_head_explains_is_not_looked_into() -> None:
    lane = Lane()
    sent = lane.left(0.0)
    lane.heard(sent, Head(False, {"requests": EMPTY}), 0.01)
    lane.shut(2.0, "429", 0.01, sent)
    assert lane.doubt is None
    assert (lane.flow.rate, lane.flow.measured) == (0, 1.0)


# ---------------------------------------------------------------- the bucket


def test_calls_leave_as_far_as_what_is_left_allows_and_then_as_it_fills() -> None:
    lane, _ = told(requests=Quota(limit=60, remaining=5, seconds=55.0))
    times = leaving(lane, 8)
    # The last one that may leave is as late as any that has only just come to be there.
    assert times == pytest.approx([0.0] * 4 + [MARGIN + n for n in range(4)])


def test_tokens_hold_back_what_requests_would_allow() -> None:
    tokens = Quota(limit=60_000, remaining=10_000, seconds=50.0)
    lane, _ = told(requests=FULL, input_tokens=tokens)
    assert leaving(lane, 4, tokens=5_000)[:3] == pytest.approx([0.0, MARGIN, 5 + MARGIN])
    lane, _ = told(tokens=tokens)
    assert leaving(lane, 3, tokens=4_000, max_output=4_000)[1:] == pytest.approx([0.05, 5.05])


def test_answers_are_taken_to_be_as_long_as_they_lately_were() -> None:
    lane, sent = told(output_tokens=Quota(limit=8_000, remaining=8_000, seconds=0.0))
    lane.ended(sent, 1.0, 100)
    assert cost_of(10, 8_000, lane.wrote)["output_tokens"] == 125
    assert cost_of(10, 8_000)["output_tokens"] == 2_000


def test_a_call_that_is_larger_than_the_limit_leaves_when_all_of_it_is_there() -> None:
    lane, _ = told(input_tokens=Quota(limit=1_000, remaining=0, seconds=60.0))
    assert leaving(lane, 1, tokens=5_000) == pytest.approx([60 + MARGIN])


def test_what_left_since_is_counted_and_what_was_refused_of_it_is_not() -> None:
    lane = Lane()
    first, second = lane.left(0.0), lane.left(0.0)
    lane.heard(first, Head(True, {"requests": Quota(60, 1, 59.0)}), 0.01)
    assert lane.ready(0.02) > 1
    lane.quotas.refused(second)
    assert lane.ready(0.02) <= 0.06


def test_what_a_later_call_was_told_is_not_undone_by_an_earlier_one() -> None:
    lane = Lane()
    first, second = lane.left(0.0), lane.left(0.1)
    lane.heard(second, Head(True, {"requests": EMPTY}), 0.2)
    lane.heard(first, Head(True, {"requests": FULL}), 0.3)
    assert lane.ready(0.3) > 1


def test_an_endpoint_that_says_nothing_any_more_is_not_held_to_what_it_said() -> None:
    lane, _ = told(requests=EMPTY)
    assert lane.ready(0.0) > 1
    lane.heard(lane.left(0.0), Head(True), 0.1)
    assert lane.ready(0.1) <= 0.1


def test_each_of_several_workers_takes_its_share() -> None:
    lane, _ = told(requests=Quota(limit=60, remaining=10, seconds=50.0))
    lane.workers = 5
    lane.advance(0.0)
    assert leaving(lane, 3) == pytest.approx([0.0, MARGIN, 5 + MARGIN])


@given(
    st.floats(1, 1e12),
    st.floats(0, 1),
    st.floats(0, LONGEST_SHUT),
    st.floats(0, 100),
    st.integers(1, 9),
)
def test_whatever_is_said_no_call_waits_longer_than_a_bucket_may_take_to_fill(
    limit: float, share: float, seconds: float, late: float, workers: int
) -> None:
    lane = Lane(workers=workers)
    sent = lane.left(0.0)
    lane.heard(sent, Head(True, {"requests": Quota(limit, share * limit, seconds)}), late)
    assert lane.ready(late) - late <= LONGEST_SHUT + late + 1
    assert lane.flow == Flow()


# ---------------------------------------------------------------- the gate


async def hear(gate: RateGate, head: Head) -> None:
    """A call that leaves, hears this, and ends."""
    await gate.turn("haiku")
    gate.heard(head)
    gate.ended()


async def test_a_call_that_would_wait_long_for_what_the_endpoint_says_goes_back_and_says_why() -> (
    None
):
    gate = RateGate()
    await hear(gate, Head(True, {"requests": Quota(10, 0, 100.0)}))
    with pytest.raises(NotBilled) as refusal:
        await gate.turn("haiku")
    said = "haiku held to what the endpoint says it takes: 0.1 requests/s"
    assert refusal.value.message == f"not sent yet: {said}"
    assert refusal.value.next_retry_delay is not None
    wait = refusal.value.next_retry_delay.total_seconds()
    assert wait == pytest.approx(10 - EARLY_SECONDS, abs=1)


async def test_a_person_sees_that_calls_wait_for_what_the_endpoint_says() -> None:
    gate = RateGate()
    await hear(gate, Head(True, {"requests": Quota(10, 0, 10.0)}))
    assert gate.slowed() == {}, "nothing waits"
    waiting = asyncio.create_task(gate.turn("haiku"))
    await asyncio.sleep(0.01)
    said = "haiku held to what the endpoint says it takes: 1 requests/s"
    assert gate.slowed() == {"haiku": said}
    waiting.cancel()
