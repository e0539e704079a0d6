"""An agent whose tools an MCP server offers: a real one from the registry, and one that is gone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from test_agents import catalogue, goal, told

from conftest import Runs
from scripted import ScriptedModel, calls, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Tells the time
model: haiku
tools: mcp__clock__convert_time, read_file
---
You tell the time.
"""
ASKS = calls(
    (
        "mcp__clock__convert_time",
        {"source_timezone": "Asia/Tokyo", "target_timezone": "UTC", "time": "21:30"},
    )
)


def servers(folder: Path, *command: str) -> Path:
    file = folder / ".mcp.json"
    entry = {"command": command[0], "args": list(command[1:])}
    file.write_text(json.dumps({"mcpServers": {"clock": entry}}))
    return file


@pytest.mark.long
async def test_what_a_server_offers_is_a_tool_like_any_other(runs: Runs) -> None:
    file = servers(runs.folder, sys.executable, "-m", "mcp_server_time")
    model = ScriptedModel({"t1": [ASKS, works("12:30")], "synthesize": [synthesizes("12:30 [t1]")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE), mcp_file=file)
    # It asks the server alone, and opens nothing of its input.
    assert report.status == "complete_with_gaps"
    offered = {each["name"]: each for each in model.requests[0].tools}
    assert "source_timezone" in str(offered["mcp__clock__convert_time"]["input_schema"])
    assert "T12:30" in told(model, 1)[0]["content"]


@pytest.mark.usefixtures("servers_asked_here")
async def test_a_run_goes_on_without_a_server_that_does_not_start_and_says_so(runs: Runs) -> None:
    file = servers(runs.folder, "/nowhere/clock", "--token=very-secret")
    model = ScriptedModel({"t1": [works("noon")], "synthesize": [synthesizes("noon [t1]")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE), mcp_file=file)
    # Its plan names the role: without the role's tools the run is not what was asked for.
    assert report.status == "complete_with_gaps"
    gap, unread = report.gaps
    assert (gap.title, unread.title) == ("The tools of role reader", "Reading repo")
    assert gap.why.startswith("not reachable: the MCP server clock cannot be started")
    assert [each["name"] for each in model.requests[0].tools] == ["read_file", "read_result"]
    (left_out,) = report.not_run
    assert left_out.what == "tool mcp__clock__convert_time"
    assert left_out.why == (
        "the MCP server clock cannot be started (No such file or directory)"
        " (the local program /nowhere/clock); reader goes on without"
    )
    assert "secret" not in report.model_dump_json()


@pytest.mark.usefixtures("servers_asked_here")
async def test_a_plan_for_a_role_that_has_nothing_but_a_server_that_is_gone_is_refused_unpaid(
    runs: Runs,
) -> None:
    file = servers(runs.folder, "/nowhere/clock", "--token=very-secret")
    model = ScriptedModel({})
    role = ROLE.replace(", read_file", "")
    with pytest.raises(Exception) as refused:
        await runs.run(goal(runs), model, catalogue=catalogue(runs, role), mcp_file=file)
    said = str(refused.value.__cause__.__cause__ if refused.value.__cause__ else refused.value)
    assert "role 'reader' of the plan is not reachable" in said and "not valid" not in said
    assert "mcp__clock__convert_time: the MCP server clock cannot be started" in said
    assert "(the local program /nowhere/clock)" in said and "secret" not in said
    assert model.heard == []
