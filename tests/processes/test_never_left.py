"""A call that ended in its queue cost nothing; one whose last attempt was lost is paid in full.
What Temporal says of such an end is noted here from a real server.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.worker import Worker

from conftest import Handle, Runs, seen
from holdfast.calls import KINDS
from holdfast.calls.work import WORK
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Goal, Order, Report
from holdfast.contracts.errors import NotBilled
from holdfast.contracts.policies import Options, Policy
from scripted import ScriptedModel, ready, subtask

pytestmark = [pytest.mark.long, pytest.mark.anyio]

SCHEDULE_TO_CLOSE = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
SCHEDULE_TO_START = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
HEARTBEAT = TimeoutType.TIMEOUT_TYPE_HEARTBEAT


@dataclass(frozen=True)
class Brief(Policy):
    """Seconds instead of an hour."""

    def options(self, seconds: float, *, attempts: int = 0, total: float = 0.0) -> Options:
        """As the table has them, but shorter."""
        options = super().options(seconds, attempts=attempts, total=total)
        options["schedule_to_close_timeout"] = timedelta(seconds=4)
        options["heartbeat_timeout"] = timedelta(seconds=1)
        return options


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before `runs`, so that its histories are replayed by the same table."""
    row = Brief(WORK.policy.tier, WORK.policy.max_output, schedule_to_close=4)
    monkeypatch.setitem(KINDS, "work", replace(WORK, policy=row))


class Taken:
    """A worker that takes one call and does with it what the test says."""

    def __init__(self, then: BaseException | None = None) -> None:
        self.then = then
        self.took = asyncio.Event()

    @activity.defn(name="work")
    async def work(self, *_: Any) -> None:
        """Ends as it was told, or never says anything again, as if its machine were gone."""
        self.took.set()
        if self.then is not None:
            raise self.then
        await asyncio.Event().wait()


async def run(runs: Runs, taken: Taken | None = None, *, leaves: bool = False) -> Report:
    """A run of one subtask whose calls are served by nobody but `taken`."""
    limits = {"replans": 0, "tries_per_subtask": 1}
    plan = ready(subtask("t1", tier="haiku"))
    wanted = Goal.model_validate(
        {
            "text": "Compare",
            "use_models": True,
            "plan": plan,
            "limits": limits,
            "approval": {"when": "always"},
        }
    )
    async with runs.worker(ScriptedModel({})):
        handle = await runs.start(wanted, skipping=False)
        await seen(handle, lambda view: view.phase == "approval")
    # This one has no models: it carries the run on, and leaves its calls to others.
    async with runs.worker():
        if taken is None:
            await handle.execute_update("approve", Order())
            return await outcome(handle)
        worker = Worker(
            runs.client, task_queue=runs.queue, activities=[taken.work], max_concurrent_activities=1
        )
        async with worker:
            # It listens before there is a call: on a busy machine that would be too late.
            await handle.execute_update("approve", Order())
            await taken.took.wait()
            if not leaves:
                return await outcome(handle)
        return await outcome(handle)


async def ends(handle: Handle) -> list[HistoryEvent]:
    """How the calls of work ended, as the server says it."""
    events = list((await handle.fetch_history()).events)
    calls = [
        event.event_id
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "work"
    ]
    return [
        event
        for event in events
        if event.event_type
        in (EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED)
        and _ended(event).scheduled_event_id in calls
    ]


def _ended(event: HistoryEvent) -> Any:
    return getattr(event, str(event.WhichOneof("attributes")))


async def test_a_call_that_nobody_took_is_not_billed(brief: None, runs: Runs) -> None:
    report = await run(runs)
    assert report.status == "failed"
    assert report.model_calls == 0 and report.dollars == 0
    assert "nobody took it" in report.gaps[0].why
    [end] = await ends(runs.handles[-1])
    assert _ended(end).started_event_id == 0
    # So it is called, although the call has a schedule-to-close only.
    assert _ended(end).failure.timeout_failure_info.timeout_type == SCHEDULE_TO_START
    assert not _ended(end).failure.HasField("cause")


async def test_a_call_that_was_refused_and_then_taken_by_nobody_is_not_billed(
    brief: None, runs: Runs
) -> None:
    refused = NotBilled("overloaded", retry_after=timedelta(seconds=1))
    report = await run(runs, Taken(refused), leaves=True)
    assert report.status == "failed"
    assert report.model_calls == 0 and report.dollars == 0
    [end] = await ends(runs.handles[-1])
    assert _ended(end).started_event_id == 0
    assert _ended(end).failure.timeout_failure_info.timeout_type == SCHEDULE_TO_CLOSE
    assert _ended(end).failure.cause.application_failure_info.type == "NotBilled"


async def test_a_call_whose_next_try_would_come_too_late_is_not_billed(
    brief: None, runs: Runs
) -> None:
    refused = NotBilled("overloaded", retry_after=timedelta(seconds=60))
    report = await run(runs, Taken(refused))
    assert report.status == "failed"
    assert report.model_calls == 0 and report.dollars == 0


async def test_a_call_whose_worker_was_lost_and_that_nobody_took_again_is_paid_in_full(
    brief: None, runs: Runs
) -> None:
    report = await run(runs, Taken())
    ended = await ends(runs.handles[-1])
    # On a busy machine one of them may never have been taken: it is not billed.
    assert 0 < report.model_calls <= len(ended)
    assert report.dollars == report.assumed and report.assumed > 0
    assert _ended(ended[0]).started_event_id == 0
    cause = _ended(ended[0]).failure.cause
    assert cause.timeout_failure_info.timeout_type == HEARTBEAT
