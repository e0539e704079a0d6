"""Runs behind others: urgent ones go first, and those who ask take turns."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from conftest import Runs
from driving import subtask
from holdfast.contracts import Briefing, Goal, Plan
from holdfast.contracts.base import Urgency
from holdfast.intake.launch import priority_of
from holdfast.workflows import WORKFLOWS

pytestmark = pytest.mark.anyio

PLAN = Plan(goal="Compare", subtasks=(subtask("a"),))
Wave = tuple[int, Urgency, str]
"""So many runs of one urgency, and who asks."""


async def prepared(client: Client, queue: str, *waves: Wave) -> list[Priority]:
    """The priorities of runs in the order in which a worker with one place prepares them, all of
    which were waiting when it came. They end there.
    """
    order = list[Priority]()

    @activity.defn(name="prepare")
    async def prepare(_: Goal) -> Briefing:
        order.append(activity.info().priority)
        raise ApplicationError("not today", non_retryable=True)

    count = sum(wave[0] for wave in waves)
    for wave, (number, urgency, requester) in enumerate(waves):
        starts = (
            client.start_workflow(
                "SupervisorWorkflow",
                Goal(text="Compare", plan=PLAN, use_models=True),
                id=f"{queue}-{wave}-{each}",
                task_queue=queue,
                priority=priority_of(urgency, requester),
            )
            for each in range(number)
        )
        await asyncio.gather(*starts)
    worker = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=[prepare],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=1,
        max_concurrent_workflow_tasks=2,
        max_concurrent_workflow_task_polls=2,
    )
    async with worker, asyncio.timeout(120):
        while len(order) < count:
            await asyncio.sleep(0.02)
    return order


def last_of(order: list[Priority], wanted: Priority) -> int:
    """The place of the last run of a priority, counted from 1."""
    return max(place for place, each in enumerate(order, 1) if each == wanted)


async def test_urgent_runs_go_before_others_and_bulk_runs_behind(runs: Runs) -> None:
    order = await prepared(
        runs.client, runs.queue, (4, "bulk", "a"), (4, "normal", "a"), (2, "urgent", "a")
    )
    assert last_of(order, priority_of("urgent", "a")) <= 4, order
    assert last_of(order, priority_of("normal", "a")) <= 8, order


@pytest.mark.long
async def test_ten_urgent_runs_behind_500_others_go_first(runs: Runs) -> None:
    order = await prepared(runs.client, runs.queue, (500, "normal", "a"), (10, "urgent", "a"))
    place = last_of(order, priority_of("urgent", "a"))
    print("last urgent:", place, "of", len(order))
    assert place <= 15


@pytest.mark.long
async def test_a_small_team_beside_a_large_one_has_about_every_second_turn(runs: Runs) -> None:
    order = await prepared(runs.client, runs.queue, (100, "normal", "l"), (10, "normal", "s"))
    place = last_of(order, priority_of("normal", "s"))
    print("last of the small team:", place, "of", len(order))
    assert place <= 30, Counter(order[:30])


def test_a_requester_with_a_long_name_has_a_key_that_temporal_takes() -> None:
    long = priority_of("normal", "ä" * 33).fairness_key
    assert long and len(long) == 64 and long != priority_of("normal", "ä" * 34).fairness_key
    assert priority_of("bulk", "anna") == Priority(priority_key=5, fairness_key="anna")
    assert priority_of("urgent", "").fairness_key is None
