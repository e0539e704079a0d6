"""What users test their programs with."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import deployed

pytestmark = pytest.mark.anyio


async def test_a_test_of_ones_own_has_a_deployment_without_key_or_network() -> None:
    before = dict(os.environ)
    async with deployed({"seed": 3}) as deployment:
        run = await deployment.hf.start("Which rates changed?", dollars=1)
        report = await run.report()
        assert report.status == "complete"
        assert "(scripted)" in report.answer, "nobody takes it for a model's"
        assert deployment.simulator.log.report()["admitted"] == report.model_calls
    assert dict(os.environ) == before
