"""A long finding is handed on in fewer words: as claims with sources, and the rest can be read."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Runs
from holdfast.contracts import Claim, Goal, GoalInput, Report
from holdfast.replaying.replay import replay
from holdfast.workflows import WORKFLOWS
from scripted import ScriptedModel, calls, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

LONG = "a detail of the matter " * 1_000 + "The end: 40 a minute."


def goal(*subtasks: Any, **fields: Any) -> Goal:
    plan = ready(*subtasks)
    return Goal.model_validate(
        {"text": "Find the limit", "use_models": True, "plan": plan, **fields}
    )


def first_turn(model: ScriptedModel, what: str) -> str:
    """What an agent is asked first."""
    return str(model.requests[model.heard.index(what)].messages[0]["content"])


async def below(runs: Runs, report: Report, subtask_id: str) -> list[str]:
    """The activities of an agent's first segment, whose history is replayed."""
    handle = runs.client.get_workflow_handle(f"{report.run_id}.{subtask_id}.1")
    history = await handle.fetch_history()
    assert await replay(history, WORKFLOWS, runs.store) == ()
    return [
        event.activity_task_scheduled_event_attributes.activity_id
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


async def test_dependents_of_a_long_finding_have_its_claims_and_read_the_whole_by_a_tool(
    runs: Runs,
) -> None:
    there = {"subtask": "t1", "from_character": len(LONG) - 21}
    model = ScriptedModel(
        {
            "t1": [works(LONG)],
            "digest": [digests("The limit is stated.", "notes.md:7")],
            "t2": [calls(("read_finding", there)), works("40 a minute")],
            "t3": [works("three")],
            "synthesize": [synthesizes("40 a minute [t2].")],
        }
    )
    wanted = goal(subtask("t1"), subtask("t2", "t1"), subtask("t3", "t1"))
    report = await runs.run(wanted, model)
    assert report.status == "complete", report.gaps
    assert report.findings[0].content == LONG
    claims = (Claim(claim="The limit is stated.", sources=("notes.md:7",)),)
    assert report.findings[0].claims == claims
    assert report.findings[0].digest == "- The limit is stated. (notes.md:7)"
    for what in ("t2", "t3"):
        asked = first_turn(model, what)
        assert "in fewer words: read_finding reads the whole" in asked
        assert "The limit is stated. (notes.md:7)" in asked and len(asked) < 5_000
    assert await below(runs, report, "t2") == ["turn-1", "tool-1-1", "turn-2"]
    told = next(each for each in model.requests if len(each.messages) == 3).messages[2]["content"]
    assert "The end: 40 a minute." in told[0]["content"]
    assert "This is the end of it." in told[0]["content"]
    assert model.heard.count("digest") == 1, "one for all who read it, the synthesis too"
    assert "t1 is long: t2, t3 had its digest, and could read the whole." in report.notes
    assert report.model_calls == 7


async def test_without_a_digest_the_beginning_is_handed_on_and_said_to_be_no_more(
    runs: Runs,
) -> None:
    model = ScriptedModel(
        {
            "t1": [works(LONG)],
            "digest": [{"claims": []}] * 3,
            "t2": [works("two")],
            "synthesize": [synthesizes("two [t2]")],
        }
    )
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1")), model)
    assert report.status == "complete"
    asked = first_turn(model, "t2")
    assert "only its beginning: read_finding reads the whole" in asked
    assert f"[cut: {len(LONG)} bytes in all]" in asked and len(asked) < 10_000
    assert "t1 is long: t2 had only its beginning, and could read the whole." in report.notes
    assert any(
        each.startswith("digest was left out: claims: there is none") for each in report.notes
    )


async def test_a_digest_that_the_cap_does_not_cover_is_not_waited_for(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t1": [works(LONG)],
            "t2": [works("two")],
            "synthesize": [synthesizes("two [t2]")],
        }
    )
    limits = {"model_calls": 3}
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1"), limits=limits), model)
    assert model.heard == ["t1", "t2", "synthesize"]
    assert "t1 is long: t2 had only its beginning, and could read the whole." in report.notes


async def test_an_agent_with_tools_of_its_own_keeps_them_beside_the_one_that_reads_a_finding(
    runs: Runs,
) -> None:
    (runs.folder / "papers").mkdir()
    (runs.folder / "papers/notes.md").write_text("The limit is 40 a minute.\n")
    given = GoalInput(name="papers", kind="folder", value=str(runs.folder / "papers"))
    model = ScriptedModel(
        {
            "t1": [works(LONG)],
            "digest": [digests("The limit is stated.")],
            "t2": [works("40")],
            "synthesize": [synthesizes("40 [t2]")],
        }
    )
    wanted = goal(subtask("t1"), subtask("t2", "t1", inputs=["papers"]), inputs=[given])
    report = await runs.run(wanted, model)
    assert report.findings[1].status == "complete"
    names = [spec["name"] for spec in model.requests[model.heard.index("t2")].tools]
    assert {"read_finding", "list_files", "read_result"} <= {*names}


async def test_a_finding_that_is_short_enough_is_handed_on_whole_in_one_call(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "t1": [works("short")],
            "t2": [works("two")],
            "synthesize": [synthesizes("two [t2]")],
        }
    )
    report = await runs.run(goal(subtask("t1"), subtask("t2", "t1")), model)
    request = model.requests[model.heard.index("t2")]
    assert not request.tools and "short" in request.prompt and "read_finding" not in request.prompt
    assert not [each for each in report.notes if "is long" in each]
