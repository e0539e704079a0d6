"""A run is not complete where an input that agents were to read with tools was opened by none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_agents import ROLE, catalogue

from conftest import Runs
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.cli.commands.runs.report import page_of
from holdfast.cli.screen.exits import Code, code_of
from holdfast.client.documents import as_markdown
from holdfast.client.forking import ForkChange, fork_goal
from holdfast.client.reading import Reader
from holdfast.contracts import Goal, GoalInput
from holdfast.intake.connection import Connection
from holdfast.ports import ModelAnswer
from holdfast.rendering.board import board
from holdfast.rendering.running import run_view
from repositories import Repository
from scripted import ScriptedModel, calls, plans, ready, subtask, synthesizes, works

pytestmark = pytest.mark.anyio

TOOLS = (
    "list_files, read_file, read_document, search_files, search_documents, query_data,"
    " run_python, git_history"
)
READER = ROLE.replace("list_files, read_file, search_files, read_result", TOOLS)
LISTS = calls(("list_files", {}))
READS = calls(("read_file", {"file_path": "papers/terms.md"}))
ANSWER = works("The notice is 30 days.")


def papers(folder: Path) -> GoalInput:
    repository = Repository.at(folder / "papers")
    repository.commit(
        {
            "terms.md": "The notice is 30 days.\n",
            "prices.csv": "plan,dollars\nsmall,5\n",
            "scan.pdf": "%PDF-1.4\n\0",
        }
    )
    return GoalInput(name="papers", kind="repository", value=str(repository.path))


def goal(runs: Runs, *subtasks: dict[str, Any], **fields: Any) -> Goal:
    planned = subtasks or (subtask("t1", role="reader", inputs=["papers"]),)
    given = {"inputs": [papers(runs.folder)], "plan": ready(*planned), **fields}
    return Goal.model_validate({"text": "Find the notice", "use_models": True, **given})


@pytest.mark.parametrize(
    ("used", "reads"),
    [
        pytest.param([], False, id="no tool"),
        pytest.param([LISTS], False, id="a list of files"),
        pytest.param(
            [calls(("read_file", {"file_path": "papers/gone.md"}))], False, id="a file that is not"
        ),
        pytest.param(
            [calls(("search_files", {"pattern": "notice", "glob": "*.pdf"}))],
            False,
            id="a search in no text",
        ),
        pytest.param(
            [calls(("run_python", {"code": "1 + 1"}))],
            False,
            id="code without it",
            marks=pytest.mark.long,
        ),
        pytest.param([LISTS, READS], True, id="a file"),
        pytest.param(
            [calls(("read_document", {"file_path": "papers/terms.md"}))],
            True,
            id="a document",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [calls(("search_files", {"pattern": "x{9}"}))],
            True,
            id="a search in vain",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [calls(("search_documents", {"query": "notice", "path": "papers"}))],
            True,
            id="a ranked search",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [calls(("query_data", {"sources": ["papers/prices.csv"]}))],
            True,
            id="a table",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [calls(("run_python", {"code": "len(inputs)", "inputs": ["papers/prices.csv"]}))],
            True,
            id="code over it",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [calls(("git_history", {"path": "papers"}))],
            True,
            id="its commits",
            marks=pytest.mark.long,
        ),
    ],
)
async def test_what_counts_as_reading(runs: Runs, used: list[ModelAnswer], reads: bool) -> None:
    model = ScriptedModel({"t1": [*used, ANSWER], "synthesize": [synthesizes("30 days [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, READER))
    assert report.status == ("complete" if reads else "complete_with_gaps"), report.gaps
    assert code_of(report.status) is (Code.COMPLETE if reads else Code.PARTIAL)
    [finding] = report.findings
    assert (finding.status, finding.unread) == ("complete", () if reads else ("papers",))
    assert [gap.title for gap in report.gaps] == ([] if reads else ["Reading papers"])


async def test_an_input_that_nobody_opened_is_told_wherever_the_run_is_shown(
    runs: Runs, connection: Connection
) -> None:
    model = ScriptedModel({"t1": [LISTS, ANSWER], "synthesize": [synthesizes("30 days [t1].")]})
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, READER))
    said = "t1 was to read it with tools, and answered without opening anything of it"
    assert f"**Reading papers** skipped: {said}" in as_markdown(report)
    look = await Reader(connection, report.run_id).look()
    page = page_of(report.run_id, look)
    assert said in page and "Complete, with gaps" in page
    assert look.state is not None
    drawn = board(run_view(look.state))
    assert "Complete, with gaps" in drawn and "opened nothing of papers" in drawn


async def test_what_one_of_two_has_read_is_read(runs: Runs) -> None:
    both = [subtask(each, role="reader", inputs=["papers"]) for each in ("t1", "t2")]
    model = ScriptedModel(
        {"t1": [LISTS, ANSWER], "t2": [READS, ANSWER], "synthesize": [synthesizes("30 days.")]}
    )
    report = await runs.run(goal(runs, *both), model, catalogue=catalogue(runs, READER))
    assert report.status == "complete", report.gaps
    assert [each.unread for each in report.findings] == [("papers",), ()]


@pytest.mark.long
async def test_what_an_earlier_try_has_read_this_one_has_not(runs: Runs) -> None:
    doubt = works("perhaps 30", confidence=10)
    model = ScriptedModel(
        {"t1": [READS, doubt, ANSWER], "synthesize": [synthesizes("30 days [t1].")]}
    )
    report = await runs.run(goal(runs), model, catalogue=catalogue(runs, READER))
    assert report.status == "complete_with_gaps"
    assert report.findings[0].unread == ("papers",)


async def test_an_input_that_was_nobodys_to_read_is_told_as_that(runs: Runs) -> None:
    model = ScriptedModel({"t1": [works("30")], "synthesize": [synthesizes("30 days [t1].")]})
    report = await runs.run(goal(runs, subtask("t1")), model)
    assert report.status == "complete" and not report.gaps
    assert [each.what for each in report.not_run] == ["input papers"]


async def test_a_team_that_opened_nothing_says_so_to_the_run_above(runs: Runs) -> None:
    known = catalogue(runs, READER)
    (runs.folder / "home/roles/department.md").write_text(
        "---\nname: department\ndescription: a whole team\nmodel: sonnet\nteam: true\n---\n"
    )
    teams = Catalogue.load(runs.folder / "home")
    model = ScriptedModel(
        {
            "plan": [plans(subtask("a", role="reader", inputs=["papers"]))],
            "a": [LISTS, ANSWER],
            "synthesize": [synthesizes("30 days [a]."), synthesizes("30 days [t1].")],
        }
    )
    asked = goal(runs, subtask("t1", role="department", inputs=["papers"]))
    both = Catalogue({**known.roles, **teams.roles}, known.playbooks)
    report = await runs.run(asked, model, catalogue=both)
    assert report.status != "complete"
    assert "Reading papers" in report.gaps[0].why


@pytest.mark.long
async def test_a_fork_does_again_what_answered_without_reading(runs: Runs) -> None:
    planned = (
        subtask("t1", role="reader", inputs=["papers"]),
        subtask("t2"),
        subtask("t3", "t1"),
    )
    model = ScriptedModel(
        {
            "t1": [LISTS, ANSWER],
            "t2": [works("two")],
            "t3": [works("three")],
            "synthesize": [synthesizes("30 days [t1].")],
        }
    )
    report = await runs.run(goal(runs, *planned), model, catalogue=catalogue(runs, READER))
    assert "takes over 1 of 3 unpaid" in as_markdown(report)
    shipped = goal(runs, *(each | {"role": "analyst"} for each in planned))
    report = report.model_copy(update={"plan": shipped.plan})
    fork = fork_goal(shipped, report, ForkChange()).fork
    assert fork is not None and [each.subtask_id for each in fork.findings] == ["t2"]
