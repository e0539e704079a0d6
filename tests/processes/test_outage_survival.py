"""The model endpoint is gone for a while in the middle of a run: real processes, real sockets."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from bench.instruments.deployment import deployed, part, planned
from conftest import Handle, seen
from holdfast.contracts import Order

pytestmark = pytest.mark.anyio

SCRIPT = {"latencies": {"work": [0.5, 0.5]}}
AT_ONCE = 3
SECONDS = 4
"""For which nobody is there."""


@pytest.mark.long
async def test_a_run_outlives_its_endpoint_and_pays_each_call_once(tmp_path: Path) -> None:
    """It is paused first, so that no answer is on its way when the endpoint dies."""
    wanted = planned((part(1), part(2), part(3, "t1"), part(4, "t2")))
    async with asyncio.timeout(280), deployed(tmp_path, SCRIPT) as deployment:
        handle: Handle = await deployment.start(wanted)
        await seen(handle, lambda view: view.tiers)
        await tell(handle, "pause")
        await seen(handle, lambda view: not view.tiers)
        await deployment.simulator.stop(kill=True)
        await tell(handle, "resume")
        view = await seen(handle, lambda each: any("reached since" in note for note in each.notes))
        assert any(deployment.simulator.url in note for note in view.notes)
        await asyncio.sleep(SECONDS)
        await deployment.simulator.start()
        report = await handle.result()
        log = await asyncio.to_thread(deployment.simulator.log)
    assert report.status == "complete"
    assert report.model_calls == log["admitted"] == 6
    assert log["duplicates"] == 0 and report.assumed == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        "lists its models and loses calls",
        "resets",
        "502",
    ],
)
async def test_a_run_outlives_an_endpoint_that_loses_calls_and_books_what_was_in_flight(
    tmp_path: Path, kind: str
) -> None:
    """A proxy loses what is in flight and what comes then, also where its list answers."""
    wanted = planned(tuple(part(number) for number in range(1, 9)), concurrency=AT_ONCE)
    async with (
        asyncio.timeout(280),
        deployed(tmp_path, SCRIPT, through_proxy=True) as deployment,
    ):
        handle: Handle = await deployment.start(wanted)
        await seen(handle, lambda view: any(row.status == "complete" for row in view.rows))
        outage = asyncio.create_task(deployment.proxy.outage(kind, SECONDS))
        view = await seen(handle, lambda each: any("calls since" in note for note in each.notes))
        (note,) = (each for each in view.notes if "calls since" in each)
        assert deployment.proxy.url in note and "goes on when it answers" in note
        await outage
        report = await handle.result()
        log = await asyncio.to_thread(deployment.simulator.log)
    assert report.status == "complete"
    lost = report.model_calls - log["delivered"]
    pings = SECONDS  # seconds: there are fewer pauses than that
    assert 1 <= lost <= AT_ONCE + pings
    assert report.dollars is not None and report.dollars >= Decimal(log["dollars"])


async def tell(handle: Handle, name: str) -> None:
    await handle.execute_update(name, Order(by="me"))
