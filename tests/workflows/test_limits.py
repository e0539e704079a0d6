"""Sizes that break a naive design: answers and fan-outs beyond what history and gRPC carry."""

from __future__ import annotations

import pytest

from conftest import Runs
from holdfast.contracts import Goal, GoalInput, Limits
from scripted import ScriptedModel, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

FOUR_MIB = 4 * 1024 * 1024


async def history_bytes(runs: Runs) -> int:
    description = await runs.handles[-1].describe()
    return description.raw_description.workflow_execution_info.history_size_bytes


async def test_an_answer_of_three_megabytes_is_kept_whole_and_out_of_history(runs: Runs) -> None:
    huge = "All work and no play. " * 140_000
    assert len(huge) > 3_000_000
    model = ScriptedModel(
        {
            "t1": [works(huge)],
            "t2": [works("short")],
            "digest": [digests("a lot was written")],
            "synthesize": [synthesizes("both")],
        }
    )
    plan = ready(subtask("t1", tier="haiku"), subtask("t2", tier="haiku"))
    limits = Limits(dollars=100, tokens=100_000_000)
    goal = Goal(text="Write a lot", plan=plan, use_models=True, limits=limits)
    report = await runs.run(goal, model)
    assert report.status == "complete"
    assert report.findings[0].content == huge
    assert await history_bytes(runs) < 100_000


async def test_thirty_subtasks_with_300_kb_of_input_each_fan_out_at_once(runs: Runs) -> None:
    book = runs.folder / "book.txt"
    book.write_text("A line of the book.\n" * 15_000)
    assert book.stat().st_size == 300_000
    ids = [f"t{number}" for number in range(1, 31)]
    model = ScriptedModel(
        {**{each: [works(each)] for each in ids}, "synthesize": [synthesizes("all thirty")]}
    )
    plan = ready(*(subtask(each, tier="haiku", inputs=["book"]) for each in ids))
    goal = Goal(
        text="Read the book thirty times",
        plan=plan,
        use_models=True,
        inputs=(GoalInput(name="book", kind="file", value=str(book)),),
        limits=Limits(dollars=100, tokens=100_000_000, concurrency=30),
    )
    report = await runs.run(goal, model)
    assert report.status == "complete"
    assert len(report.findings) == 30
    assert all("A line of the book." in each.prompt for each in model.requests[:30])
    assert await history_bytes(runs) < FOUR_MIB / 10


@pytest.mark.long
async def test_findings_of_300_kb_reach_a_dependent_of_twenty(runs: Runs) -> None:
    ids = [f"t{number}" for number in range(1, 21)]
    model = ScriptedModel(
        {
            **{each: [works(f"{each} " + "x" * 300_000)] for each in ids},
            "last": [works("read them all")],
            "digest": [digests("x")] * 20,
            "synthesize": [synthesizes("done")],
        }
    )
    plan = ready(*(subtask(each, tier="haiku") for each in ids), subtask("last", *ids))
    limits = Limits(dollars=100, tokens=100_000_000, concurrency=20)
    report = await runs.run(Goal(text="Collect", plan=plan, use_models=True, limits=limits), model)
    assert report.findings[-1].content == "read them all"
    assert await history_bytes(runs) < FOUR_MIB / 10


async def test_a_goal_stays_readable_in_history(runs: Runs) -> None:
    words = "a goal of many words " * 2_000
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    plan = ready(subtask("t1", tier="haiku"))
    await runs.run(Goal(text=words, plan=plan, use_models=True), model)
    history = await runs.handles[-1].fetch_history()
    started = history.events[0].workflow_execution_started_event_attributes
    assert words.encode() in started.input.payloads[0].data
