"""A tier's rate as all workers and people share it: kept by the server, shown to whoever looks."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from conftest import Handle, Runs
from holdfast.activities.gate.queue_rates import (
    QueueRate,
    can_set_rates,
    queue_of,
    read_rate,
    write_rate,
)
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.activities.gate.throttle import Throttle, describe, shut_for
from holdfast.cli.commands.care.doctor import check_rates
from holdfast.contracts import Goal
from holdfast.contracts.errors import NotBilled
from holdfast.serving.throttle_notes import ShowThrottles
from holdfast.temporal.connection import Target
from holdfast.text import for_markdown
from holdfast.workflows.supervisor import SupervisorWorkflow
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

CAUSE = "claude-haiku-5-5: 429 rate_limit_error"


# ---------------------------------------------------------------- at a real server


@pytest.fixture
def queue() -> str:
    return f"gate-{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def keeping(
    client: Client, queue: str, *gates: RateGate, tiers: Sequence[str] = ("haiku",)
) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(gate.keep(client, queue, tiers)) for gate in gates]
    try:
        yield
    finally:
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(client: Client, queue: str, holds: Callable[[QueueRate], bool]) -> QueueRate:
    """The rate of the haiku queue once this holds for it."""
    while True:
        found = await read_rate(client, queue, "haiku")
        if holds(found):
            return found
        await asyncio.sleep(0.05)


async def refused(gate: RateGate) -> NotBilled:
    """The refusal of a call, once this gate knows that the tier is shut."""
    while True:
        try:
            await gate.turn("haiku")
        except NotBilled as refusal:
            return refusal
        await asyncio.sleep(0.01)


async def test_a_server_keeps_a_rate_with_its_reason(env: WorkflowEnvironment, queue: str) -> None:
    assert await can_set_rates(env.client, queue_of(queue, "haiku"))
    assert (await read_rate(env.client, queue, "haiku")).rate is None
    written = await write_rate(env.client, queue, "haiku", 0.0, "haiku throttled")
    # A look soon after a change may still find what was before it.
    assert written == await until(env.client, queue, lambda found: found.written == written.written)
    assert (written.rate, written.reason) == (0.0, "haiku throttled")
    lifted = await write_rate(env.client, queue, "haiku", None, "haiku at full speed")
    assert lifted.rate is None and lifted.written > written.written


async def test_a_throttle_shuts_the_tier_on_every_worker(
    env: WorkflowEnvironment, queue: str
) -> None:
    first, second = RateGate(), RateGate()
    async with keeping(env.client, queue, first, second):
        await first.throttled("haiku", 60.0, CAUSE)
        shut = await until(env.client, queue, lambda found: found.rate == 0)
        assert shut.reason.startswith("haiku throttled ") and CAUSE in shut.reason
        refusal = await refused(second)
    assert "haiku throttled" in refusal.message


async def test_what_a_dead_worker_left_shut_is_opened_by_the_next(
    env: WorkflowEnvironment, queue: str
) -> None:
    shut = replace(shut_for(0.5, CAUSE, 0.0), rate=7.6)
    await write_rate(env.client, queue, "haiku", 0.0, describe("haiku", shut, 0.0))
    async with keeping(env.client, queue, RateGate()):
        opened = await until(env.client, queue, lambda found: "throttled" not in found.reason)
    assert opened.reason == f"haiku slowed after a throttle: {CAUSE}"
    assert opened.rate == pytest.approx(7.6)


async def test_a_throttle_of_an_endpoint_that_was_replaced_holds_nothing_back(
    env: WorkflowEnvironment, queue: str
) -> None:
    shut = shut_for(120.0, CAUSE, time.time(), "http://before")
    await write_rate(env.client, queue, "haiku", 0.0, describe("haiku", shut, time.time()))
    gate = RateGate("http://now")
    async with keeping(env.client, queue, gate):
        opened = await until(env.client, queue, lambda found: "throttled" not in found.reason)
        assert opened.reason == "haiku at full speed"
        await gate.turn("haiku")
        await gate.throttled("haiku", 60.0, CAUSE)
        held = await until(env.client, queue, lambda found: found.rate == 0)
    assert held.reason.startswith("haiku at http://now throttled 60 s, then ")


async def test_a_limit_in_flight_holds_on_every_worker_until_a_call_is_over(
    env: WorkflowEnvironment, queue: str
) -> None:
    gate, limit = RateGate(), Throttle(CAUSE, most=1)
    await write_rate(env.client, queue, "haiku", None, describe("haiku", limit, 0.0))
    async with keeping(env.client, queue, gate):
        while not gate.slowed():  # noqa: ASYNC110 - it is polled by users, too
            await asyncio.sleep(0.05)
        assert gate.slowed() == {"haiku": f"haiku held to 1 in flight after a refusal: {CAUSE}"}
        left: list[int] = []

        async def call(number: int) -> None:
            await gate.turn("haiku")
            left.append(number)
            await asyncio.Event().wait()

        calls = [asyncio.create_task(call(number)) for number in range(2)]
        await asyncio.sleep(0.3)
        assert left == [0]
        # However it ends: nothing else says that this one is over.
        calls[0].cancel()
        async with asyncio.timeout(5):
            while len(left) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        calls[1].cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_what_a_person_set_at_the_server_stays_and_what_he_shut_stays_shut(
    env: WorkflowEnvironment, queue: str
) -> None:
    gate = RateGate()
    by_hand = await write_rate(env.client, queue, "haiku", 0.0, "quiet hours")
    async with keeping(env.client, queue, gate), asyncio.timeout(20):
        assert (await refused(gate)).next_retry_delay is not None
        await gate.throttled("haiku", 2.5, CAUSE)
        await asyncio.sleep(1.1)
        assert await read_rate(env.client, queue, "haiku") == by_hand


async def test_calls_leave_no_faster_than_a_person_said(
    env: WorkflowEnvironment, queue: str
) -> None:
    gate = RateGate()
    await write_rate(env.client, queue, "haiku", 4.0, "quiet hours")
    async with keeping(env.client, queue, gate):
        while not gate.slowed():  # noqa: ASYNC110 - it is polled by users, too
            await asyncio.sleep(0.05)
        left = []
        for _ in range(4):
            await gate.turn("haiku")
            left.append(time.monotonic())
            gate.ended()
    assert left[-1] - left[0] > 0.7


@dataclass(frozen=True)
class OldServer:
    """A client of a server that keeps no rates."""

    namespace: str = "default"
    identity: str = "test"
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def workflow_service(self) -> OldServer:
        return self

    async def describe_task_queue(self, *_: object, **__: object) -> DescribeTaskQueueResponse:
        return DescribeTaskQueueResponse()

    async def update_task_queue_config(self, *_: object, **__: object) -> None:
        self.asked.set()
        raise RPCError("unknown method", RPCStatusCode.UNIMPLEMENTED, b"")


async def test_where_the_server_keeps_no_rates_each_worker_slows_by_itself(queue: str) -> None:
    gate, server = RateGate(), OldServer()
    client = cast(Client, server)
    assert not await can_set_rates(client, queue)
    server.asked.clear()
    async with keeping(client, queue, gate):
        await gate.throttled("haiku", 60.0, CAUSE)
        await server.asked.wait()
        assert (await refused(gate)).throttled


# ---------------------------------------------------------------- what a person sees


async def test_every_worker_knows_which_tier_is_slowed_how_much_and_why(
    env: WorkflowEnvironment, queue: str
) -> None:
    shut = replace(shut_for(120.0, CAUSE, 0.0), rate=4.8)
    await write_rate(env.client, queue, "haiku", 0.0, describe("haiku", shut, 0.0))
    await write_rate(env.client, queue, "opus", 2.0, "quiet hours")
    await write_rate(env.client, queue, "sonnet", 4.8, describe("sonnet", shut, 120.0))
    gate = RateGate()
    assert gate.slowed() == {}
    async with keeping(env.client, queue, gate, tiers=("haiku", "sonnet", "opus")):
        while len(gate.slowed()) < 3:  # noqa: ASYNC110 - it is polled by users, too
            await asyncio.sleep(0.05)
        assert gate.slowed() == {
            "haiku": f"haiku throttled 120 s, then 4.80/s: {CAUSE}",
            "sonnet": f"sonnet slowed after a throttle: {CAUSE}",
            "opus": "opus limited to 2 calls/s by hand: quiet hours",
        }


async def details(handle: Handle) -> str:
    """The board, as the Web UI asks for it."""
    metadata: WorkflowMetadata = await handle.query(
        "__temporal_workflow_metadata", result_type=WorkflowMetadata
    )
    return metadata.current_details


async def test_a_run_shows_the_throttle_that_it_waits_for_on_its_board_and_not_in_its_history(
    runs: Runs,
) -> None:
    gate, go_on = RateGate(), asyncio.Event()
    model = ScriptedModel({"t1": [go_on, works("one")], "synthesize": [synthesizes("One [t1].")]})
    goal = Goal(text="Compare engines", plan=ready(subtask("t1", tier="haiku")), use_models=True)
    line = f"haiku throttled 12 s, then 1.00/s: {CAUSE}"
    async with runs.worker(model, interceptors=[ShowThrottles(gate.slowed)]):
        handle = await runs.start(goal)
        await model.asked("t1")
        before, described = await details(handle), await handle.describe()
        await gate.throttled("haiku", 12.0, CAUSE)
        await gate.throttled("opus", 12.0, CAUSE)
        assert (await handle.query(SupervisorWorkflow.view)).notes == (line,)
        assert await details(handle) == f"{before}\n\n- {for_markdown(line)}"
        assert (await handle.describe()).history_length == described.history_length
        go_on.set()
        assert (await handle.result()).status == "complete"
        assert "throttled" not in await details(handle)


async def test_doctor_shows_the_rate_of_each_tier_with_its_reason(
    env: WorkflowEnvironment, queue: str
) -> None:
    await write_rate(env.client, queue, "haiku", 2.0, "quiet hours")
    slowed = describe("opus", Throttle(CAUSE, rate=4.8), 0.0)
    await write_rate(env.client, queue, "opus", 4.8, slowed)
    target = Target(address="", task_queue=queue)
    shown = {
        check.name: (check.mark, check.detail) for check in await check_rates(env.client, target)
    }
    assert shown["haiku rate"] == ("note", "haiku limited to 2 calls/s by hand: quiet hours")
    assert shown["opus rate"] == ("note", f"{slowed} (4.80 calls/s)")
    assert shown["sonnet rate"] == ("ok", "sonnet at full speed")
    assert "rate gate" not in shown


async def test_doctor_says_when_the_server_keeps_no_rates(queue: str) -> None:
    checks = await check_rates(cast(Client, OldServer()), Target(address="", task_queue=queue))
    assert "each worker slows by itself" in checks[-1].detail
