"""What a server that bills by the action counts of a history."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking import heartbeat
from holdfast.activities.asking.heartbeat import beating
from holdfast.activities.asking.prices import Prices
from holdfast.contracts import Usage
from holdfast.contracts.policies import (
    BEATS,
    BILLED_BEATS,
    EXPECTED_OVERHEAD_TOKENS,
    OUTPUT_TOKENS_PER_SECOND,
    Policy,
)
from holdfast.deployment.settings import Settings
from holdfast.history.actions import bills_actions, count_beats, describe_actions, is_action
from holdfast.history.executions import executions_in


def test_a_long_call_beats_less_often_than_a_short_one_and_one_beat_may_be_lost() -> None:
    timeout = Policy().heartbeat
    for beats in (BEATS, BILLED_BEATS):
        assert [*beats] == sorted(beats)
        assert all(2 * pause < timeout for pause in beats)
    assert [count_beats(each) for each in (0.5, 2.9, 4, 30, 300)] == [0, 0, 1, 7, 67]


@pytest.mark.parametrize(
    ("address", "bills"),
    [
        ("127.0.0.1:7233", False),
        ("ours.a1b2c.tmprl.cloud:7233", True),
        ("eu-west-1.aws.api.temporal.io:7233", True),
        ("tmprl.cloud.example:7233", False),
    ],
)
def test_only_temporal_cloud_bills_actions(address: str, bills: bool) -> None:
    assert bills_actions(address) is bills


def at(number: int, seconds: float, kind: EventType.ValueType) -> HistoryEvent:
    event = HistoryEvent(event_id=number, event_type=kind)
    event.event_time.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))
    return event


def test_attempts_are_counted_and_heartbeats_are_said_to_be_estimated() -> None:
    scheduled = at(4, 0, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    scheduled.activity_task_scheduled_event_attributes.activity_id = "work-t1-1"
    begun = at(5, 0, EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    begun.activity_task_started_event_attributes.scheduled_event_id = 4
    begun.activity_task_started_event_attributes.attempt = 3
    ended = at(6, 30, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
    ended.activity_task_completed_event_attributes.scheduled_event_id = 4
    events = (scheduled, begun, ended, at(7, 30, EventType.EVENT_TYPE_TIMER_STARTED))
    assert describe_actions(sum(map(is_action, events)), executions_in(events)) == (
        "Temporal Cloud bills about 11 actions for this run's own history: 4 that stand in it, and"
        " about 7 heartbeats."
    )


@pytest.mark.parametrize("tier", ["haiku", "sonnet", "opus"])
def test_the_actions_of_a_call_cost_less_than_its_tokens_however_short_and_cheap_it_is(
    tier: str,
) -> None:
    action = Decimal(50) / 1_000_000
    prices = Prices.of(Settings(_env_file=None))
    [model] = [card.id for card in prices.cards() if card.tier == tier]
    shares = []
    for seconds in (0.5, 1, 2, 2.9, 3, 3.1, 5, 7.5, 12, 30, 60, 600):
        # A slow endpoint, and a prompt with nothing in it but what every call has.
        said = int(OUTPUT_TOKENS_PER_SECOND * seconds)
        usage = Usage(input_tokens=EXPECTED_OVERHEAD_TOKENS, output_tokens=said)
        tokens = prices.price(model, usage)
        assert tokens is not None
        shares.append((1 + count_beats(seconds)) * action / tokens)
    assert max(shares) < Decimal({"haiku": "0.75"}.get(tier, "0.04"))


@pytest.mark.anyio
async def test_a_call_beats_later_where_each_beat_is_billed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Host:
        def __init__(self, address: str) -> None:
            self.service_client = self.config = self
            self.target_host = address

    async def call() -> None:
        async with beating() as notes:
            notes.take_soon(1)
            await asyncio.sleep(0.03)

    async def beats_at(address: str) -> int:
        beats: list[object] = []
        environment = ActivityEnvironment(client=cast(Client, Host(address)))
        environment.on_heartbeat = lambda *details: beats.append(details)
        await environment.run(call)
        return len(beats)

    monkeypatch.setattr(heartbeat, "BEATS", (0.01, 9.0))
    monkeypatch.setattr(heartbeat, "SOON", 0.01)
    monkeypatch.setattr(heartbeat, "BILLED_BEATS", (9.0, 9.0))
    assert await beats_at("127.0.0.1:7233") == 2
    assert await beats_at("ours.a1b2c.tmprl.cloud:7233") == 0
