"""Files that agents make: the sandbox hands them up, the store keeps them, and they are written
beside the report of their run.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from test_agents import catalogue, goal, segments

from conftest import Runs
from holdfast.cli.commands.runs import report as report_command
from holdfast.cli.commands.runs import run, show
from holdfast.cli.screen.exits import Code
from holdfast.contracts import Check, Report
from holdfast.intake.connection import Connection
from holdfast.storage.references import find_needed
from parameters import rest_long
from scripted import ScriptedModel, calls, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

ROLE = """---
name: reader
description: Computes what it is given
model: haiku
tools: run_python
---
You compute.
"""
TABLE = "engine,year\nA,2019\n"
DIGEST = hashlib.sha256(TABLE.encode()).hexdigest()


def saves(*files: tuple[str, str], more: str = "", **named: Any) -> Any:
    code = "\n".join([*(f"save({name!r}, {text!r})" for name, text in files), more])
    return calls(("run_python", {"code": code, "inputs": ["repo/notes.md"]}), **named)


def script(*turns: Any) -> ScriptedModel:
    return ScriptedModel({"t1": [*turns], "synthesize": [synthesizes("It is made [t1].")]})


async def made(runs: Runs, *turns: Any, **fields: Any) -> Report:
    return await runs.run(goal(runs, **fields), script(*turns), catalogue=catalogue(runs, ROLE))


async def test_what_the_sandbox_saves_is_a_file_of_the_finding_by_reference(runs: Runs) -> None:
    model = script(saves(("a.csv", TABLE), ("b.md", "# B"), more="print('x')"), works("Made."))
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE))
    assert report.status == "complete", report.gaps
    first, second = report.findings[0].files
    assert (first.name, first.size, first.digest) == ("a.csv", len(TABLE), DIGEST)
    assert second.name == "b.md" and await runs.store.get(first.digest) == TABLE.encode()
    last = json.dumps(model.requests[1].messages[-1])
    assert "a.csv is handed up (19 bytes).\\nb.md is handed up (3 bytes).\\nx" in last
    # It stands in the history, and so no cleaning takes it; its bytes do not.
    named, _ = await find_needed(runs.client, runs.store)
    assert DIGEST in named
    assert await segments(runs, report), "the agent's own history replays"
    history = (await runs.handles[-1].fetch_history()).to_json()
    assert "engine,year" not in history


@pytest.mark.long
async def test_a_later_file_of_a_name_takes_the_place_of_the_earlier_one(runs: Runs) -> None:
    report = await made(
        runs,
        saves(("a.csv", "old"), ("b.csv", "b")),
        saves(("A.csv", TABLE), prefix="v"),
        works("Made."),
    )
    assert [each.name for each in report.findings[0].files] == ["b.csv", "A.csv"]


@pytest.mark.parametrize(
    ("call", "said"),
    rest_long(
        [
            (saves(("../../a.csv", "x")), "is no name of a file here"),
            (saves(("page.html", "<script>")), "only these are taken"),
            (saves(("a.csv", TABLE), more="1 / 0"), "ZeroDivisionError"),
            (saves(*((f"{n}.csv", "x") for n in range(11))), "at most 10 files"),
            (saves(more="save('a.csv', 'x' * 5_000_000)"), "at most 4,194,304 letters"),
            (saves(more="save('a.csv', b'x')"), "takes two strings"),
        ]
    ),
)
async def test_a_call_that_fails_hands_up_nothing_and_the_model_is_told_why(
    runs: Runs, call: Any, said: str
) -> None:
    model = script(call, works("Nothing was made."))
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE))
    assert report.findings[0].files == () and report.findings[0].failed_calls == 1
    assert said in json.dumps(model.requests[1].messages[-1])


@pytest.mark.long
async def test_one_subtask_makes_so_many_files_and_no_more(runs: Runs) -> None:
    many = [
        saves(*((f"{turn}-{n}.csv", "x") for n in range(10)), prefix=f"{turn}-")
        for turn in range(3)
    ]
    model = script(*many, works("Made."))
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, ROLE))
    assert len(report.findings[0].files) == 20
    assert "you have made 20 files" in json.dumps(model.requests[3].messages[-1])


@pytest.mark.long
async def test_what_a_try_made_that_was_not_accepted_is_not_of_the_next_one(runs: Runs) -> None:
    checked = {**subtask("t1", role="reader", tier="haiku"), "inputs": ["repo"]}
    plan = ready(checked)
    words = Check(kind="contains", argument="Made")
    planned = plan.subtasks[0].model_copy(update={"checks": (words,)})
    report = await made(
        runs,
        saves(("old.csv", "x")),
        works("No."),
        saves(("new.csv", TABLE)),
        works("Made."),
        plan=plan.model_copy(update={"subtasks": (planned,)}),
    )
    assert [each.name for each in report.findings[0].files] == ["new.csv"]


# ---------------------------------------------------------------- beside the report


def options(run_id: str, **more: Any) -> run.RunOptions:
    return run.RunOptions(run_id, **{"as_json": True, "out": None, "stay": False, **more})


async def test_files_stand_beside_the_report_which_lists_and_links_them(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = script(saves(("a.csv", TABLE)), works("Made."))
    out = tmp_path / "mine.md"
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        code = await run.run(connection, goal(runs), options("files-1", out=out))
    assert code == Code.COMPLETE
    reports = connection.settings.state_dir / "reports"
    written = reports / "files-1.files/t1/a.csv"
    assert written.read_text() == TABLE
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.parent.stat().st_mode & 0o777 == 0o700
    listed = f"[t1/a.csv](files-1.files/t1/a.csv), 19 bytes, SHA-256 `{DIGEST}`, by t1"
    assert f"## Files\n\n- {listed}" in (reports / "files-1.md").read_text()
    page = (reports / "files-1.html").read_text()
    assert 'href="files-1.files/t1/a.csv">t1/a.csv</a>' in page and DIGEST in page
    document = json.loads((reports / "files-1.json").read_text())
    (file,) = document["findings"][0]["files"]
    assert file == {"name": "a.csv", "size": 19, "digest": DIGEST, "missing": ""}
    # A copy elsewhere leads to where they are.
    assert f"]({(reports / 'files-1.files').as_uri()}/t1/a.csv)" in out.read_text()
    assert f"Files: {reports / 'files-1.files'}" in capsys.readouterr().err
    # The page alone brings them back, too.
    written.unlink()
    assert await report_command.run(connection, "files-1", None, open_it=False) == Code.COMPLETE
    assert written.read_text() == TABLE


@pytest.mark.long
@pytest.mark.parametrize("harm", ["gone", "damaged"])
async def test_a_file_that_the_store_has_lost_is_said_to_be_missing(
    runs: Runs, connection: Connection, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    model = script(saves(("a.csv", TABLE), ("b.csv", "b")), works("Made."))
    async with runs.worker(model, catalogue=catalogue(runs, ROLE)):
        await run.run(connection, goal(runs), options(f"files-{harm}"))
    blob = runs.store.root / DIGEST[:2] / DIGEST
    blob.unlink() if harm == "gone" else blob.write_bytes(b"other")
    folder = connection.settings.state_dir / f"reports/files-{harm}.files/t1"
    (folder / "a.csv").unlink()
    capsys.readouterr()
    await show.run(connection, f"files-{harm}", True, None)
    said = Report.model_validate_json(capsys.readouterr().out)
    (note,) = [each for each in said.notes if "a.csv" in each]
    assert note.startswith("t1: its file a.csv is not here: blob") and "is lost" in note
    assert [each.name for each in folder.iterdir()] == ["b.csv"]
    assert "a.csv is not here" in (folder.parent.parent / f"files-{harm}.md").read_text()
