"""Calls that wait in a worker for their turn go by urgency, and then in turns by who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from temporalio.common import Priority
from temporalio.testing import ActivityEnvironment

from holdfast.activities.gate.door import Door, Rank
from holdfast.activities.gate.lane import Lane
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.gate.throttle import Throttle

pytestmark = pytest.mark.anyio


async def order_of(ranks: Iterable[Rank]) -> list[Rank]:
    """The order in which calls go that come one after the other while the door is held."""
    door, gone = Door(), list[Rank]()

    async def go(rank: Rank) -> None:
        async with door.passing(rank):
            gone.append(rank)

    async with door.passing(Rank()):
        tasks = [asyncio.create_task(go(rank)) for rank in ranks]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return gone


async def test_ten_urgent_calls_behind_500_go_first_and_bulk_last() -> None:
    bulk, usual, urgent = Rank(5), Rank(), Rank(1)
    gone = await order_of([bulk] * 250 + [usual] * 250 + [urgent] * 10)
    assert gone == [urgent] * 10 + [usual] * 250 + [bulk] * 250


async def test_a_small_team_beside_a_large_one_has_every_second_turn() -> None:
    large, small = Rank(requester="large"), Rank(requester="small")
    gone = await order_of([large] * 100 + [small] * 10)
    assert gone[:20].count(small) == 10


async def test_who_comes_late_is_not_made_up_for_what_it_did_not_ask() -> None:
    door, gone = Door(), list[str]()
    late = list[asyncio.Task[None]]()

    async def go(who: str) -> None:
        async with door.passing(Rank(requester=who)):
            gone.append(who)
            if len(gone) == 5:
                late.extend(asyncio.create_task(go("late")) for _ in range(4))
                await asyncio.sleep(0)

    await asyncio.gather(*(go("first") for _ in range(10)))
    await asyncio.gather(*late)
    assert gone[6:] == ["late", "first"] * 4, gone


async def test_one_that_is_cut_while_it_waits_or_as_it_is_let_in_holds_up_nobody() -> None:
    door, gone = Door(), list[int]()

    async def go(number: int) -> None:
        async with door.passing(Rank()):
            gone.append(number)

    async with door.passing(Rank()):
        tasks = [asyncio.create_task(go(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
        assert door.ahead(Rank()) == 5
    # The second has the door by now, and has not gone on yet.
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert gone == [2, 3]
    async with asyncio.timeout(1), door.passing(Rank()):
        assert door.ahead(Rank()) == 1


async def test_an_urgent_call_is_not_sent_back_for_the_wait_of_others() -> None:
    gate = RateGate()
    gate._tier("haiku").lane = Lane(throttle=Throttle(rate=20.0, by_hand=True))
    sent = list[int]()

    async def call(priority: int) -> None:
        environment = ActivityEnvironment()
        environment.info = environment.info.__class__(
            **{**environment.info.__dict__, "priority": Priority(priority_key=priority)}
        )
        await environment.run(turn, priority)

    async def turn(priority: int) -> None:
        await gate.turn("haiku")
        sent.append(priority)

    bulk = [asyncio.create_task(call(5)) for _ in range(500)]
    await asyncio.sleep(0)
    urgent = [asyncio.create_task(call(1)) for _ in range(3)]
    async with asyncio.timeout(5):
        await asyncio.gather(*urgent)
    assert sent.count(5) <= 3, "what had its turn already"
    ended = [each for each in bulk if each.done() and each.exception()]
    assert len(ended) > 300, "what would wait for longer than 5 s is back at the server"
    for each in bulk:
        each.cancel()
    await asyncio.gather(*bulk, return_exceptions=True)
