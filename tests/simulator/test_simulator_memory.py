"""What a simulator charged outlives it, and is told apart by what a script marks."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator

KEY = {"X-Api-Key": "scripted"}


async def asked(simulator: Simulator, prompt: str) -> None:
    body: dict[str, Any] = {
        "model": "claude-haiku-5-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": prompt}],
        "stream": True,
    }
    async with (
        ClientSession(simulator.url, headers=KEY) as session,
        session.post("/v1/messages", json=body) as response,
    ):
        await response.read()


@pytest.mark.anyio
async def test_a_server_that_is_started_again_knows_what_it_charged(tmp_path: Path) -> None:
    script = Script.model_validate({"mark": "run [0-9]+"})
    memory = tmp_path / "charged.jsonl"
    async with Simulator(script, memory=memory) as first:
        await asked(first, "about run 1")
        await asked(first, "about run 2")
        before = first.log.report()
    async with Simulator(script, memory=memory) as second:
        assert second.log.report()["dollars"] == before["dollars"]
        await asked(second, "about run 1")
        after = second.log.report()
    assert (after["admitted"], after["delivered"], after["again"]) == (3, 3, 1)
    marks = after["marks"]
    assert (marks["run 1"]["calls"], marks["run 1"]["again"]) == (2, 1)
    assert (marks["run 2"]["calls"], marks["run 2"]["again"]) == (1, 0)
    dollars = sum(Decimal(each["dollars"]) for each in marks.values())
    assert dollars == Decimal(after["dollars"]) > 0
    second.reset()
    assert second.log.report()["admitted"] == 0
    assert Simulator(script, memory=memory).log.report()["admitted"] == 0, "the file, too"


@pytest.mark.anyio
async def test_an_answer_that_breaks_off_is_charged_and_not_delivered(tmp_path: Path) -> None:
    script = Script.model_validate({"rules": [{"fault": "drop_mid_stream", "first": 1}]})
    async with Simulator(script, memory=tmp_path / "charged.jsonl") as simulator:
        with pytest.raises(ClientError):
            await asked(simulator, "once")
        await asked(simulator, "once")
        log = simulator.log.report()
    assert (log["admitted"], log["delivered"], log["again"]) == (2, 1, 0)


@pytest.mark.anyio
async def test_what_it_was_asked_can_be_kept(tmp_path: Path) -> None:
    kept = tmp_path / "requests.jsonl"
    async with Simulator(requests=kept) as simulator:
        await asked(simulator, "one")
        await asked(simulator, "two")
    bodies = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [body["messages"][0]["content"] for body in bodies] == ["one", "two"]
