"""Previews that have learned from closed runs. The `runs` fixture replays every history."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from conftest import Runs, folded
from holdfast.cli.checks.previews import check_previews
from holdfast.contracts import Goal, Report, Usage
from holdfast.contracts.view import Preview
from holdfast.ports import ModelAnswer
from holdfast.temporal.connection import Target
from holdfast.temporal.past import read_past
from scripted import ScriptedModel, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


async def once(runs: Runs, dice: random.Random) -> tuple[Preview, Report]:
    """Carry out one plan, whose agents write more or less."""

    def answer(text: str) -> ModelAnswer:
        usage = Usage(input_tokens=dice.randint(900, 1_100), output_tokens=dice.randint(700, 900))
        return ModelAnswer(json.dumps(works(text)), "end_turn", "claude-haiku-5-5", usage)

    model = ScriptedModel(
        {"t1": [answer("ten")], "t2": [answer("twenty")], "synthesize": [synthesizes("thirty")]}
    )
    goal = Goal(text="Compare", plan=ready(subtask("t1"), subtask("t2")), use_models=True)
    report = await runs.run(goal, model)
    assert report.status == "complete", report.gaps
    state = await folded(runs.handles[-1])
    assert state is not None and state.estimate is not None
    return state.estimate, report


async def test_a_closed_run_is_told_by_the_server_s_list(runs: Runs) -> None:
    preview, report = await once(runs, random.Random(1))
    (run,) = await read_past(runs.client, runs.queue)
    assert report.dollars is not None and run.paid == report.dollars * 1_000_000
    assert len(run.rows) == len(preview.rows) == 4
    assert await read_past(runs.client, "another queue") == ()
    (check,) = await check_previews(runs.client, Target("", task_queue=runs.queue, embedded=False))
    assert check.detail.startswith("of 1 run ") and "within the range said before" in check.detail


@pytest.mark.long
async def test_after_ten_runs_the_preview_is_within_a_tenth_of_the_bill(runs: Runs) -> None:
    dice = random.Random(7)
    before = [(await once(runs, dice))[0] for _ in range(10)]
    assert [row.past for row in before[0].rows] == [0, 0, 0, 0]
    preview, report = await once(runs, dice)
    assert [row.past for row in preview.rows] == [20, 20, 10, 10]
    assert report.dollars is not None
    assert preview.expected == pytest.approx(report.dollars, rel=Decimal("0.1"))
    assert preview.low is not None and preview.high is not None
    assert preview.low <= report.dollars <= preview.high
