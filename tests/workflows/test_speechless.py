"""An endpoint that answers, and may not be able to say JSON: a run soon stops paying it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from test_agents import NOTES, catalogue
from test_agents import goal as with_tools
from test_teams import catalogue as with_team

from conftest import Runs
from holdfast.contracts import Goal, Plan, Report
from holdfast.rendering.report import to_go_on
from holdfast.rules.speechless import WHERE
from repositories import Repository
from scripted import ScriptedModel, calls, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

HELLO = 'Hello!\n\x1b[2J I am "Otto"' + " and on it goes" * 40
QUOTED = 'the answer holds no JSON: "Hello! \\x1b[2J I am "Otto" and on it goes'


def goal(plan: Plan | None = None) -> Goal:
    return Goal(text="Compare the engines", plan=plan, use_models=True)


def stopped(said: Sequence[str]) -> str:
    """The one line that says so."""
    (line,) = {each for each in said if "may not be able to answer in JSON" in each}
    return line


def advised(report: Report) -> str:
    return " ".join(to_go_on(report, lambda *words: " ".join(words)))


async def test_two_plans_without_any_json_end_the_run_with_one_sentence_that_says_what_came(
    runs: Runs,
) -> None:
    model = ScriptedModel({"plan": [HELLO] * 4})
    report = await runs.run(goal(), model)
    assert (report.status, report.model_calls) == ("failed", 2)
    assert await runs.activities() == ["prepare", "plan-1", "plan-2"]
    said = stopped(report.notes)
    assert QUOTED in said and WHERE in said and len(said) < 400
    assert "Invalid JSON" not in report.model_dump_json()
    assert WHERE in advised(report) and "fork" not in advised(report)


async def test_a_given_plan_without_any_json_stops_before_a_third_call(runs: Runs) -> None:
    model = ScriptedModel({"t1": [HELLO] * 9})
    report = await runs.run(goal(ready(subtask("t1"), subtask("t2", "t1"))), model)
    assert (report.status, report.model_calls) == ("failed", 2)
    assert QUOTED in stopped([each.why for each in report.gaps if each.subtask_id == "t1"])
    assert WHERE in advised(report) and "fork" not in advised(report)


async def test_an_agent_without_any_json_is_asked_twice_and_nothing_after_it(runs: Runs) -> None:
    model = ScriptedModel({"t1": [HELLO] * 9})
    report = await runs.run(with_tools(runs), model, catalogue=catalogue(runs))
    assert (report.status, report.model_calls) == ("failed", 2)
    assert QUOTED in stopped([each.why for each in report.gaps])


@pytest.mark.long
async def test_an_endpoint_that_has_answered_in_json_may_slip_as_often_as_before(
    runs: Runs,
) -> None:
    wrong = json.dumps({"unheard": "of"})
    for first in (plans(subtask("t1", tier="haiku")), wrong):
        answers: dict[str, Any] = {
            "plan": [first, plans(subtask("t1", tier="haiku"))],
            "t1": [HELLO, HELLO, HELLO, works("one")],
            "synthesize": [synthesizes("done")],
        }
        report = await runs.run(goal(), ScriptedModel(answers))
        assert report.status == "complete", report.gaps
        assert [each.tier for each in report.findings[0].tries] == ["haiku", "sonnet"]


@pytest.mark.long
async def test_an_agent_whose_run_has_heard_json_is_mended_twice_as_before(runs: Runs) -> None:
    repository = Repository.at(runs.folder / "repo")
    repository.commit({"notes.md": "The limit is 40 a minute.\n"})
    wanted = with_tools(runs, plan=None)
    answers: dict[str, Any] = {
        "plan": [plans(subtask("t1", role="reader", inputs=["repo"]))],
        "t1": [HELLO, HELLO, works("40 a minute", sources=["repo/notes.md"])],
        "synthesize": [synthesizes("40 a minute [t1].")],
    }
    report = await runs.run(wanted, ScriptedModel(answers), catalogue=catalogue(runs))
    assert report.model_calls == 4 and report.findings[0].content == "40 a minute"


async def test_an_agent_that_has_called_a_tool_can_do_json_and_is_mended_twice(runs: Runs) -> None:
    looks = calls(("read_file", NOTES))
    answers: dict[str, Any] = {
        "t1": [looks, HELLO, HELLO, works("40 a minute", sources=["repo/notes.md"])],
        "synthesize": [synthesizes("40 a minute [t1].")],
    }
    report = await runs.run(with_tools(runs), ScriptedModel(answers), catalogue=catalogue(runs))
    assert report.findings[0].content == "40 a minute" and report.status == "complete"


async def test_a_team_without_any_json_stops_the_run_above_it(runs: Runs) -> None:
    model = ScriptedModel({"plan": [HELLO] * 9, "t2": [HELLO] * 9})
    plan = ready(subtask("t1", role="department"), subtask("t2", "t1"))
    report = await runs.run(goal(plan), model, catalogue=with_team(runs))
    assert (report.status, report.model_calls, report.stopped) == ("failed", 2, "no json")
    assert model.heard == ["plan", "plan"]


@pytest.mark.long
async def test_a_team_below_a_run_that_has_heard_json_may_slip_as_often_as_before(
    runs: Runs,
) -> None:
    team = plans(subtask("a"))
    answers: dict[str, Any] = {
        "t1": [works("one")],
        "plan": [HELLO, HELLO, team],
        "a": [works("a")],
        "synthesize": [synthesizes("the team's"), synthesizes("all of it")],
    }
    plan = ready(subtask("t1"), subtask("t2", "t1", role="department"))
    report = await runs.run(goal(plan), ScriptedModel(answers), catalogue=with_team(runs))
    assert report.status == "complete", report.notes
