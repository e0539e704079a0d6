"""What users test their programs with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.testing import deployed


@pytest.mark.anyio
async def test_a_test_of_ones_own_has_a_deployment_without_key_or_network() -> None:
    before = dict(os.environ)
    async with deployed({"seed": 3}) as deployment:
        run = await deployment.hf.start("Which rates changed?", dollars=1)
        report = await run.report()
        assert report.status == "complete"
        assert "(scripted)" in report.answer, "nobody takes it for a model's"
        assert deployment.simulator.log.report()["admitted"] == report.model_calls
    assert dict(os.environ) == before


_LATE = """
import asyncio
from holdfast.testing import deployed
from holdfast.workers.pollers import SILENT_SECONDS, find_pollers

async def main():
    async with deployed() as deployment:
        await asyncio.sleep(SILENT_SECONDS + 1)
        print([each.alive for each in (await find_pollers(deployment.client, [QUEUE]))[QUEUE]])

QUEUE = "holdfast-test"
asyncio.run(main())
"""


@pytest.mark.long
def test_its_worker_is_known_to_live_however_long_the_test_takes() -> None:
    """In a process that set no runtime, as this one has."""
    done = subprocess.run(
        [sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines()[-1] == "[True]"
