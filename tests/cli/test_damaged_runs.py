"""A finished run of which the store has lost something: damage is told as damage, and a report that
was written when all could be read stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import Runs
from holdfast.cli.commands.runs import report as page
from holdfast.cli.commands.runs import show, start, watch
from holdfast.cli.screen.exits import Code, Exit
from holdfast.contracts import Goal
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from scripted import Line, ScriptedModel, digests, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

LONG = "It was examined, and found to be sound. "


def blobs(runs: Runs) -> list[Path]:
    return sorted(each for each in runs.store.root.rglob("*") if each.is_file())


def truncate(paths: Sequence[Path]) -> None:
    for path in paths:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:10])


async def finished(runs: Runs, connection: Connection, run_id: str, often: int) -> Path:
    """A complete run whose findings, and if they are very long its report, are in the store; its
    Markdown, as written at its end.
    """
    script: dict[str, list[Line]] = {"t1": [works(LONG * often)], "t2": [works("two")]}
    script |= {"digest": [digests("sound")], "synthesize": [synthesizes("sound [t1]")]}
    plan = ready(subtask("t1"), subtask("t2", "t1"))
    async with runs.worker(ScriptedModel(script)):
        await start.run(connection, Goal(text="g", plan=plan, use_models=True), run_id)
        assert await watch.run(connection, run_id, False, None) == Code.COMPLETE
    runs.handles.clear()  # A replay would ask for what is damaged.
    return StateDir.of(connection.settings).reports / f"{run_id}.md"


@pytest.mark.long
async def test_a_run_whose_blobs_are_damaged_is_no_failed_run_and_keeps_its_good_report(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    markdown = await finished(runs, connection, "damaged", 10_000)
    kept = {each: each.read_bytes() for each in markdown.parent.iterdir() if each.is_file()}
    assert "**Complete**" in markdown.read_text()
    truncate(blobs(runs))
    capsys.readouterr()
    code = await show.run(connection, "damaged", False, None)
    said = capsys.readouterr()
    assert code == Code.FAILED and "Failed" not in said.out and "nothing was paid" not in said.out
    assert "was completed, and what it found cannot be read: " in said.err
    assert str(markdown) in said.err
    with pytest.raises(Exit, match="cannot be read"):
        await page.run(connection, "damaged", None, open_it=False)
    assert {each: each.read_bytes() for each in kept} == kept


async def test_a_report_that_outlived_damage_before_it_is_told_and_replaces_nothing(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    markdown = await finished(runs, connection, "half", 1_000)
    kept = {each: each.read_bytes() for each in markdown.parent.iterdir() if each.is_file()}
    truncate(blobs(runs))
    capsys.readouterr()
    assert await show.run(connection, "half", False, None) == Code.COMPLETE
    assert "\nComplete · " in capsys.readouterr().out
    assert {each: each.read_bytes() for each in kept} == kept
