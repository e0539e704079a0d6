"""What several calls begin with is written to the endpoint's cache by the first of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from calling import REQUEST, claude
from holdfast.activities.claude.endpoint import FULL
from holdfast.activities.claude.wire import shape
from holdfast.calls.work import Told, WorkMaterial, count_common, work_prompt
from holdfast.contracts import PinnedInput, Subtask
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator

pytestmark = pytest.mark.anyio

INPUT = PinnedInput(name="report", kind="text", digest="d", size=8_000)
TEXT = "What the report says, at length. " * 250


def prompt(instruction: str) -> tuple[str, int]:
    subtask = Subtask(id="a", title="A", instruction=instruction, role="analyst")
    material, told = WorkMaterial(subtask=subtask, inputs=(INPUT,)), Told({"report": TEXT})
    return work_prompt(material, told), count_common(material, told)


@pytest.mark.parametrize("kept", ["5m", "1h"])
async def test_the_second_call_over_an_input_reads_it_from_the_cache(
    kept: Literal["5m", "1h"],
) -> None:
    first, common = prompt("Count the words.")
    second, same = prompt("Name the author, and say why.")
    assert common == same and first[:common] == second[:common] and TEXT in first[:common]
    request = replace(REQUEST, capabilities=FULL, shared=kept, common=common)
    async with Simulator() as simulator, claude(simulator.url) as model:
        wrote = (await model.ask(replace(request, prompt=first))).usage
        found = (await model.ask(replace(request, prompt=second))).usage
    assert wrote.cache_write_tokens > 2_000 and not wrote.cache_read_tokens
    assert wrote.cache_hour_tokens == (wrote.cache_write_tokens if kept == "1h" else 0)
    assert found.cache_read_tokens == wrote.cache_write_tokens
    assert not found.cache_write_tokens


async def test_a_call_that_leaves_when_the_first_answer_begins_reads_from_the_cache() -> None:
    first, common = prompt("Count the words.")
    request = replace(REQUEST, capabilities=FULL, shared="5m", common=common, prompt=first)
    begun = asyncio.Event()
    script = Script(latency=(0.1, 0.1), tokens_per_second=200)
    async with Simulator(script) as simulator, claude(simulator.url) as model:
        ahead = asyncio.create_task(model.ask(replace(request, begins=begun.set)))
        await begun.wait()
        assert not ahead.done()
        after = await model.ask(replace(request, prompt=prompt("Name the author.")[0]))
        wrote = (await ahead).usage
    assert after.usage.cache_read_tokens == wrote.cache_write_tokens > 2_000


def test_a_beginning_is_marked_once_and_no_block_is_empty() -> None:
    whole, common = prompt("Count the words.")
    request = replace(REQUEST, capabilities=FULL, prompt=whole, shared="5m", common=common)
    (message,) = shape(request, FULL)["messages"]
    assert ["cache_control" in block for block in message["content"]] == [True, False]
    assert "".join(block["text"] for block in message["content"]) == whole
    alone = shape(replace(request, common=len(whole)), FULL)["messages"][0]["content"]
    assert [block["text"] for block in alone] == [whole]
    system = shape(replace(request, common=0), FULL)["system"]
    assert [*system[0]["cache_control"]] == ["type"]
    assert isinstance(shape(replace(request, shared=""), FULL)["system"], str)
