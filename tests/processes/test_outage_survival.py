"""The model endpoint is gone for a while in the middle of a run: real processes, real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.instruments.deployment import deployed, part, planned
from conftest import Handle, seen
from orchestrator.contracts import Order

pytestmark = pytest.mark.anyio

SCRIPT = {"latencies": {"work": [0.5, 0.5]}}
SECONDS = 4
"""For which nobody is there."""


async def test_a_run_outlives_its_endpoint_and_pays_each_call_once(tmp_path: Path) -> None:
    """It is paused first, so that no answer is on its way when the endpoint dies."""
    wanted = planned((part(1), part(2), part(3, "t1"), part(4, "t2")))
    async with asyncio.timeout(120), deployed(tmp_path, SCRIPT) as deployment:
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


async def tell(handle: Handle, name: str) -> None:
    await handle.execute_update(name, Order(by="me"))
