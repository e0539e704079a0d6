"""An answer that is data as a file: JSON as it is, and CSV that no spreadsheet obeys."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from holdfast.cli.shared.delivery import files_of, keep
from holdfast.client.reading import Look
from holdfast.contracts import AnswerForm, Report
from holdfast.rendering.answers import answer_file, as_csv


def rows_of(text: str) -> list[list[str]]:
    return [*csv.reader(io.StringIO(text, newline=""))]


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1", "=HYPERLINK(\"http://x.example\",\"a\")", "+1+cmd|' /C calc'!A0",
        "-2+3+cmd|' /C'!A0", "@SUM(1)", "\t=1", "\n=1", "  =1", "＝1+1", "＋1", "－1+1", "＠a",
        "|calc", "%0a=1", "-", "-a",
    ],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_would_obey_is_a_text_to_it(cell: str) -> None:
    ((head,), (body,)) = rows_of(as_csv({"columns": [cell], "rows": [[cell]]}))
    assert head == body == f"'{cell}"


@pytest.mark.parametrize("cell", ["-5", "+3.25", "-1,000", "1e-7", "40 %", "", "a = b", "a;=b"])
def test_numbers_and_plain_texts_stay_as_they_are(cell: str) -> None:
    assert rows_of(as_csv({"columns": ["a"], "rows": [[cell]]})) == [["a"], [cell]]


def test_quotes_line_ends_and_what_is_not_seen_stay_within_their_cell() -> None:
    cells = ['a "b", c', "a\nb", "\x1b[2J\u202e\x00", "\ud800"]
    (_, row) = rows_of(as_csv({"columns": ["a"] * 4, "rows": [cells]}))
    assert row == ['a "b", c', "a\nb", "\\x1b[2J\\u202e\\x00", "\\ud800"]


def report(form: AnswerForm, document: object) -> Report:
    fields = {"status": "complete", "run_id": "r-1", "goal": "g", "form": form}
    return Report.model_validate({**fields, "document": document, "answer": "said"})


def test_the_answer_is_a_file_beside_the_report_if_it_is_data(tmp_path: Path) -> None:
    look = Look()
    keep(report(AnswerForm(), None), tmp_path, look)
    assert {each.name for each in tmp_path.iterdir()} == {"r-1.md", "r-1.json", "r-1.html"}
    data = {"a": ["\u202e", 1.5, None, {"b": "ä"}]}
    keep(report(AnswerForm(kind="json", result={"type": "object"}), data), tmp_path, look)
    written = (tmp_path / "r-1+answer.json").read_text("utf-8")
    assert json.loads(written) == data and "\\u202e" in written and "ä" in written
    assert json.loads((tmp_path / "r-1.json").read_text("utf-8"))["document"] == data
    table = {"columns": ["a"], "rows": [["=1"]]}
    keep(report(AnswerForm(kind="table"), table), tmp_path, look)
    path = tmp_path / "r-1+answer.csv"
    assert path.read_bytes() == b'"a"\r\n"\'=1"\r\n' and path.stat().st_mode & 0o777 == 0o600


def test_a_failed_form_leaves_no_file() -> None:
    assert answer_file(report(AnswerForm(kind="table"), None)) is None


def test_no_run_can_have_the_id_that_another_ones_answer_is_called_by(tmp_path: Path) -> None:
    table = report(AnswerForm(kind="table"), {"columns": ["a"], "rows": []})
    data = report(AnswerForm(kind="json", result={"type": "object"}), {"a": 1})
    for made in (table, data):
        keep(made, tmp_path, Look())
    for name in ("r-1.answer", "r-1+answer", "r-1.files"):
        keep(data.model_copy(update={"run_id": name, "document": None}), tmp_path, Look())
    assert json.loads((tmp_path / "r-1+answer.json").read_text("utf-8")) == {"a": 1}
    assert (tmp_path / "r-1+answer.csv").read_bytes() == b'"a"\r\n'
    assert files_of("r-1", tmp_path) != files_of("r-1.files", tmp_path)
    assert not files_of("r-1", tmp_path).exists()
