"""Roles that a planner composes, in whole runs. The `runs` fixture replays every history."""

from __future__ import annotations

import pytest
from test_supervisor import goal

from conftest import Runs, seen
from holdfast.contracts import ComposedRole, GoalInput, Order
from scripted import ScriptedModel, calls, plans, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio
LISTER = {
    "name": "made-lister",
    "description": "Lists what a folder holds, file by file",
    "tier": "haiku",
    "tools": ["list_files"],
}


def composed(*subtasks: dict[str, object], **fields: object) -> dict[str, object]:
    return {**plans(*subtasks), "roles": [{**LISTER, **fields}]}


async def test_a_role_composed_for_a_plan_works_with_the_tools_it_names_and_no_others(
    runs: Runs,
) -> None:
    folder = runs.folder / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("one")
    notes = GoalInput(name="notes", kind="folder", value=str(folder))
    model = ScriptedModel(
        {
            "plan": [composed(subtask("t1", role="made-lister", inputs=["notes"]))],
            "t1": [calls(("list_files", {})), works("one.md")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(inputs=[notes]), model)
    assert report.status == "complete_with_gaps", "a list of files is no reading"
    assert report.findings[0].tool_calls == 1 and not report.findings[0].failed_calls
    [first, *_] = [each for each in model.requests if each.tools]
    assert {tool["name"] for tool in first.tools} == {"list_files", "read_result"}
    assert "a role that was composed for one plan" in first.system
    assert str(LISTER["description"]) not in first.system, "a planner's words are no system prompt"
    assert "Lists what a folder holds" in str(first.messages)
    assert report.notes[0].startswith("role made-lister is composed for this plan: ")


async def test_a_composed_role_has_the_tools_that_were_approved_without_any_input(
    runs: Runs,
) -> None:
    tools = ["calculate", "run_python"]
    task = subtask("t1", role="made-lister")
    model = ScriptedModel(
        {
            "plan": [composed(task, tools=tools)],
            "t1": [calls(("calculate", {"expression": "6 * 7"})), works("42")],
            "synthesize": [synthesizes("42")],
        }
    )
    report = await runs.run(goal(), model, catalogue=shipped_catalogue())
    assert report.status == "complete" and report.findings[0].tool_calls == 1
    assert "tools calculate, run_python" in report.notes[0]
    [first, *_] = [each for each in model.requests if each.tools]
    assert {tool["name"] for tool in first.tools} == {*tools, "read_result"}


async def test_a_composed_role_that_would_widen_anything_goes_back_to_the_planner(
    runs: Runs,
) -> None:
    task = subtask("t1", role="made-lister")
    model = ScriptedModel(
        {
            "plan": [composed(task, tools=["list_files", "web_fetch"]), composed(task, tools=[])],
            "t1": [works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    refused = model.requests[1].prompt
    assert "roles[0] 'made-lister': tools: list_files: not for composed roles" in refused


async def test_a_composed_role_is_in_the_preview_that_a_person_approves(runs: Runs) -> None:
    model = ScriptedModel(
        {
            "plan": [composed(subtask("t1", role="made-lister"), tools=[])],
            "t1": [works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    async with runs.worker(model):
        handle = await runs.start(goal(approval={"when": "always"}), skipping=False)
        view = await seen(handle, lambda view: view.phase == "approval")
        assert view.preview is not None
        assert view.preview.composed == (
            "role made-lister is composed for this plan: Lists what a folder holds, file by file"
            " (haiku, no tools)",
        )
        await handle.execute_update("approve", Order())
        report = await handle.result()
    assert report.status == "complete"


async def test_a_plan_of_ones_own_may_compose_a_role_too(runs: Runs) -> None:
    plan = ready(subtask("t1", role="made-lister"))
    role = ComposedRole.model_validate({**LISTER, "tools": ()})
    plan = plan.model_copy(update={"roles": (role,)})
    model = ScriptedModel({"t1": [works("one")], "synthesize": [synthesizes("done")]})
    report = await runs.run(goal(plan=plan), model)
    assert report.status == "complete"
    assert report.plan is not None and report.plan.roles == (role,)


async def test_a_composed_role_that_gives_up_hands_its_work_to_the_common_one(runs: Runs) -> None:
    gives_back = works("", status="escalate", reason="out_of_scope", why="not mine")
    model = ScriptedModel(
        {
            "plan": [composed(subtask("t1", role="made-lister"), tools=[])],
            "t1": [gives_back, works("one")],
            "synthesize": [synthesizes("done")],
        }
    )
    report = await runs.run(goal(), model)
    assert report.status == "complete"
    assert [each.role for each in report.findings[0].tries] == ["", "analyst"]
    assert "composed for one plan" not in model.requests[2].system


async def test_a_composed_role_is_told_with_the_tools_that_it_has_only_for_its_inputs(
    runs: Runs,
) -> None:
    (runs.folder / "sales.csv").write_text("region,amount\nNorth,1\n")
    sales = GoalInput(name="sales", kind="file", value=str(runs.folder / "sales.csv"))
    task = subtask("t1", role="made-lister", inputs=["sales"])
    model = ScriptedModel(
        {"plan": [composed(task, tools=["query_data", "calculate"])], "t1": [works("one")]}
    )
    report = await runs.run(goal(inputs=[sales]), model, catalogue=shipped_catalogue())
    assert report.status == "complete"
    assert report.notes[0].endswith(
        "(haiku, tools calculate; query_data for inputs that they read)."
    )
    [first] = [each for each in model.requests if each.tools]
    assert {tool["name"] for tool in first.tools} == {"query_data", "calculate", "read_result"}
