"""One worker of several projects: each run has the role, the playbook, the tool and the prices of
its own, however they are called.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from conftest import Runs
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Goal, Report
from holdfast.ports import ModelRequest
from scripted import ScriptedModel, calls, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: sayer
description: Says the word of its house
model: haiku
tools: TOOLS
---
You are of the house NAME.
"""
TOOL = '''
from holdfast import Here, tool
from .words import WORD

@tool()
async def say(here: Here) -> str:
    """Say the word of NAME."""
    return WORD
'''
PLAYBOOK = """name: saying
description: Says a word.
plan:
  goal: Say the word
  subtasks:
    - id: t1
      title: Of NAME
      role: sayer
      instruction: Find out everything about part t1 of the goal
"""
SERVERS = '{"mcpServers": {"where": {"command": "no-program-of-NAME"}}}'
PRICES = (
    "claude-haiku-5-5: {input: PRICE, output: PRICE, cache_read: PRICE, cache_write: PRICE}\n"
    "claude-sonnet-5-5: {input: PRICE, output: PRICE, cache_read: PRICE, cache_write: PRICE}\n"
)


def project(folder: Path, price: int, tools: str = "say") -> Path:
    """A project whose files are called as those of any other here, with other things in them."""
    files = {
        "holdfast.toml": "",
        ".mcp.json": SERVERS,
        "prices.yaml": PRICES,
        "roles/sayer.md": ROLE,
        "tools/say.py": TOOL,
        "tools/words.py": "WORD = 'the word of NAME'\n",
        "playbooks/saying/playbook.yaml": PLAYBOOK,
    }
    values = {"NAME": folder.name, "PRICE": str(price), "TOOLS": tools}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for each, value in values.items():
            text = text.replace(each, value)
        (folder / name).write_text(text)
    return folder


def model() -> ScriptedModel:
    return ScriptedModel(
        {"t1": [calls(("say", {})), works("said")], "synthesize": [synthesizes("Said [t1].")]}
    )


def goal(name: str, **fields: Any) -> Goal:
    return Goal.model_validate(
        {"text": "Say it", "use_models": True, "project": name, "playbook": "saying", **fields}
    )


def told(request: ModelRequest) -> str:
    return json.dumps([request.system, request.messages, request.tools])


async def failure(runs: Runs, goal: Goal) -> str:
    """Why a run was refused."""
    async with asyncio.timeout(60):
        with pytest.raises(WorkflowFailureError) as failed:
            await (await runs.start(goal)).result()
    cause: BaseException | None = failed.value
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause)


async def test_two_projects_with_files_of_the_same_names_do_not_mix(
    runs: Runs, tmp_path: Path
) -> None:
    both = (project(tmp_path / "blue", 1), project(tmp_path / "green", 20))
    reports: dict[str, Report] = {}
    async with asyncio.timeout(100):
        for name, other in (("blue", "green"), ("green", "blue")):
            asked = model()
            reports[name] = await runs.run(goal(name), asked, projects=both)
            assert reports[name].status == "complete", reports[name].gaps
            assert reports[name].project == name
            turns = [each for each in asked.requests if each.messages]
            assert f"of the house {name}" in turns[0].system
            assert f"Say the word of {name}." in told(turns[0])
            assert f"the word of {name}" in told(turns[1])
            assert other not in told(turns[0]) + told(turns[1])
            plan = reports[name].plan
            assert plan is not None and plan.subtasks[0].title == f"Of {name}"
    assert reports["blue"].dollars and reports["green"].dollars == 20 * reports["blue"].dollars


@pytest.mark.long
async def test_servers_of_one_name_are_those_of_the_project(runs: Runs, tmp_path: Path) -> None:
    tools = "say, mcp__where__look"
    both = (project(tmp_path / "blue", 1, tools), project(tmp_path / "green", 1, tools))
    for name in ("blue", "green"):
        report = await runs.run(goal(name), model(), projects=both)
        (gap,) = report.gaps
        assert f"the local program no-program-of-{name}" in gap.why


async def test_a_run_of_a_project_that_is_not_served_is_refused_in_a_line_before_anything_starts(
    runs: Runs, tmp_path: Path
) -> None:
    asked = model()
    async with runs.worker(asked, projects=(project(tmp_path / "blue", 1),)):
        why = await failure(runs, goal("three"))
    assert "does not serve the project 'three'; it serves: blue; start it with" in why
    assert "\n" not in why and asked.heard == []
    assert await runs.activities() == ["prepare"]


async def test_a_worker_of_several_serves_runs_of_no_project_with_what_ships(
    runs: Runs, tmp_path: Path
) -> None:
    async with runs.worker(model(), projects=(project(tmp_path / "blue", 1),)):
        why = await failure(runs, goal(""))
        assert "unknown playbook 'saying'" in why
        report = await outcome(await runs.start(goal("", playbook="", plan=ready(subtask("t1")))))
    assert report.dollars != Decimal(0)


@pytest.mark.long
async def test_an_open_run_outlives_its_folder(runs: Runs, tmp_path: Path) -> None:
    folder = project(tmp_path / "blue", 1)
    go = asyncio.Event()
    gone = ScriptedModel(
        {"t1": [go, calls(("say", {})), works("said")], "synthesize": [synthesizes("Said [t1].")]}
    )
    async with runs.worker(gone, projects=(folder,)), asyncio.timeout(60):
        handle = await runs.start(goal("blue"))
        await gone.asked("t1")
        shutil.rmtree(folder)
        go.set()
        report = await outcome(handle)
    assert report.status == "complete", report.gaps
    assert "the word of blue" in told(gone.requests[1])


async def test_an_open_run_whose_project_nobody_serves_any_more_ends_and_says_so(
    runs: Runs, tmp_path: Path
) -> None:
    other = project(tmp_path / "green", 1)
    folder = project(tmp_path / "blue", 1)
    held = ScriptedModel({"t1": [asyncio.Event()]})
    async with runs.worker(held, projects=(folder, other)), asyncio.timeout(60):
        handle = await runs.start(goal("blue"), skipping=False)
        await held.asked("t1")
    async with runs.worker(model(), projects=(other,)), asyncio.timeout(90):
        report = await outcome(handle)
    assert report.status != "complete"
    assert "does not serve the project 'blue'; it serves: green" in report.model_dump_json()
