"""The boards that the Web UI asks for: drawn for whoever looks, of a run and of its agents."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowHandle

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Goal, GoalInput
from holdfast.contracts.view import RunView
from holdfast.rendering.board import board
from holdfast.serving.throttle_notes import ShowThrottles
from holdfast.workflows import supervisor
from repositories import Repository
from scripted import ScriptedModel, calls, ready, subtask, synthesizes, works
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio

READER = """---
name: reader
description: Reads what it is given
model: haiku
tools: read_file
---
You read.
"""


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    """The board, as the Web UI asks for it."""
    metadata: WorkflowMetadata = await handle.query(
        "__temporal_workflow_metadata", result_type=WorkflowMetadata
    )
    return metadata.current_details


async def test_a_board_is_drawn_when_somebody_asks_and_at_no_event(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def noted(view: RunView) -> str:
        drawn.append(view.phase)
        return board(view)

    monkeypatch.setattr(supervisor, "board", noted)
    model = ScriptedModel({"t1": [works("Just one.")]})
    goal = Goal(text="Compare", plan=ready(subtask("t1")), use_models=True)
    async with runs.worker(model):
        handle = await runs.start(goal)
        await handle.result()
        assert drawn == []
        shown = await details(handle)
        assert drawn == ["closed"]
    assert "**Complete**" in shown and "| t1\N{NO-BREAK SPACE}" in shown and "Just one." in shown


@pytest.mark.long
async def test_what_the_web_ui_asks_of_a_wide_run_comes_whole_to_a_client_without_our_store(
    runs: Runs,
) -> None:
    subtasks = [subtask(f"t{number}", title=f"{number} {'word ' * 30}") for number in range(50)]
    lines = {each["id"]: [works("one " * 50)] for each in subtasks}
    model = ScriptedModel({**lines, "synthesize": [synthesizes("All [t1].")]})
    goal = Goal(text="Compare", plan=ready(*subtasks), use_models=True)
    async with runs.worker(model):
        handle = await runs.start(goal)
        await handle.result()
        stranger = runs.env.client.get_workflow_handle(handle.id)
        shown = await details(stranger)
        view = await stranger.query("view")
    assert len(shown) > 6 * 1024 and "| t39\N{NO-BREAK SPACE}" in shown
    assert [row["id"] for row in view["rows"]] == [each["id"] for each in subtasks]


async def test_an_agent_shows_its_own_board_also_where_throttles_are_shown(runs: Runs) -> None:
    home = runs.folder / "home" / "roles"
    home.mkdir(parents=True)
    (home / "reader.md").write_text(READER)
    extra, shipped = Catalogue.load(runs.folder / "home"), shipped_catalogue()
    catalogue = Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)
    repository = Repository.at(runs.folder / "repo")
    repository.commit({"notes.md": "The limit is 40 a minute.\n"})
    given = GoalInput(name="repo", kind="repository", value=str(repository.path))
    plan = ready(subtask("t1", role="reader", inputs=["repo"]))
    reads = calls(("read_file", {"file_path": "repo/notes.md"}))
    model = ScriptedModel({"t1": [reads, works("40")], "synthesize": [synthesizes("40 [t1].")]})
    goal = Goal(text="Find the limit", plan=plan, use_models=True, inputs=(given,))
    slowed = (ShowThrottles(lambda: {"haiku": "haiku throttled"}),)
    async with runs.worker(model, catalogue=catalogue, interceptors=slowed):
        report = await (await runs.start(goal)).result()
        agent = runs.client.get_workflow_handle(f"{report.run_id}.t1.1")
        assert "1 turn, 1 tool call" in await details(agent)
