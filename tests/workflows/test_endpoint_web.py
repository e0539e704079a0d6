"""The endpoint's own web tools: priced by the search, bounded, and kept as they came."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from test_agents import catalogue, goal, segments

from conftest import Runs
from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude, _answer
from holdfast.activities.claude.failures import Exchange
from holdfast.activities.claude.passage import Passage
from holdfast.activities.claude.stream import Transcript
from holdfast.activities.model_endpoint import web_of_endpoint
from holdfast.activities.turns.conversation import is_paused
from holdfast.contracts import Capabilities, Report, policies
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator
from holdfast.untrusted.known_secrets import KnownSecrets

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Reads and searches
model: haiku
tools: read_file, web_search, web_fetch
---
You read.
"""
READS = {"name": "read_file", "input": {"file_path": "repo/notes.md"}}
SEARCH = Decimal("0.01")


async def of_endpoint() -> Capabilities:
    """What the API understands, with its own web tools in use."""
    return Capabilities(caching=True, web=True)


async def without() -> Capabilities:
    return Capabilities(caching=True)


@dataclass
class Heard:
    """What left, and what came."""

    requests: list[ModelRequest] = field(default_factory=list)
    answers: list[ModelAnswer] = field(default_factory=list)
    report: Report | None = None
    simulator: Any = None


async def run(runs: Runs, *rules: Rule, capabilities: Any = of_endpoint, **fields: Any) -> Heard:
    """A run of one reader against a server with these rules."""
    heard = Heard()
    prices = Prices.of(Settings(_env_file=None))

    class Recorded(Claude):
        async def ask(self, request: ModelRequest) -> ModelAnswer:
            answer = await super().ask(request)
            if request.tools:
                heard.requests.append(request)
                heard.answers.append(answer)
            return answer

    async with Simulator(Script(seed=7, rules=rules)) as simulator:
        model = Recorded(key="scripted", base_url=simulator.url, price=prices.price)
        heard.report = await runs.run(
            goal(runs, **fields),
            model,
            catalogue=catalogue(runs, ROLE),
            capabilities=capabilities,
            endpoint_web=capabilities is of_endpoint,
        )
        await model.aclose()
        heard.simulator = simulator.log
    return heard


async def test_searches_of_the_endpoint_are_in_the_bill_and_go_back_exactly_as_they_came(
    runs: Runs,
) -> None:
    heard = await run(
        runs,
        Rule(call="take_turn", turn=1, searches=2, tools=(READS,)),
        Rule(call="take_turn", turn=2, pause=True),
        Rule(call="take_turn", turn=3, searches=1),
    )
    report = heard.report
    assert report is not None and report.status == "complete", report and report.gaps
    assert heard.simulator.statuses == {200: 3}, "nothing that was sent was refused"
    first = {each["name"]: each for each in heard.requests[0].tools}
    assert first["web_search"]["type"] == "web_search_20250305"
    assert first["web_search"]["max_uses"] == policies.WEB_SEARCHES
    assert first["web_fetch"]["max_content_tokens"] == policies.WEB_PAGE_TOKENS
    assert "input_schema" in first["read_file"]
    # Two, the one that the turn had paused for, and one beside the answer.
    assert report.usage.searches == heard.simulator.usage.searches == 4
    assert report.dollars is not None and heard.simulator.dollars > 4 * SEARCH
    # What a turn had paused for is a request of the same call, which is rounded once.
    assert abs(report.dollars - heard.simulator.dollars) < Decimal("0.00001")
    came = [json.dumps(list(each.raw["content"])) for each in heard.answers]
    assert "encrypted_content" in came[0] and '"srvtoolu' in came[0]
    for place, request in enumerate(heard.requests):
        said = [each["content"] for each in request.messages if each["role"] == "assistant"]
        assert list(map(json.dumps, said)) == came[:place]
    done = [each for segment in await segments(runs, report) for each in segment]
    assert sorted(done) == ["tool-1-1", "turn-1", "turn-2", "turn-3"], "no search is a call of ours"
    # What the turn paused at is gone on with by the endpoint: nothing is said to it.
    assert [each["role"] for each in heard.requests[2].messages][-1] == "assistant"


async def test_no_more_searches_are_made_in_a_turn_than_were_reserved(runs: Runs) -> None:
    heard = await run(runs, Rule(call="take_turn", searches=9))
    report = heard.report
    # It opens nothing of its input.
    assert report is not None and report.status == "complete_with_gaps"
    assert report.usage.searches == policies.WEB_SEARCHES
    assert "max_uses_exceeded" in json.dumps(heard.answers[0].raw["content"])


@pytest.mark.long
async def test_a_turn_that_pauses_before_the_last_one_is_told_nothing(runs: Runs) -> None:
    limits = {"turns_per_agent": 2}
    heard = await run(runs, Rule(call="take_turn", turn=1, pause=True), limits=limits)
    report = heard.report
    assert report is not None and report.status == "complete_with_gaps"
    assert set(heard.simulator.statuses) == {200}
    assert "last turn" not in json.dumps(heard.requests[1].messages)


async def test_the_cap_holds_with_searches_that_read_the_prompt_again(runs: Runs) -> None:
    rules = [Rule(call="take_turn", turn=each, searches=3, tools=(READS,)) for each in range(1, 9)]
    heard = await run(runs, *rules, limits={"dollars": "0.6", "replans": 0})
    report = heard.report
    assert report is not None and report.dollars is not None
    assert heard.simulator.usage.searches >= 3
    assert report.dollars == heard.simulator.dollars <= Decimal("0.6")
    for request, answer in zip(heard.requests, heard.answers, strict=True):
        price = Prices.of(Settings(_env_file=None)).price(request.model, answer.usage)
        assert price is not None and price <= Decimal("0.6")


async def test_where_the_endpoint_has_none_the_tools_are_ours(runs: Runs) -> None:
    heard = await run(runs, Rule(call="take_turn", searches=2), capabilities=without)
    offered = {each["name"]: each for each in heard.requests[0].tools}
    assert "type" not in offered["web_fetch"] and "input_schema" in offered["web_fetch"]
    assert "web_search" not in offered, "no provider is set"
    assert heard.report is not None and heard.report.usage.searches == 0


def test_a_turn_has_paused_as_long_as_a_search_has_no_result() -> None:
    own = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    assert is_paused([own]) and not is_paused([own, found]) and not is_paused([])


# ---------------------------------------------------------------- counting, and where it is off


def heard_of(usage: dict[str, Any] | None) -> Transcript:
    """A message with two searches and its answer, with the endpoint's last count."""
    own = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    before = {"type": "text", "text": "I look for {it}."}
    said = {"type": "text", "text": '{"status": "complete"}'}
    content = [before, own, found, {**own, "id": "t"}, {**found, "tool_use_id": "t"}, said]
    transcript = Transcript()
    counted = {"input_tokens": 10, "output_tokens": 5, **(usage or {})}
    transcript.load(
        json.dumps(
            {"type": "message", "content": content, "stop_reason": "end_turn", "usage": counted}
        )
    )
    return transcript


@pytest.mark.parametrize(
    ("usage", "searches"),
    [
        ({"server_tool_use": {"web_search_requests": 2}}, 2),
        ({"server_tool_use": {"web_search_requests": 1}}, 1),
        ({}, 2),
        ({"server_tool_use": None}, 2),
        ({"server_tool_use": {"web_search_requests": None}}, 2),
    ],
)
async def test_searches_count_as_the_endpoint_says_and_else_as_they_are_seen(
    usage: dict[str, Any], searches: int
) -> None:
    transcript = heard_of(usage)
    assert transcript.usage(100, 100).searches == searches
    assert not transcript.absurd


async def test_a_count_of_searches_that_cannot_be_is_none() -> None:
    assert heard_of({"server_tool_use": {"web_search_requests": -1}}).absurd
    assert heard_of({"server_tool_use": {"web_search_requests": True}}).absurd


async def test_words_before_a_search_are_no_part_of_the_answer() -> None:
    request = ModelRequest(model="m", system="", prompt="p", schema={}, max_output=100)
    exchange = Exchange(request, 10, Passage(1_000), heard_of(None))
    assert _answer(exchange, KnownSecrets([])).text == '{"status": "complete"}'


async def test_a_search_without_a_price_is_not_left_to_the_endpoint() -> None:
    on = Settings(_env_file=None, endpoint_web=True)
    assert web_of_endpoint(on, Prices.of(on))
    assert not web_of_endpoint(Settings(_env_file=None), Prices.of(on)), "it is off by default"
    unknown = Prices({"haiku": "of-nobody", "sonnet": "claude-sonnet-5-5"})
    assert not web_of_endpoint(on, unknown)
