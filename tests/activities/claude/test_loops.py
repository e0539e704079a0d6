"""A loop of turns through the adapter, by hand: what came goes back, and is read from the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from calling import PLAIN, REQUEST, claude
from holdfast.activities.claude.adapter import Claude
from holdfast.activities.claude.endpoint import FULL
from holdfast.calls.work import WorkAnswer
from holdfast.contracts import Capabilities
from holdfast.contracts.errors import NotBilled, PossiblyBilled
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from parameters import rest_long

pytestmark = pytest.mark.anyio

TURNS = 10
SEARCH = {"name": "search", "input": {"words": "tea \u2026 \U0001f600", "most": 1e2}}
TOOL = {
    "name": "search",
    "description": "Finds lines.",
    "input_schema": {
        "type": "object",
        "properties": {"words": {"type": "string", "maxLength": 200}, "most": {"type": "integer"}},
        "required": ["words", "most"],
        "additionalProperties": False,
    },
    "strict": True,
}
ASKED = replace(REQUEST, tools=(TOOL,), cached=True, max_output=16_000)


def playing(calls: int, *faults: dict[str, Any]) -> Script:
    """A turn with this many calls after the other, and the last of TURNS an answer."""
    rules = [
        {"call": "take_turn", "turn": turn, "tools": [SEARCH] * calls} for turn in range(1, TURNS)
    ]
    return Script.model_validate({"rules": [*faults, *rules]})


async def loop(model: Claude, request: ModelRequest, size: int) -> ModelAnswer:
    """Turns until an answer; each call's result has this many bytes."""
    messages: list[Mapping[str, Any]] = [{"role": "user", "content": "Find all about tea."}]
    while True:
        asked = replace(request, messages=tuple(messages))
        try:
            answer = await model.ask(asked)
        except (NotBilled, PossiblyBilled):
            continue
        assert not answer.flaw
        assert await model.count_tokens(asked) >= answer.usage.input_tokens
        if not answer.calls:
            return answer
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "x" * size}
            for call in answer.calls
        ]
        messages.append({"role": "assistant", "content": answer.content})
        messages.append({"role": "user", "content": results})


async def share_of_reads(capabilities: Capabilities, calls: int, **changes: Any) -> float:
    async with Simulator(playing(calls)) as simulator, claude(simulator.url) as model:
        request = replace(ASKED, capabilities=capabilities, **changes)
        answer = await loop(model, request, 20_000 // calls)
        used = simulator.log.calls["take_turn"]
    WorkAnswer.model_validate_json(answer.text)
    assert simulator.log.report()["statuses"] == {"200": TURNS}
    every = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
    return used.cache_read_tokens / every


@pytest.mark.parametrize("calls", rest_long([4, 1, 25]))
async def test_ten_turns_are_read_from_the_cache_whatever_they_call_at_once(calls: int) -> None:
    assert await share_of_reads(FULL, calls) >= 0.8


async def test_a_loop_works_without_a_cache_and_without_native_schemas() -> None:
    assert await share_of_reads(PLAIN, 4) == 0
    assert await share_of_reads(FULL, 4, cached=False) == 0


async def test_faults_between_the_turns_change_nothing_of_what_is_sent() -> None:
    faults = (
        {"turn": 2, "first": 1, "fault": "drop_mid_stream"},
        {"turn": 3, "first": 1, "status": 529},
        {"turn": 5, "first": 1, "fault": "error_mid_stream"},
        {"turn": 8, "first": 1, "fault": "bad_json"},
    )
    async with Simulator(playing(2, *faults)) as simulator, claude(simulator.url) as model:
        await loop(model, replace(ASKED, capabilities=FULL), 1_000)
        log = simulator.log.report()
    # Each turn is one body, and what failed was asked again with the same one.
    assert (log["distinct"], log["delivered"], log["again"]) == (TURNS, TURNS, 0)


async def test_a_turn_that_pauses_goes_on_from_what_came() -> None:
    pause = {"turn": 1, "pause": True}
    request = replace(ASKED, capabilities=FULL)
    first: Mapping[str, Any] = {"role": "user", "content": "Find all about tea."}
    async with Simulator(playing(1, pause)) as simulator, claude(simulator.url) as model:
        paused = await model.ask(replace(request, messages=(first,)))
        half = {"role": "assistant", "content": paused.content}
        answer = await model.ask(replace(request, messages=(first, half)))
    assert (paused.stop_reason, paused.calls) == ("pause_turn", ())
    assert [call["name"] for call in answer.calls] == ["search"]


async def test_calls_of_a_role_at_one_time_read_what_the_first_of_them_wrote() -> None:
    one_shot = replace(REQUEST, capabilities=FULL, cached=True)
    async with Simulator() as simulator, claude(simulator.url) as model:
        first = await model.ask(one_shot)
        others = [await model.ask(replace(one_shot, prompt=f"Part {n}.")) for n in range(3)]
    assert first.usage.cache_write_tokens > 512
    assert {each.usage.cache_write_tokens for each in others} == {0}
    assert {each.usage.cache_read_tokens for each in others} == {first.usage.cache_write_tokens}
