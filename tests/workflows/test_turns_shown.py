"""What an agent with tools did, turn by turn: on the page of its run, and in its trace."""

from __future__ import annotations

import re
from pathlib import Path

import html5lib
import pytest
from test_agents import catalogue, goal
from test_approved_calls import ROLE, asks, say, script, written

from conftest import Runs, seen
from holdfast.cli.commands.runs import report as command
from holdfast.client.doing import Turns
from holdfast.client.reading import Reader
from holdfast.intake.connection import Connection
from holdfast.replaying.tracing import read_trace
from paged import HARM
from scripted import calls

pytestmark = pytest.mark.anyio
__all__ = ["written"]
READ = ("read_file", {"file_path": "repo/notes.md"})
BAD = ("read_file", {"file_path": f"repo/{HARM}"})


def text(page: str) -> str:
    """What a reader is shown, on one line."""
    found = html5lib.parse(page, namespaceHTMLElements=False)
    return " ".join(" ".join(found.itertext()).split())


async def test_each_call_of_a_tool_is_shown_with_what_it_was_given_and_who_allowed_it(
    runs: Runs, connection: Connection, written: list[str], tmp_path: Path
) -> None:
    model = script(calls(READ, BAD, ("write", {"text": "40"}), ("write", {"text": "41"})))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        await seen(handle, lambda view: len(asks(view)) == 2)
        await say(handle, "decline", 2, "41 is wrong")
        await say(handle, "approve", 1)
        await handle.result()
    trace = await read_trace(runs.client, handle.id)
    tools = {each.id.partition(".t1.")[2]: each for each in trace.steps if each.kind == "tool"}
    assert tools["1/tool-1-1"].arguments == '"repo/notes.md"'
    assert tools["1/tool-1-1"].size > len("The limit is 40 a minute.")
    assert (tools["2/tool-1-3"].tool, tools["2/tool-1-3"].by) == ("write", "ann")
    assert tools["1/tool-1-1"].by == ""
    orders = [(each.name, each.by) for each in trace.steps if each.kind == "order"]
    assert orders == [("decline", "ann"), ("approve", "ann")]

    failed = tools["1/tool-1-2"]
    assert (failed.status, failed.verdict) == ("error", "tool_error")
    assert failed.why and failed.why.isprintable() and len(failed.why) <= 300

    file = tmp_path / "page.html"
    assert await command.run(connection, handle.id, file, open_it=False) == 0
    page = file.read_text()
    assert "<script" not in page and "onerror=alert" not in re.sub(r">[^<]*<", "><", page)
    shown = text(page)
    assert "What it did: 1 turn, 2 calls of tools" in shown
    assert '✓ read_file "repo/notes.md"' in shown
    assert re.search(r'✗ read_file "repo/<script>.{0,400}failed · \d', shown)
    assert failed.why[:60] in shown
    assert re.search(r'✓ write "40" [\d.]+ s · \d+ bytes · approved by ann', shown)
    assert re.search(r"ann declined call 2: t1: write .+; “41 is wrong”", shown)


async def test_of_an_agent_whose_history_is_gone_that_is_said(
    runs: Runs, connection: Connection, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await runs.run(goal(runs), script(calls(READ)), catalogue=catalogue(runs, ROLE))
    look = await Reader(connection, made.run_id).look()
    shown = text(command.page_of(made.run_id, look))
    assert f"history of their own, {made.run_id}.t1.1 , which was not read" in shown
    turns = Turns(connection, made.run_id)
    found = await turns.of(look.steps)
    assert [each.name for each in found[f"{made.run_id}.t1.1"]] == [
        "turn-1",
        "tool-1-1",
        "turn-2",
    ]

    async def unasked(*_: object) -> None:
        raise AssertionError("what has ended is read once")

    monkeypatch.setattr("holdfast.client.doing.read_turns", unasked)
    assert await turns.of(look.steps) == found
