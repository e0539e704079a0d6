"""An endpoint that cannot be reached costs nothing: the run waits, says so, and goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal

import pytest

from conftest import Handle, Runs, seen
from holdfast.contracts.search import MEMO_DOLLARS
from outage import goal, paid, waits
from scripted import (
    ADDRESS,
    Line,
    Lost,
    digests,
    found,
    lost,
    plans,
    subtask,
    synthesizes,
    works,
)

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- wherever it strikes


async def test_a_call_of_any_kind_is_asked_again_when_the_endpoint_is_found(runs: Runs) -> None:
    """One run that loses it at the first call of every kind."""
    calls_of = ("review", "refine", "replan", "digest", "judge", "synthesize", "critique")
    struck = ("plan", "t1", *calls_of)
    fails = works("", status="failed", why="closed")
    extra = {"op": "add", "subtask": subtask("t9"), "why": "t2 failed"}
    lines: dict[str, list[Line]] = {
        "plan": [
            plans(subtask("t1", acceptance_criteria="is good"), subtask("t2"), subtask("t3", "t2"))
            | {"strategy": "select"}
        ],
        "t1": [works("one " * 3_000)],
        "t2": [fails, fails, fails],
        "t9": [works("nine")],
        "review": [{"verdict": "pass", "why": "good"}],
        "refine": [{"instruction": "Search again for part t2 of the goal"}],
        "replan": [{"changes": [extra]}],
        "digest": [digests("one")],
        "judge": [{"winner": "none", "why": "alike"}],
        "synthesize": [synthesizes("done")],
        "critique": [{"issues": []}],
    }
    calls = sum(map(len, lines.values()))
    model = found(lines | {kind: [lost(), *lines[kind]] for kind in struck})
    report = await runs.run(goal(), model)
    assert report.answer == "done"
    for kind in struck:
        assert model.heard.count(kind) == len(lines[kind]) + 1, kind
    assert paid(report) == calls
    # Calls of t1 and t2 that lose it at the same time share a look.
    assert len(struck) - 2 <= model.looks <= len(struck) and model.most_looking == 1


async def test_of_five_calls_that_lose_it_one_look_waits_for_all_and_nothing_is_billed(
    runs: Runs,
) -> None:
    ids = [f"t{number}" for number in range(1, 6)]
    model = Lost({**{id: [lost(), works(id)] for id in ids}, "synthesize": [synthesizes("done")]})
    async with runs.worker(model):
        handle = await runs.start(goal(*map(subtask, ids)), skipping=False)
        for id in ids:
            await model.asked(id)
        # The last of the five may be told only now that nobody is there.
        while len((await handle.describe()).raw_description.pending_activities) > 1:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.02)
        await waits(handle)
        described = await handle.describe()
        booked = await described.memo_value(MEMO_DOLLARS, None)
        assert Decimal(booked) > 0, "lists read no history"
        model.back.set()
        report = await handle.result()
    assert report.status == "complete"
    assert paid(report) == 7
    assert model.looks == model.most_looking == 1
    assert [each for each in await runs.activities() if each.startswith("reach")] == ["reach-1"]


@pytest.mark.long
async def test_a_call_that_was_on_its_way_when_the_outage_began_is_waited_for(runs: Runs) -> None:
    late = asyncio.Event()
    model = Lost(
        {
            "t1": [lost(), works("one")],
            "t2": [late, works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal(subtask("t1"), subtask("t2")), skipping=False)
        await model.asked("t2")
        await waits(handle)
        late.set()
        # Its answer shows that somebody is there.
        await seen(handle, lambda view: view.rows[1].status == "complete")
        model.back.set()
        report = await handle.result()
    assert report.status == "complete" and paid(report) == 4
    assert model.heard.count("t2") == 1


# ---------------------------------------------------------------- time


async def test_fifty_minutes_pass_and_a_deadline_of_a_minute_stands_still(runs: Runs) -> None:
    model = found(
        {"t1": [lost(), works("one")], "synthesize": [synthesizes("done")]},
        away=[timedelta(minutes=50)],
    )
    report = await runs.run(goal(subtask("t1"), limits={"deadline_seconds": 60}), model)
    assert report.status == "complete"
    assert report.started and report.finished
    assert report.finished - report.started > timedelta(minutes=50)


async def test_after_its_limit_the_run_ends_and_says_since_when_nobody_was_there(
    runs: Runs,
) -> None:
    model = found({"t1": [works("one")], "t2": [lost()]}, away=[timedelta(minutes=20)] * 9)
    wanted = goal(subtask("t1"), subtask("t2", "t1"), limits={"outage_seconds": 600})
    report = await runs.run(wanted, model)
    assert report.status == "complete_with_gaps"
    gap, answer = report.gaps
    assert answer.why.startswith("a template merged the findings, because work was stopped")
    assert f"the endpoint {ADDRESS} cannot be reached since 20" in gap.why
    assert "ANTHROPIC_BASE_URL" in gap.why
    assert paid(report) == 1


@pytest.mark.parametrize("away", [[], [timedelta(minutes=20)] * 9], ids=["found", "not found"])
async def test_a_run_that_was_stopped_at_its_budget_waits_for_whoever_writes_its_answer(
    runs: Runs, away: list[timedelta]
) -> None:
    lines: dict[str, list[Line]] = {"t1": [works("one")]}
    lines["synthesize"] = [lost(), synthesizes("done")]
    model = found(lines, away=away)
    limits = {"model_calls": 2, "outage_seconds": 600, "concurrency": 1}
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1"), limits=limits), model)
    assert report.status == "budget_stopped"
    if away:
        assert "cannot be reached since" in " ".join(gap.why for gap in report.gaps)
    else:
        assert report.answer == "done" and model.looks == 1


async def test_a_run_that_waits_for_no_endpoint_ends_at_once(runs: Runs) -> None:
    model = found({"t1": [lost()]})
    report = await runs.run(goal(subtask("t1"), limits={"outage_seconds": 0, "replans": 0}), model)
    assert report.status == "failed"
    assert f"{ADDRESS} is not reachable" in report.gaps[0].why
    assert model.looks == 0 and paid(report) == 0


async def test_a_name_that_nobody_has_is_said_at_once_with_the_cure(runs: Runs) -> None:
    model = found({"plan": [lost(mistaken=True)]})
    report = await runs.run(goal(), model)
    assert report.status == "failed"
    said = " ".join((*(gap.why for gap in report.gaps), *report.notes, report.answer))
    assert f"{ADDRESS}: no host has this name" in said and "check ANTHROPIC_BASE_URL" in said
    assert model.looks == 0 and paid(report) == 0


async def test_a_name_that_goes_away_after_a_first_answer_is_waited_for(runs: Runs) -> None:
    model = found(
        {
            "t1": [works("one")],
            "t2": [lost(mistaken=True), works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1")), model)
    assert report.status == "complete" and model.looks == 1


@pytest.mark.long
async def test_each_time_it_is_lost_again_the_look_is_later_until_an_answer_comes(
    runs: Runs,
) -> None:
    model = found(
        {
            "t1": [lost(), lost(), works("one")],
            "t2": [lost(), works("two")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1")), model)
    assert report.status == "complete"
    assert [each async for each in pauses(runs.handles[-1])] == [0, 4, 0]


async def pauses(handle: Handle) -> AsyncIterator[float]:
    history = await handle.fetch_history()
    for event in history.events:
        asked = event.activity_task_scheduled_event_attributes
        if asked.activity_id.startswith("reach"):
            yield json.loads(asked.input.payloads[1].data).get("after_seconds", 0)
