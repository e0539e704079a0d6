"""Calls of tools with effects of which nobody knows whether they ran: the report says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from test_agents import catalogue, goal, segments

from conftest import Runs
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset import shelf
from holdfast.activities.toolset.tool import Here, tool
from holdfast.certifying.deployment import outcome
from holdfast.contracts import Order
from scripted import ScriptedModel, calls, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Reads what it is given, and tells somebody
model: haiku
tools: read_file, send
---
You read.
"""
SENDS = calls(("send", {"to": "ada", "key": "sk-ant-api03-" + "a1B2" * 20}))
TWO = ready(subtask("t1", role="reader", inputs=["repo"]), subtask("t2"))
sent: list[str] = []
lasts = asyncio.Event()


@tool(effects=True, idempotent=False)
async def send(here: Here, to: str, key: str) -> str:
    """Tell somebody something."""
    sent.append(to)
    if lasts.is_set():
        await asyncio.Event().wait()
    return "told"


HANDS = {**shelf.shipped_tools(), "send": send}
HASTY = {**HANDS, "send": replace(send, seconds=0.2)}


@pytest.fixture
def sender(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The shipped roles, and one that sends."""
    monkeypatch.setattr(shelf, "shipped_tools", lambda: HANDS)
    sent.clear()
    lasts.clear()
    return catalogue(runs, ROLE)


class Full(FileJournal):
    """A disk that is full when the first tool has run: nothing tells that it has."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.refused = 0

    async def record(self, key: str, answer: str) -> None:
        if "/tool-" in key and not self.refused:
            self.refused += 1
            raise OSError("no space left on device")
        await super().record(key, answer)


def said(notes: tuple[str, ...]) -> str:
    """The one note about a call."""
    (note,) = [each for each in notes if "may have run" in each]
    return note


@pytest.mark.long
async def test_a_call_with_effects_that_was_not_run_again_is_in_the_notes_of_the_report(
    runs: Runs, sender: Catalogue
) -> None:
    runs.journal = Full(runs.folder / "journal")
    model = ScriptedModel({"t1": [SENDS, works("told")], "synthesize": [synthesizes("told [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=sender)
    assert report.status == "complete_with_gaps", "its input was opened by nobody"
    assert sent == ["ada"], "it ran once, and nobody knows that"
    note = said(report.notes)
    assert note.startswith('t1: send "ada", ') and note.endswith("it was not run again.")
    assert "a1B2a1B2" not in note, "what opens doors is masked"
    assert await segments(runs, report) == [["turn-1", "tool-1-1", "turn-2"]]


async def test_a_call_with_effects_that_was_cut_in_the_middle_is_in_the_notes_of_the_report(
    runs: Runs, sender: Catalogue
) -> None:
    model = ScriptedModel(
        {"t1": [SENDS], "t2": [works("two")], "synthesize": [synthesizes("2 [t2]")]}
    )
    lasts.set()
    async with runs.worker(model, catalogue=sender), asyncio.timeout(60):
        handle = await runs.start(goal(runs, plan=TWO, limits={"replans": 0}), skipping=False)
        await model.asked("t2")
        while not sent:  # noqa: ASYNC110 - a tool tells nobody
            await asyncio.sleep(0.02)
        await handle.execute_update("skip", Order(subtask_id="t1", by="ada"))
        report = await outcome(handle)
    assert report.findings[0].why == "skipped by ada"
    assert said(report.notes).startswith('t1: send "ada", ')
    assert await segments(runs, report) == [["turn-1", "tool-1-1"]]


@pytest.mark.long
async def test_a_call_with_effects_that_took_too_long_is_in_the_notes_of_the_report(
    runs: Runs, sender: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "shipped_tools", lambda: HASTY)
    lasts.set()
    model = ScriptedModel({"t1": [SENDS, works("told")], "synthesize": [synthesizes("told [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=sender)
    assert report.status == "complete_with_gaps" and sent == ["ada"]
    assert said(report.notes).startswith('t1: send "ada", ')
    told = str(model.requests[1].messages)
    assert "whether it has taken effect is not known" in told and "ask it for less" not in told
