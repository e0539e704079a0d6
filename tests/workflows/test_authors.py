"""The model that a finding names is the one that wrote it, whoever else was asked about it."""

from __future__ import annotations

import json

import pytest
from test_agents import catalogue, goal

from conftest import Runs
from holdfast.contracts import Goal
from holdfast.ports import ModelAnswer
from scripted import USAGE, ScriptedModel, calls, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

FAILS = {"verdict": "fail", "why": "the cheapest is not named"}
PASSES = {"verdict": "pass", "why": "it is named"}


async def test_reviewers_and_refiners_are_no_authors(runs: Runs) -> None:
    wanted = subtask("t1", tier="haiku", acceptance_criteria="Names the cheapest engine")
    model = ScriptedModel(
        {
            "plan": [plans(wanted)],
            "t1": [works("fine"), works("all fine"), works("B is the cheapest.")],
            "review": [FAILS, FAILS, PASSES],
            "refine": [{"instruction": "Name the cheapest of part t1 of the goal"}],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(Goal(text="Compare three engines", use_models=True), model)
    [finding] = report.findings
    reviewer = model.requests[model.heard.index("review")].model
    assert [each.tier for each in finding.tries] == ["haiku", "sonnet", "opus"]
    assert finding.model == "claude-opus-5-5" != reviewer


async def test_a_draft_that_no_later_try_bettered_keeps_its_author(runs: Runs) -> None:
    refused = ModelAnswer("", "refusal", "claude-sonnet-5", USAGE, raw={"content": []})
    model = ScriptedModel(
        {
            "plan": [plans(subtask("t1", tier="haiku"), subtask("t2"))],
            "t1": [works("a guess", confidence=10), refused],
            "t2": [works("found")],
            "synthesize": [synthesizes("done")],
        }
    )
    wanted = {"text": "Compare", "use_models": True, "limits": {"tries_per_subtask": 2}}
    report = await runs.run(Goal.model_validate(wanted), model)
    finding = report.findings[0]
    assert (finding.status, finding.content) == ("failed", "a guess")
    assert finding.model == "claude-haiku-5-5"


async def test_an_agent_is_named_after_the_model_that_served_its_answer(runs: Runs) -> None:
    text = json.dumps(works("The limit is 40 a minute.", sources=["repo/notes.md"]))
    raw = {"content": [{"type": "text", "text": text}]}
    model = ScriptedModel(
        {
            "t1": [
                calls(("read_file", {"file_path": "repo/notes.md"})),
                ModelAnswer(text, "end_turn", "claude-haiku-5-5-of-a-gateway", USAGE, raw=raw),
            ],
            "review": [PASSES],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    asked = goal(runs)
    assert asked.plan is not None
    [planned] = asked.plan.subtasks
    planned = planned.model_copy(update={"acceptance_criteria": "Names the limit"})
    plan = asked.plan.model_copy(update={"subtasks": (planned,)})
    report = await runs.run(
        asked.model_copy(update={"plan": plan}), model, catalogue=catalogue(runs)
    )
    assert report.findings[0].model == "claude-haiku-5-5-of-a-gateway"
