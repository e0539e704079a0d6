"""A plan that code finds vague or needlessly slow goes back to its planner, and what a plan may ask
for beside subtasks is carried out.
"""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Runs
from holdfast.contracts import Goal
from scripted import ScriptedModel, digests, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio


def goal(**fields: Any) -> Goal:
    return Goal.model_validate({"text": "Compare the offices", "use_models": True, **fields})


def planned_twice(first: dict[str, Any], second: dict[str, Any]) -> ScriptedModel:
    return ScriptedModel(
        {
            "plan": [first, second],
            "t1": [works("one")],
            "t2": [works("two")],
            "synthesize": [synthesizes("done [t1]")],
        }
    )


async def test_a_vague_instruction_goes_back_with_what_it_lacks(runs: Runs) -> None:
    vague = plans(subtask("t1", instruction="Analyse all of the data"), subtask("t2"))
    model = planned_twice(vague, plans(subtask("t1"), subtask("t2")))
    report = await runs.run(goal(), model)
    assert report.status == "complete", report.gaps
    again = model.requests[1].prompt
    assert "subtasks[0] 't1': instruction: not concrete; name what it works on" in again


async def test_a_chain_that_nothing_asks_for_goes_back_once_with_its_pair(runs: Runs) -> None:
    second = subtask("t2") | {"depends_on": ["t1"]}
    chain = plans(subtask("t1", title="Costs"), second)
    model = planned_twice(chain, chain)
    report = await runs.run(goal(), model)
    assert report.status == "complete", report.gaps
    assert model.heard.count("plan") == 2, "the planner knows better in the end"
    assert "'t2' waits for 't1', and its instruction does not mention" in model.requests[1].prompt


@pytest.mark.long
async def test_what_depends_on_several_attempts_gets_the_best_of_them(runs: Runs) -> None:
    plan = ready(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))
    model = ScriptedModel(
        {
            "t1": [works("a weak slogan")],
            "t2": [works("a strong slogan")],
            "t3": [works("built on the strong one")],
            "judge": [{"why": "it says what is sold", "winner": "t2"}],
            "synthesize": [synthesizes("done [t3]")],
        }
    )
    choices = (("t1", "t2"),)
    report = await runs.run(goal(plan=plan.model_copy(update={"choices": choices})), model)
    assert report.status == "complete", report.gaps
    built = model.requests[model.heard.index("t3")].prompt
    assert "a strong slogan" in built and "a weak slogan" not in built
    written = model.requests[model.heard.index("synthesize")].prompt
    assert "a weak slogan" not in written
    assert (
        "Of t1, t2, attempts at one question, t2 was chosen: it says what is sold" in report.notes
    )


async def test_a_plan_that_reduces_has_its_findings_condensed_before_they_are_combined(
    runs: Runs,
) -> None:
    plan = ready(subtask("t1"), subtask("t2")).model_copy(update={"strategy": "reduce"})
    model = ScriptedModel(
        {
            "t1": [works("one at length")],
            "t2": [works("two at length")],
            "digest": [digests("both in short", "t1", "t2")],
            "synthesize": [synthesizes("done [t1]")],
        }
    )
    report = await runs.run(goal(plan=plan), model)
    assert report.status == "complete", report.gaps
    written = model.requests[model.heard.index("synthesize")].prompt
    assert "both in short" in written and "at length" not in written


async def test_every_call_of_a_run_is_told_the_day_on_which_it_began(runs: Runs) -> None:
    model = planned_twice(plans(subtask("t1"), subtask("t2")), {})
    await runs.run(goal(today="2026-11-23"), model)
    assert {*model.heard} >= {"plan", "t1", "t2", "synthesize"}
    assert all("Today is 2026-11-23 (UTC)." in each.prompt for each in model.requests)
