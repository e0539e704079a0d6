"""Of calls that begin with the same long material one goes first, so that the others find it in
the endpoint's cache.
"""

from __future__ import annotations

import asyncio

import pytest

from conftest import Runs
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Capabilities, Goal, GoalInput
from parameters import rest_long
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio
HANDBOOK = "All of the handbook. " * 2_000
PARTS = ("t1", "t2", "t3")


async def with_caching() -> Capabilities:
    return Capabilities(caching=True)


async def without_caching() -> Capabilities:
    return Capabilities()


def goal(text: str) -> Goal:
    plan = ready(*(subtask(name, inputs=["handbook"]) for name in PARTS))
    told = GoalInput(name="handbook", kind="text", value=text)
    return Goal(text="Read it", plan=plan, inputs=(told,), use_models=True)


def model(first: asyncio.Event) -> ScriptedModel:
    script = {name: [works(name)] for name in PARTS[1:]}
    return ScriptedModel({"t1": [first, works("t1")], **script, "synthesize": [synthesizes("x")]})


async def test_one_of_equal_beginnings_goes_first_and_the_others_are_marked_as_well(
    runs: Runs,
) -> None:
    first = asyncio.Event()
    asked = model(first)
    async with runs.worker(asked, capabilities=with_caching), asyncio.timeout(60):
        handle = await runs.start(goal(HANDBOOK), skipping=False)
        await asked.asked("t1")
        await asyncio.sleep(0.3)
        assert asked.heard == ["t1"], "the others wait for it"
        first.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    works_asked = asked.requests[:3]
    assert [each.shared for each in works_asked] == ["5m"] * 3
    beginnings = {each.prompt[: each.common] for each in works_asked}
    assert len(beginnings) == 1 and HANDBOOK in beginnings.pop()


async def test_the_others_go_as_soon_as_the_answer_to_the_first_begins(runs: Runs) -> None:
    first = asyncio.Event()
    asked = model(first)
    async with runs.worker(asked, capabilities=with_caching), asyncio.timeout(60):
        handle = await runs.start(goal(HANDBOOK), skipping=False)
        await asked.asked("t1")
        asked.requests[0].begins()
        await asked.asked("t2", "t3")
        assert not first.is_set(), "the first is still being answered"
        first.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert [each.shared for each in asked.requests[:3]] == ["5m"] * 3


@pytest.mark.parametrize(("text", "caching"), rest_long([("Short.", True), (HANDBOOK, False)]))
async def test_what_no_cache_would_keep_is_asked_all_at_once(
    runs: Runs, text: str, caching: bool
) -> None:
    first = asyncio.Event()
    asked = model(first)
    understood = with_caching if caching else without_caching
    async with runs.worker(asked, capabilities=understood), asyncio.timeout(60):
        handle = await runs.start(goal(text), skipping=False)
        await asked.asked(*PARTS)
        first.set()
        await outcome(handle)
    assert not any(each.shared for each in asked.requests)
