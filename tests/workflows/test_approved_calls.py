"""Calls of tools that a person must approve, against a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from test_agents import catalogue, goal, segments, told

from conftest import Handle, Runs, seen
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.tool import Here, tool
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Order
from holdfast.contracts.view import Question, RunView
from holdfast.rendering.orders import lines
from scripted import ScriptedModel, calls, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Reads and writes
model: haiku
tools: read_file, write
---
You read and write.
"""
SECRET = "sk-ant-" + "a1b2c3d4" * 6
NOTES = ("read_file", {"file_path": "repo/notes.md"})
FORTY = ("write", {"text": "40"})
ENDED = ("complete", "complete_with_gaps")
"""What no agent opened of the input is a gap, and most of these agents open nothing."""
DONE: dict[str, list[Any]] = {"t1": [works("40")], "synthesize": [synthesizes("40 [t1].")]}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a tool wrote of which a person must approve each call."""
    texts: list[str] = []

    @tool(effects=True, idempotent=False, approval=True)
    async def write(here: Here, text: str, key: str = "") -> str:
        """Write a text down."""
        texts.append(text)
        return f"written: {text}"

    tools = {**shelf.shipped_tools(), "write": write}
    monkeypatch.setattr(shelf, "shipped_tools", lambda: tools)
    return texts


def script(*messages: Any) -> ScriptedModel:
    return ScriptedModel({**DONE, "t1": [*messages, works("40")]})


def asks(view: RunView) -> list[Question]:
    return [each for each in view.waiting if each.kind == "call"]


async def say(handle: Handle, command: str, call: int, why: str = "") -> str:
    said: str = await handle.execute_update(command, Order(call=call, text=why, by="ann"))
    return said


async def test_an_approved_call_runs_once_with_its_arguments_as_they_were_shown(
    runs: Runs, written: list[str]
) -> None:
    model = script(calls(NOTES, FORTY))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        view = await seen(handle, asks)
        assert asks(view) == [
            Question(kind="call", subtask_id="t1", text='write {"text": "40"}', call=1)
        ]
        assert view.dollars_reserved == 0 and written == []
        assert await say(handle, "approve", 1) == "call 1 is approved"
        report = await outcome(handle)
    assert report.status in ENDED and written == ["40"]
    assert await segments(runs, report) == [["turn-1", "tool-1-1"], ["tool-1-2", "turn-2"]]
    first, second = told(model, 1)
    assert "The limit is 40" in first["content"] and "written: 40" in second["content"]
    (line,) = lines(report.orders)
    assert '**ann** approved call 1: t1: write {"text": "40"}' in line


async def test_of_two_calls_of_a_turn_one_is_approved_and_one_goes_back_with_the_reason(
    runs: Runs, written: list[str]
) -> None:
    model = script(calls(FORTY, ("write", {"text": "41"})))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        await seen(handle, lambda view: len(asks(view)) == 2)
        assert await say(handle, "decline", 2, "41 is wrong") == "call 2 is declined"
        view = await seen(handle, lambda view: len(asks(view)) == 1)
        assert [each.call for each in asks(view)] == [1]
        with pytest.raises(WorkflowUpdateFailedError) as again:
            await say(handle, "approve", 2)
        assert "no call 2 waits for approval; what waits: call 1" in str(again.value.cause)
        await say(handle, "approve", 1)
        report = await outcome(handle)
    assert report.status in ENDED and written == ["40"]
    assert await segments(runs, report) == [["turn-1"], ["tool-1-1", "turn-2"]]
    approved, declined = told(model, 1)
    assert "written: 40" in approved["content"] and "is_error" not in approved
    assert declined["is_error"]
    assert "A person declined this call: 41 is wrong" in declined["content"]
    assert report.model_calls == 2, "two turns: nobody asked twice"


async def test_where_people_are_not_asked_the_call_is_declined_and_the_preview_says_so(
    runs: Runs, written: list[str]
) -> None:
    model = script(calls(FORTY, ("write", {"txt": 1}), ("write", {"text": "41"})), calls(FORTY))
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE))
    assert report.status in ENDED and written == []
    assert all("nobody can be asked" in each["content"] for each in told(model, 1))
    (note,) = [each for each in report.notes if "write" in each]
    assert note == (
        "t1: a call of write was not made: a person must approve each, and this run asks nobody"
        " (--ask) (4 times)"
    )
    (finding,) = report.findings
    assert (finding.tool_calls, finding.failed_calls) == (4, 4)
    view = await seen(runs.handles[-1], lambda view: view.preview)
    assert view.preview is not None
    assert [each for each in view.preview.without if "write by reader" in each] != []


async def test_nobody_is_asked_about_a_call_whose_arguments_do_not_fit(
    runs: Runs, written: list[str]
) -> None:
    model = script(calls(("write", {"txt": 1}), FORTY))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        (question,) = asks(await seen(handle, asks))
        assert question.text == 'write {"text": "40"}'
        await say(handle, "approve", 1)
        report = await outcome(handle)
    assert report.status in ENDED and written == ["40"]
    wrong, made = told(model, 1)
    assert wrong["is_error"] and "these arguments do not fit:" in wrong["content"]
    assert "txt" in wrong["content"] and "written: 40" in made["content"]


@pytest.mark.long
async def test_a_worker_that_goes_away_while_a_person_thinks_loses_nothing(
    runs: Runs, written: list[str]
) -> None:
    model, cards = script(calls(NOTES, FORTY)), catalogue(runs, ROLE)
    async with runs.worker(model, catalogue=cards):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        await seen(handle, asks)
    async with runs.worker(model, catalogue=cards):
        await say(handle, "approve", 1)
        report = await outcome(handle)
    assert report.status in ENDED and written == ["40"]
    assert model.heard.count("t1") == 2
    assert await segments(runs, report) == [["turn-1", "tool-1-1"], ["tool-1-2", "turn-2"]]


async def test_nobody_who_comes_within_a_day_is_a_no(runs: Runs, written: list[str]) -> None:
    model = script(calls(FORTY))
    report = await runs.run(goal(runs, ask_people=True), model, catalogue=catalogue(runs, ROLE))
    assert report.status in ENDED and written == []
    assert "nobody decided on it in time" in told(model, 1)[0]["content"]
    assert any("Nobody decided on call 1 of t1 (write)" in each for each in report.notes)


@pytest.mark.long
async def test_a_person_is_shown_what_is_called_however_it_looks(
    runs: Runs, written: list[str]
) -> None:
    text = "\u202e\x1b[31m  -----BEGIN PRIVATE KEY----- API_KEY='$(rm -rf ~)'"
    model = script(calls(("write", {"text": text, "key": "sk-ant-" + "a1b2c3d4" * 6})))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        (question,) = asks(await seen(handle, asks))
        assert "\\u202e" in question.text and "\x1b" not in question.text
        await say(handle, "approve", 1)
        report = await outcome(handle)
    shown = json.loads(question.text.removeprefix("write "))
    assert written == [text] == [shown["text"]]
    assert report.orders[0].about == f"t1: {question.text}", "it can be read afterwards"


async def test_nobody_is_asked_about_a_call_that_holds_a_key_of_the_deployment(
    runs: Runs, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    model = script(calls(("write", {"text": "40", "key": SECRET}), FORTY))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        (question,) = asks(await seen(handle, asks))
        assert question.text == 'write {"text": "40"}'
        await say(handle, "approve", 1)
        report = await outcome(handle)
    assert report.status in ENDED and written == ["40"]
    assert "hold a secret of this deployment" in told(model, 1)[0]["content"]
    events = (await runs.handles[-1].fetch_history()).to_json()
    assert SECRET not in events


@pytest.mark.long
async def test_a_call_too_long_to_be_read_is_not_asked_about(
    runs: Runs, written: list[str]
) -> None:
    model = script(calls(("write", {"text": "x" * 5_000})))
    report = await runs.run(goal(runs, ask_people=True), model, catalogue=catalogue(runs, ROLE))
    assert report.status in ENDED and written == []
    assert "too long to be read" in told(model, 1)[0]["content"]


SERVER = Path(__file__).parents[1] / "support" / "mcp_servers.py"
TELLER = """---
name: reader
description: Tells what stands in a row
model: haiku
tools: mcp__own__fine
---
You tell what stands in a row.
"""
ROW = {"row": 2130}


def servers(folder: Path, approval: object) -> Path:
    file = folder / ".mcp.json"
    command = {"command": sys.executable, "args": [str(SERVER), "schemas"]}
    file.write_text(json.dumps({"mcpServers": {"own": {**command, "approval": approval}}}))
    return file


@pytest.mark.usefixtures("servers_asked_here")
async def test_the_file_of_servers_says_which_of_their_tools_ask(runs: Runs) -> None:
    model = script(calls(("mcp__own__fine", ROW)))
    file = servers(runs.folder, ["fine"])
    async with runs.worker(model, catalogue=catalogue(runs, TELLER), mcp_file=file):
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        (question,) = asks(await seen(handle, asks))
        assert question.text.startswith("mcp__own__fine {")
        assert "2130" in question.text
        await say(handle, "approve", 1)
        report = await outcome(handle)
    assert report.status in ENDED
    assert "2130" in told(model, 1)[0]["content"]


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_nobody_is_asked_about_a_call_that_a_server_s_schema_does_not_fit(runs: Runs) -> None:
    model = script(calls(("mcp__own__fine", {"names": ["a"]})))
    file = servers(runs.folder, True)
    cards, wanted = catalogue(runs, TELLER), goal(runs, ask_people=True)
    report = await runs.run(wanted, model, catalogue=cards, mcp_file=file)
    assert report.status in ENDED and not any("decided" in each for each in report.notes)
    said = told(model, 1)[0]["content"]
    assert "these arguments do not fit:" in said and "'row' is a required property" in said


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_a_tool_that_no_server_offers_cannot_be_named_to_ask(runs: Runs) -> None:
    file, model = servers(runs.folder, ["fien"]), ScriptedModel({})
    with pytest.raises(Exception) as refused:
        await runs.run(goal(runs), model, catalogue=catalogue(runs, TELLER), mcp_file=file)
    said = str(refused.value.__cause__.__cause__ if refused.value.__cause__ else refused.value)
    assert "does not offer fien, which its approval names" in said


@pytest.mark.long
@pytest.mark.usefixtures("servers_asked_here")
async def test_a_worker_that_lives_asks_as_the_file_says_since_it_was_edited(runs: Runs) -> None:
    file, one = servers(runs.folder, False), calls(("mcp__own__fine", ROW))
    model = ScriptedModel(
        {"t1": [one, works("40")] * 2, "synthesize": [synthesizes("40 [t1].")] * 2}
    )
    async with runs.worker(model, catalogue=catalogue(runs, TELLER), mcp_file=file):
        free = await runs.start(goal(runs, ask_people=True), skipping=False)
        assert (await outcome(free)).status in ENDED
        assert "2130" in told(model, 1)[0]["content"]
        servers(runs.folder, True)
        handle = await runs.start(goal(runs, ask_people=True), skipping=False)
        assert len(asks(await seen(handle, asks))) == 1
        await say(handle, "decline", 1)
        assert (await outcome(handle)).status in ENDED
