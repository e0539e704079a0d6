"""What a server that bills by the action counts of a history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from holdfast.contracts.policies import BEATS, Policy
from holdfast.history.actions import bills_actions, count_beats, describe_actions, is_action
from holdfast.history.executions import executions_in


def test_a_long_call_beats_less_often_than_a_short_one_and_one_beat_may_be_lost() -> None:
    assert [*BEATS] == sorted(BEATS)
    timeout = Policy().heartbeat
    assert all(2 * pause < timeout for pause in BEATS)
    assert [count_beats(each) for each in (0.5, 1, 4, 30, 300)] == [0, 1, 2, 7, 67]


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
