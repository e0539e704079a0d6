"""What an endpoint says of its limits holds calls back before any is refused. Whole storms of such
endpoints are in `test_gate_storm.py`.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.quotas import MARGIN, Sent, cost_of
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.gate.throttle import FULL_SPEED, LONGEST_SHUT
from holdfast.contracts.errors import NotBilled
from holdfast.ports import Head, Quota, Resource

pytestmark = pytest.mark.anyio

ONE = cost_of()
FULL = Quota(limit=10, remaining=10, seconds=0.0)
EMPTY = Quota(limit=10, remaining=0, seconds=10.0)


def told(**quotas: Quota) -> tuple[Lane, Sent]:
    """A tier that heard this of a call which left at 0."""
    lane = Lane()
    sent = lane.left(0.0, ONE)
    said: dict[Resource, Quota] = dict(quotas)  # type: ignore[assignment]
    lane.heard(sent, Head(True, said), 0.0)
    return lane, sent


def leaving(lane: Lane, calls: int, tokens: int = 0, max_output: int = 0) -> list[float]:
    """When these leave that all came at 0."""
    now, times, cost = 0.0, [], cost_of(tokens, max_output)
    for _ in range(calls):
        now = max(now, lane.ready(now, cost))
        lane.left(now, cost)
        times.append(now)
    return times


# ---------------------------------------------------------------- the bucket


def test_calls_leave_as_far_as_what_is_left_allows_and_then_as_it_fills() -> None:
    lane, _ = told(requests=Quota(limit=60, remaining=5, seconds=55.0))
    # The last one that may leave is as late as any that has only just come to be there.
    assert leaving(lane, 8) == pytest.approx([0.0] * 4 + [MARGIN + n for n in range(4)])


def test_tokens_hold_back_what_requests_would_allow() -> None:
    tokens = Quota(limit=60_000, remaining=10_000, seconds=50.0)
    lane, _ = told(requests=FULL, input_tokens=tokens)
    assert leaving(lane, 4, tokens=5_000)[:3] == pytest.approx([0.0, MARGIN, 5 + MARGIN])
    lane, _ = told(tokens=tokens)
    assert leaving(lane, 3, tokens=4_000, max_output=4_000)[1:] == pytest.approx([0.05, 5.05])


def test_answers_are_taken_to_be_as_long_as_they_lately_were() -> None:
    lane, sent = told(output_tokens=Quota(limit=8_000, remaining=8_000, seconds=0.0))
    lane.ended(sent, 1.0, 100)
    assert cost_of(10, 8_000, lane.wrote)["output_tokens"] == 100
    assert cost_of(10, 8_000)["output_tokens"] == 2_000


def test_a_call_that_is_larger_than_the_limit_leaves_when_all_of_it_is_there() -> None:
    lane, _ = told(input_tokens=Quota(limit=1_000, remaining=0, seconds=60.0))
    assert leaving(lane, 1, tokens=5_000) == pytest.approx([60 + MARGIN])


def test_what_left_since_is_counted_and_an_earlier_answer_undoes_nothing() -> None:
    lane = Lane()
    first, second, _ = lane.left(0.0, ONE), lane.left(0.1, ONE), lane.left(0.2, ONE)
    lane.heard(second, Head(True, {"requests": Quota(60, 1, 59.0)}), 0.3)
    assert lane.ready(0.3, ONE) > 1
    lane.heard(first, Head(True, {"requests": FULL}), 0.4)
    assert lane.ready(0.4, ONE) > 1


def test_an_endpoint_that_says_nothing_any_more_is_not_held_to_what_it_said() -> None:
    lane, _ = told(requests=EMPTY)
    assert lane.ready(0.0, ONE) > 1
    lane.heard(lane.left(0.0, ONE), Head(True), 0.1)
    assert lane.ready(0.1, ONE) == 0.1


def test_each_of_several_workers_takes_its_share() -> None:
    lane, _ = told(requests=Quota(limit=60, remaining=10, seconds=50.0))
    lane.workers = 5
    lane.advance(0.0)
    assert leaving(lane, 3) == pytest.approx([0.0, MARGIN, 5 + MARGIN])


def test_a_refusal_that_its_head_explains_is_not_looked_into_and_slows_to_what_it_says() -> None:
    lane = Lane()
    sent = lane.left(0.0, ONE)
    lane.heard(sent, Head(False, {"requests": EMPTY}), 0.01)
    lane.refused(sent, 2.0, "429", 0.01)
    assert lane.ready(0.02, ONE) == lane.throttle.until == 2.01
    assert lane.throttle.rate == pytest.approx(1.0, abs=0.01)


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
    sent = lane.left(0.0, ONE)
    lane.heard(sent, Head(True, {"requests": Quota(limit, share * limit, seconds)}), late)
    assert lane.ready(late, ONE) - late <= LONGEST_SHUT + late + 1
    assert lane.throttle == FULL_SPEED


# ---------------------------------------------------------------- the gate


async def test_what_calls_wait_for_is_told_to_those_that_go_back_and_to_people() -> None:
    gate = RateGate()
    await gate.turn("haiku")
    gate.heard(Head(True, {"requests": Quota(10, 0, 100.0)}))
    gate.ended()
    said = "haiku held to what the endpoint says it takes: 0.1 requests/s"
    with pytest.raises(NotBilled) as refusal:
        await gate.turn("haiku")
    assert refusal.value.message == f"not sent yet: {said}"
    assert refusal.value.next_retry_delay is not None
    assert 4 <= refusal.value.next_retry_delay.total_seconds() <= 6, "half of its wait"
    assert gate.slowed() == {}, "nothing waits"
    await gate.turn("sonnet")
    gate.heard(Head(True, {"requests": Quota(10, 0, 10.0)}))
    waiting = asyncio.create_task(gate.turn("sonnet"))
    await asyncio.sleep(0.01)
    assert gate.slowed() == {"sonnet": said.replace("haiku", "sonnet").replace("0.1", "1")}
    waiting.cancel()
