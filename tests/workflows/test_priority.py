"""Runs behind others: urgent ones go first, and those who ask take turns."""

from __future__ import annotations

import asyncio

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


async def last_prepared(client: Client, queue: str, *waves: Wave) -> int:
    """The place, from 1, of the last run of the last wave, in the order in which a worker with one
    place prepares runs that were all waiting when it came.
    """
    order, all_there = list[Priority](), asyncio.Event()
    count, urgency, requester = waves[-1]
    wanted = priority_of(urgency, requester)

    @activity.defn(name="prepare")
    async def prepare(_: Goal) -> Briefing:
        order.append(activity.info().priority)
        if order.count(wanted) == count:
            all_there.set()
        raise ApplicationError("not today", non_retryable=True)

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
        await all_there.wait()
    return max(place for place, each in enumerate(order, 1) if each == wanted)


async def test_urgent_runs_go_before_others_and_these_before_bulk(runs: Runs) -> None:
    others: list[Wave] = [(6, "bulk", "a"), (2, "normal", "a"), (2, "urgent", "a")]
    assert await last_prepared(runs.client, runs.queue, *others) <= 4
    bulk, normal, _ = others
    assert await last_prepared(runs.client, f"{runs.queue}-2", bulk, normal) <= 4


@pytest.mark.long
async def test_ten_urgent_runs_behind_500_others_go_first(runs: Runs) -> None:
    waves: list[Wave] = [(500, "normal", "a"), (10, "urgent", "a")]
    assert await last_prepared(runs.client, runs.queue, *waves) <= 15


@pytest.mark.long
async def test_a_small_team_beside_a_large_one_has_about_every_second_turn(runs: Runs) -> None:
    waves: list[Wave] = [(100, "normal", "large"), (10, "normal", "small")]
    assert await last_prepared(runs.client, runs.queue, *waves) <= 30


def test_a_requester_with_a_long_name_has_a_key_that_temporal_takes() -> None:
    long = priority_of("normal", "ä" * 33).fairness_key
    assert long and len(long) == 64 and long != priority_of("normal", "ä" * 34).fairness_key
    assert priority_of("bulk", "anna") == Priority(priority_key=5, fairness_key="anna")
    assert priority_of("urgent", "").fairness_key is None
