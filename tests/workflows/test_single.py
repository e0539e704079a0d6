"""A plan of one subtask: its finding is the answer. The `runs` fixture replays every history."""

from __future__ import annotations

import pytest

from conftest import Runs
from holdfast.contracts import AnswerForm, Goal, Plan
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

SAID = "One subtask: its finding is the answer."


def goal(plan: Plan | None = None, **fields: object) -> Goal:
    wanted = {"text": "What is a monorepo, in a sentence?", "use_models": True, "plan": plan}
    return Goal.model_validate({**wanted, **fields})


async def test_the_finding_of_a_plans_only_subtask_is_the_answer_and_nobody_writes_it_anew(
    runs: Runs,
) -> None:
    one = subtask("t1", why="One question, and nothing to look up.")
    model = ScriptedModel({"plan": [plans(one)], "t1": [works("One repository.", confidence=83)]})
    report = await runs.run(goal(), model)
    assert report.status == "complete" and report.gaps == ()
    assert (report.answer, report.confidence) == ("One repository.", 83)
    assert report.findings[0].sources == ("input",)
    assert f"{SAID} Why one: One question, and nothing to look up." in report.notes
    assert model.heard == ["plan", "t1"] and report.model_calls == 2
    assert await runs.activities() == ["prepare", "plan-1", "work-t1-1"]
    # What the planner says of the answer reaches the one who writes it.
    assert "Answer in a sentence." in model.requests[1].prompt


async def test_a_goal_for_one_agent_costs_one_call(runs: Runs) -> None:
    plan = Plan.single("What is a monorepo?", "analyst")
    model = ScriptedModel({"the whole goal": [works("One repository.")]})
    report = await runs.run(goal(plan), model)
    assert (report.status, report.answer) == ("complete", "One repository.")
    assert await runs.activities() == ["prepare", "work-t1-1"] and report.model_calls == 1


async def test_a_review_of_the_only_subtask_stays_and_a_bad_result_is_tried_again(
    runs: Runs,
) -> None:
    plan = ready(subtask("t1", acceptance_criteria="is one sentence"))
    model = ScriptedModel(
        {
            "t1": [works("two. sentences."), works("one sentence")],
            "review": [{"verdict": "fail", "why": "two"}, {"verdict": "pass", "why": "one"}],
        }
    )
    report = await runs.run(goal(plan), model)
    assert report.answer == "one sentence" and report.model_calls == 4


async def test_an_only_subtask_without_a_complete_finding_has_no_answer_paid(runs: Runs) -> None:
    gives_up = works("so far", status="escalate", reason="timeout", why="too much")
    model = ScriptedModel({"t1": [gives_up] * 3})
    report = await runs.run(goal(ready(subtask("t1")), limits={"replans": 0}), model)
    assert report.status == "failed" and set(model.heard) == {"t1"}
    assert not any(SAID in note for note in report.notes)


async def test_an_answer_that_is_data_is_still_written_from_the_only_finding(runs: Runs) -> None:
    table = AnswerForm(kind="table", columns=("name",))
    rows = {"columns": ["name"], "rows": [["C [t1]"]]}
    model = ScriptedModel({"t1": [works("C")], "synthesize": [synthesizes("") | {"answer": rows}]})
    report = await runs.run(goal(ready(subtask("t1")), form=table), model)
    assert report.document is not None and model.heard == ["t1", "synthesize", "critique"]


async def test_a_plan_that_grows_to_two_is_synthesized(runs: Runs) -> None:
    fails = works("", status="escalate", reason="out_of_scope", why="needs prices first")
    change = {"op": "add", "subtask": subtask("t2"), "why": "prices are missing"}
    model = ScriptedModel(
        {
            "t1": [fails] * 3,
            "replan": [{"changes": [change]}],
            "t2": [works("prices")],
            "synthesize": [synthesizes("Prices [t2].")],
        }
    )
    report = await runs.run(goal(ready(subtask("t1", role="analyst"))), model)
    assert report.answer == "Prices [t2]." and model.heard[-2:] == ["synthesize", "critique"]
