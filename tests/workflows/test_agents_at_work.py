"""What agents are at, as `show` and `watch` tell it: read by the end of an agent's own history."""

from __future__ import annotations

import asyncio

import pytest
from test_agents import catalogue, goal

from conftest import Runs
from drawn import drawn
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.tool import Here, tool
from holdfast.certifying.deployment import outcome
from holdfast.cli.screen.board import board
from holdfast.client.reading import Reader
from holdfast.intake.connection import Connection
from scripted import ScriptedModel, calls, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Holds on
model: haiku
tools: hold
---
You hold on.
"""
HOSTILE = "rate \u202elimit\x1b[31m " + "x" * 500


async def at(reader: Reader, expected: str) -> str:
    """Wait until the board says so; the whole board."""
    async with asyncio.timeout(30):
        while True:
            await reader.look()
            await reader.find_doing()
            view = (await reader.look()).view
            if view is not None and any(expected in row.doing for row in view.rows):
                return drawn(board(view, width=100), width=100)
            await asyncio.sleep(0.1)


async def test_the_board_tells_the_turn_and_the_tool_that_an_agent_is_at(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, asked = asyncio.Event(), asyncio.Event()

    @tool()
    async def hold(here: Here, words: str) -> str:
        """Hold on."""
        await held.wait()
        return words

    tools = {**shelf.shipped_tools(), "hold": hold}
    monkeypatch.setattr(shelf, "shipped_tools", lambda: tools)
    first = calls(("hold", {"words": HOSTILE}), ("hold", {"words": "two"}))
    model = ScriptedModel(
        {"t1": [first, asked, works("40")], "synthesize": [synthesizes("40 [t1].")]}
    )
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs), skipping=False)
        reader = Reader(connection, handle.id)
        shown = await at(reader, 'turn 1 of 10, hold "rate')
        (line,) = [each for each in shown.splitlines() if "turn 1 of 10" in each]
        assert "\\u202e" in line and "x" * 81 not in line
        view = (await reader.look()).view
        assert view is not None
        first_turn = "… and 1 more, $0.0002 so far"
        assert view.rows[0].doing.endswith(first_turn), view.rows[0].doing
        length = await _length(runs, handle.id)
        await reader.find_doing()
        assert await _length(runs, handle.id) == length, "to look is no event"
        held.set()
        await at(reader, "turn 2 of 10, asks the model, $0.0002 so far")
        asked.set()
        await outcome(handle)
        await reader.find_doing()
        view = (await reader.look()).view
    assert view is not None and [row.doing for row in view.rows] == [""]


async def _length(runs: Runs, run_id: str) -> list[int]:
    """Events of the run and of its agent."""
    handles = [runs.client.get_workflow_handle(each) for each in (run_id, f"{run_id}.t1.1")]
    return [len((await each.fetch_history()).events) for each in handles]
