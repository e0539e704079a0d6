"""What a run is called, how runs are listed, and which files a report may be written to."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.converter import encode_typed_search_attribute_value

from driving import Drive, subtask
from encrypted import write_keys
from holdfast.cli.commands.runs.list import _nothing_listed, lines
from holdfast.cli.screen.exits import Exit
from holdfast.cli.shared.delivery import place
from holdfast.cli.shared.options import check_file, check_out
from holdfast.client import documents
from holdfast.client.listing import PROBLEMS, Listed, _status, listed
from holdfast.contracts import Limits, PinnedInput, Report, Synthesis, Unreached
from holdfast.contracts.search import (
    MEMO_DOLLARS,
    MEMO_REMARKS,
    MEMO_STATUS,
    MEMO_TITLE,
    MEMO_WHY,
    OUTAGE,
    STATUS,
)
from holdfast.contracts.titles import describe_input, title_of
from holdfast.deployment.settings import Settings
from holdfast.intake.connection import Connection
from holdfast.intake.launch import summary
from holdfast.ledger.ledger import Amount, Ledger
from holdfast.rendering.listing import memo, stands, where
from holdfast.rendering.report import inputs
from holdfast.state.events import Trouble, Unanswered
from holdfast.state.moves import Ask
from holdfast.storage.keys import Keyring
from holdfast.temporal.connection import Target, data_converter
from holdfast.text import PLAIN_ID
from outcomes import begun, end

RUN = Listed(
    "code-review-1122-mm80w",
    "waits for approval",
    "2026-11-22T11:00:00+00:00",
    12.0,
    "Review of httpx at 1a2b3c4d5e, against main",
    "0.0873",
    "0.05",
    "code-review",
    9_000.0,
)
REPOSITORY = PinnedInput(name="repo", kind="repository", size=1, path="/x/httpx", commit="1a" * 20)


@pytest.mark.parametrize("width", [None, 160, 120, 80, 60, 40, 24, 10])
def test_a_list_never_cuts_an_id_and_fits_the_screen(width: int | None) -> None:
    head, line = lines([RUN], width)
    assert line.startswith(RUN.id) and head.startswith("run")
    assert width is None or cell_len(line) <= max(width, len(RUN.id))


def test_a_list_that_is_piped_is_whole_and_marks_what_is_assumed() -> None:
    _, line = lines([RUN], None)
    for part in (RUN.status, RUN.goal, "≤ $0.0873", "12 s", "code-review", "2 h"):
        assert part in line


@pytest.mark.parametrize(
    ("width", "parts"),
    [
        (40, ("waits for",)),
        (80, ("waits for approval", "Review of httpx", "2 h")),
        (120, ("waits for approval", "Review of httpx", "2 h", "≤ $0.0873", "  code-review")),
    ],
)
def test_a_narrow_list_keeps_what_matters_most(width: int, parts: tuple[str, ...]) -> None:
    _, line = lines([RUN], width)
    assert all(part in line for part in parts), line


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0 s"), (59, "59 s"), (300, "5 min"), (7_300, "2 h"), (9e5, "10 d")],
)
def test_the_age_of_a_run_is_in_the_unit_that_says_something(seconds: float, shown: str) -> None:
    head, line = lines([replace(RUN, age=seconds)], None)
    assert line[head.index("age") :].startswith(shown)


def test_a_list_says_what_stopped_a_run_that_failed() -> None:
    refused = Listed("r", "failed", RUN.started, 1.0, "Compare", why="cap too small")
    assert "failed: cap too small" in [*lines([refused], 80)][1]
    small = Drive(None, Limits(dollars=Decimal("0.001"))).state
    assert small.phase == "closed"
    assert memo(small)[MEMO_STATUS] == "failed" and memo(small)[MEMO_WHY] == "cap too small"
    spent = begun(subtask("a"), model_calls=1)
    end(spent, "work-a-1", "fails a check")
    assert memo(spent.state)[MEMO_WHY] == "cap", "it got as far as a call"
    key = begun(subtask("a"))
    end(key, "work-a-1", "stopping")
    assert memo(key.state)[MEMO_WHY] == "endpoint"
    whole = begun(subtask("a"))
    end(whole, "work-a-1")
    assert memo(whole.state)[MEMO_WHY] == ""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("where", "said"),
    [("approval", "waits for approval"), (OUTAGE, "waits for the endpoint"), ("work", "running")],
)
async def test_a_list_says_what_an_open_run_waits_for(where: str, said: str) -> None:
    info = WorkflowExecutionInfo(status=WorkflowExecutionStatus.RUNNING.value)  # type: ignore[arg-type]
    told = encode_typed_search_attribute_value(STATUS, where)
    info.search_attributes.indexed_fields[STATUS.name].CopyFrom(told)
    run = WorkflowExecution._from_raw_info(info, "default", data_converter(None))
    assert await _status(run) == said


@pytest.mark.anyio
async def test_a_run_whose_key_is_not_here_is_listed_with_that_and_breaks_no_list(
    tmp_path: Path,
) -> None:
    writes = data_converter(None, Keyring(write_keys(tmp_path / "one", "one")))
    (told,) = await writes.encode(["goalcanary"])
    info = WorkflowExecutionInfo(status=WorkflowExecutionStatus.COMPLETED.value)  # type: ignore[arg-type]
    for name in (MEMO_TITLE, MEMO_STATUS):
        info.memo.fields[name].CopyFrom(told)
    run = WorkflowExecution._from_raw_info(info, "default", data_converter(None))
    found = await listed(run)
    assert found.status == "completed" and "encrypted with key 'one'" in found.goal
    has = WorkflowExecution._from_raw_info(info, "default", writes)
    assert (await listed(has)).goal == "goalcanary"


def test_what_rows_of_a_map_cost_is_listed_though_they_are_no_calls_of_the_run() -> None:
    state = begun(subtask("a")).state
    assert memo(state)[MEMO_DOLLARS] != ""
    none = Ledger.under(Limits())
    assert memo(replace(state, ledger=none))[MEMO_DOLLARS] == ""
    rows = replace(none, spent=Amount(Decimal("0.5")))
    assert memo(replace(state, ledger=rows))[MEMO_DOLLARS] == "0.5"


def test_a_run_is_found_by_the_outage_that_it_waits_in() -> None:
    drive = begun(subtask("a"))
    assert where(drive.state) == "working" and not stands(drive.state)
    gone = Trouble("unreachable", "refused", unreached=Unreached(address="http://a", why="refused"))
    (move,) = drive.in_flight
    assert isinstance(move, Ask)
    drive.put(Unanswered(move, gone))
    assert where(drive.state) == OUTAGE and stands(drive.state)


def test_a_list_keeps_hostile_words_on_their_line() -> None:
    hostile = Listed("r", "running", RUN.started, 1.0, "\x1b[2J\u202egnp\nexe")
    (_, line) = lines([hostile], 80)
    assert line.isprintable()


def test_a_playbooks_run_is_called_by_what_it_reads_and_any_other_by_its_goal() -> None:
    own, pattern = "Review the repository", "Review of {repo}"
    assert title_of(own, own, pattern, [REPOSITORY]) == "Review of httpx at 1a1a1a1a1a"
    assert title_of("Look for SQL", own, pattern, [REPOSITORY]) == "Look for SQL"
    assert title_of("g", "g", "", []) == "g"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"changed": 0}, "httpx at 1a1a1a1a1a"),
        ({"changed": 1}, "httpx at 1a1a1a1a1a, with 1 file not committed"),
        (
            {"changed": 2, "base": "2b" * 20, "base_name": "main"},
            "httpx at 1a1a1a1a1a, with 2 files not committed, against main",
        ),
        ({"commit": ""}, "httpx, nothing committed yet"),
    ],
)
def test_a_repository_is_named_with_its_commit(fields: dict[str, object], shown: str) -> None:
    assert describe_input(REPOSITORY.model_copy(update=fields)) == shown


def test_a_summary_is_harmless_and_fits_what_the_server_takes() -> None:
    assert summary("<b>Review</b> of *x*") == "&lt;b&gt;Review&lt;/b&gt; of \\*x\\*"
    assert len(summary("<" * 500).encode()) <= 400
    assert len(summary("漢" * 500).encode()) <= 400


def test_a_report_names_each_input_with_commit_base_and_what_is_not_in_it() -> None:
    base = {"changed": 3, "base": "2b" * 20, "base_name": "main"}
    notes = PinnedInput(name="notes", kind="text", size=1234)
    report = Report(
        status="complete",
        run_id="r",
        goal="g",
        title="Review of httpx",
        inputs=(REPOSITORY.model_copy(update=base), notes),
    )
    page = documents.as_markdown(report)
    assert page.startswith("# Review of httpx\n")
    assert (
        f"- **repo**, repository, `/x/httpx`, commit `{'1a' * 20}`, 3 files not as committed,"
        f" compared with `main`, `{'2b' * 20}`\n- **notes**, text, 1,234 bytes" in page
    )


@pytest.mark.parametrize("name", ["r.htm.bak", "r.pdf", "r.md.bak", "r.xml"])
def test_a_report_is_not_written_under_an_ending_that_says_something_else(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(Exit) as stop:
        check_out(tmp_path / name)
    assert "Markdown, JSON or HTML" in str(stop.value) and "\n" not in str(stop.value)
    assert check_file(tmp_path / name) == tmp_path / name


@pytest.mark.parametrize("name", ["r.md", "r.JSON", "r.txt", "r"])
def test_a_report_is_written_as_markdown_or_json(tmp_path: Path, name: str) -> None:
    assert check_out(tmp_path / name) == tmp_path / name


def test_a_list_tells_a_review_with_criticals_from_one_without() -> None:
    run = begun(subtask("a"))
    end(run, "work-a-1")
    done = run.state.finishing
    for counts, said in (
        ({"critical": 6, "warning": 1, "info": 40}, "6 critical, 1 warning, 40 info"),
        ({"critical": 0, "warning": 0, "info": 0}, "no remarks, not whole"),
        (None, ""),
    ):
        data: dict[str, Any] = {"by_severity": counts, "looked_at": {"bugs": 4}} if counts else {}
        data |= {"lacks": ["nobody looked"]} if said.endswith("whole") else {}
        made = Synthesis(answer="", by_template=True, data=data)
        kept = memo(replace(run.state, finishing=replace(done, synthesis=made)))
        assert kept[MEMO_REMARKS] == said
        listed = replace(RUN, status="complete", remarks=said)
        (_, line) = lines([listed], 80)
        assert (said or "complete") in line and ("complete" in line) == (not said)
        stopped = replace(listed, status="budget_stopped")
        (_, line) = lines([stopped], 80)
        assert f"{said}, budget stopped".removeprefix(", ") in line


def test_a_short_text_among_the_inputs_is_told_as_it_is_and_a_long_one_by_its_size() -> None:
    short = PinnedInput(name="base", kind="text", size=4, preview="main")
    long = PinnedInput(name="notes", kind="text", size=900, preview="word " * 180)
    told = list(inputs(Report(run_id="r", status="complete", goal="g", inputs=(short, long))))
    assert told == ["**base**, text, `main`", "**notes**, text, 900 bytes"]


@pytest.mark.anyio
@pytest.mark.parametrize("status", [9, 99])
async def test_a_status_that_neither_we_nor_the_sdk_know_breaks_no_list(status: int) -> None:
    info = WorkflowExecutionInfo(status=status)  # type: ignore[arg-type]
    found = WorkflowExecution._from_raw_info(info, "default", data_converter(None))
    assert found.status is WorkflowExecutionStatus.RUNNING
    assert await _status(found) == "running"


@pytest.mark.anyio
async def test_a_run_that_an_operator_paused_is_listed_as_that_and_breaks_no_list() -> None:
    """Its status is one of a newer server's, which the SDK does not know."""
    info = WorkflowExecutionInfo(status=8)  # type: ignore[arg-type]
    info.execution.workflow_id = "r1"
    paused = WorkflowExecution._from_raw_info(info, "default", data_converter(None))
    assert paused.status is WorkflowExecutionStatus.RUNNING, (
        "what is not known to be closed is open"
    )
    assert await _status(paused) == "paused in Temporal"


@pytest.mark.anyio
async def test_a_run_whose_next_step_fails_again_and_again_is_listed_as_stuck() -> None:
    info = WorkflowExecutionInfo(status=WorkflowExecutionStatus.RUNNING.value)  # type: ignore[arg-type]
    told = SearchAttributeKey.for_keyword_list(PROBLEMS)
    why = encode_typed_search_attribute_value(told, ["category=WorkflowTaskFailed"])
    info.search_attributes.indexed_fields[PROBLEMS].CopyFrom(why)
    found = WorkflowExecution._from_raw_info(info, "default", data_converter(None))
    assert await _status(found) == "stuck"


def test_the_id_of_a_run_that_a_schedule_started_is_one_and_has_files_of_its_own(
    tmp_path: Path,
) -> None:
    scheduled = "nightly-2026-11-23T06:28:00Z"
    assert PLAIN_ID.fullmatch(scheduled)
    file = place(scheduled, tmp_path, ".html")
    assert file == tmp_path / f"{scheduled}.html"
    assert file != place(scheduled.replace(":", "_"), tmp_path, ".html")
    assert not any(PLAIN_ID.fullmatch(each) for each in (":a", "a:/b", "a/../b", "a b", "a;b"))


def test_an_empty_list_beside_a_full_journal_says_that_runs_are_gone_and_where_reports_are(
    tmp_path: Path,
) -> None:
    settings = Settings(_env_file=None, state_dir=tmp_path)
    connection = Connection(settings, Target("127.0.0.1:1"), None)  # type: ignore[arg-type]
    assert _nothing_listed(connection).startswith("No runs yet.")
    assert _nothing_listed(connection, evals=2).startswith("No runs but trials of evals")
    entry = tmp_path / "journal" / "default"
    entry.mkdir(parents=True)
    said = _nothing_listed(connection)
    assert "temporal.db there was lost or replaced" in said and str(tmp_path / "reports") in said
    own = replace(connection, target=Target("127.0.0.1:1", embedded=False))
    assert _nothing_listed(own).startswith("No runs yet."), "of an operator's server nobody knows"
