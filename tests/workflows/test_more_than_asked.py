"""Endpoints whose outputs are not structured: an answer with more in it than was asked for costs no
call and loses no finding.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_agents import ROLE, catalogue, goal

from conftest import Runs
from holdfast.contracts import Goal
from scripted import ScriptedModel, calls, plans, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

FORM = """result:
  type: object
  required: [limit]
  properties:
    limit: {type: integer}
---
"""
LEFT_OUT = "what its form does not know was left out of its answer: "


async def test_no_call_is_paid_again_for_a_property_that_nobody_asked_for(runs: Runs) -> None:
    more: dict[str, Any] = {"thoughts": "hm"}
    issue = {"severity": "info", "problem": "Dull.", "fix": "", "line": 3}
    model = ScriptedModel(
        {
            "plan": [
                plans(subtask("t1", acceptance_criteria="is good") | more, subtask("t2")) | more
            ],
            "t1": [works("one", **more)],
            "t2": [works("two")],
            "review": [{"verdict": "pass", "why": "", **more}],
            "synthesize": [synthesizes("One [t1].", **more)],
            "critique": [{"issues": [issue], **more}],
        }
    )
    report = await runs.run(Goal(text="Compare", use_models=True), model)
    assert report.status == "complete", report.gaps
    assert report.model_calls == 6
    told = [note for note in report.notes if LEFT_OUT in note]
    assert any("thoughts (work-t1-1" in note for note in told), report.notes
    assert any("issues[0].line, thoughts (critique-1)" in note for note in told), report.notes


async def test_an_agents_finding_as_data_is_kept_without_what_its_form_does_not_know(
    runs: Runs,
) -> None:
    answer = works({"limit": 40, "unit": "minute"}, sources=["repo/notes.md"])
    model = ScriptedModel(
        {
            "t1": [calls(("read_file", {"file_path": "repo/notes.md"})), answer],
            "synthesize": [synthesizes("40 a minute [t1].")],
        }
    )
    role = ROLE.replace("---\nYou read.", f"{FORM}You read.")
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, role))
    assert report.status == "complete", report.gaps
    assert report.findings[0].data == {"limit": 40}
    assert any(f"{LEFT_OUT}result.unit" in note for note in report.notes), report.notes
    assert report.model_calls == 4, "two turns, the synthesis and its critic"
