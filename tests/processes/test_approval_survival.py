"""Workers that are killed while a person thinks, and inside a call that a person approved: nobody
is asked twice, nothing is made twice and no decision is lost. Real processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.service import RPCError

from bench.instruments.deployment import Deployment, deployed, part, planned
from holdfast.certifying.people import waits_for
from holdfast.contracts import Order

pytestmark = [pytest.mark.long, pytest.mark.anyio]

WORKER = Path(__file__).parents[1] / "support" / "asking_worker.py"
CALLS = [{"name": "put", "input": {"text": text}} for text in ("one", "two", "three")]
SCRIPT = {"mark": r"part \d+ of", "rules": [{"turn": 1, "tools": CALLS}]}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for other processes; some of them are being killed."""
    async with asyncio.timeout(180):
        while True:
            try:
                if await holds():
                    return
            except RPCError:
                pass
            await asyncio.sleep(0.2)


async def killed(deployment: Deployment) -> None:
    """Another worker has taken over."""
    before = deployment.pid("worker")
    deployment.kill_worker()

    async def healed() -> bool:
        return deployment.pid("worker") not in (None, before)

    await until(healed)


async def test_a_worker_killed_before_and_inside_an_approved_call_makes_nothing_twice(
    tmp_path: Path,
) -> None:
    async with deployed(tmp_path, SCRIPT, WORKER) as deployment:
        state = deployment.settings.state_dir
        subtasks = (part(1).model_copy(update={"role": "writer"}),)
        wanted = planned(subtasks).model_copy(update={"ask_people": True})
        handle = await deployment.start(wanted)

        async def asked(numbers: list[int]) -> bool:
            return [each.call for each in await waits_for(handle)] == numbers

        async def say(command: str, call: int) -> None:
            order = Order(call=call, by="ann")

            async def said() -> bool:
                await handle.execute_update(command, order, id=f"{command}-{call}")
                return True

            await until(said)

        await until(lambda: asked([1, 2, 3]))
        await killed(deployment)
        await say("approve", 1)
        await killed(deployment)
        await until(lambda: asked([2, 3]))
        (state / "hold").touch()
        await say("decline", 2)
        await say("approve", 3)
        noted = state / "runs"

        async def inside() -> bool:
            return noted.exists() and len(noted.read_text().splitlines()) == 2

        await until(inside)
        (state / "hold").unlink()
        await killed(deployment)
        report = await deployment.result(handle)
        log = await asyncio.to_thread(deployment.simulator.log)
    assert report.status == "complete", report.gaps
    assert sorted(noted.read_text().split()) == ["one", "three"], "each once, and none of two"
    assert log["again"] == 0 and report.model_calls == 2
    given = [(each.command, each.order.call) for each in report.orders]
    assert given == [("approve", 1), ("decline", 2), ("approve", 3)]


async def test_a_worker_killed_around_a_decision_on_a_subtask_loses_none(tmp_path: Path) -> None:
    calls = ("work", "take_turn")
    script = {
        "rules": [{"call": each, "text": "part 1 of", "answer": "failed"} for each in calls],
        # Longer than a kill takes: an answer that has just left may be read by nobody.
        "latencies": {each: [2.0, 2.0] for each in calls},
    }
    async with deployed(tmp_path, script) as deployment:
        # Nothing else is asked meanwhile: its answer could be leaving, too.
        plan = (part(1), part(2, "t1"))
        wanted = planned(plan, tries_per_subtask=1).model_copy(update={"ask_people": True})
        handle = await deployment.start(wanted)

        async def asked() -> bool:
            return [each.kind for each in await waits_for(handle)] == ["decision"]

        await until(asked)
        await killed(deployment)
        await until(asked)
        order = Order(subtask_id="t1", text="It is forty.", by="ann")

        async def said() -> bool:
            await handle.execute_update("supply", order, id="supply-t1")
            return True

        await until(said)
        await killed(deployment)
        report = await deployment.result(handle)
        log = await asyncio.to_thread(deployment.simulator.log)
    assert report.status == "complete", report.gaps
    assert report.findings[0].content == "It is forty."
    assert [(each.command, each.order.by) for each in report.orders] == [("supply", "ann")]
    assert log["again"] == 0
