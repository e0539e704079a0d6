"""The answer of a run as a file of its own: what programs read beside the report. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from holdfast.contracts import Report
from holdfast.text import for_json, visible

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠|%]|[\t\r\n]")
"""How a cell begins that a spreadsheet may take for a formula, or for a command behind one."""
NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?%?\Z")
"""A cell that is nothing but a number may begin with a sign."""


def answer_file(report: Report) -> tuple[str, str] | None:
    """Return the ending of its name, which no run's id can have, and its text; None if the answer
    is text, which the report has.
    """
    if report.document is None:
        return None
    if report.form.kind == "table":
        return "+answer.csv", as_csv(report.document)
    written = json.dumps(report.document, ensure_ascii=False, indent=2)
    return "+answer.json", for_json(written) + "\n"


def as_csv(table: Any) -> str:
    """Return a table as CSV in which each cell is quoted, and none is a formula to a spreadsheet:
    what may be one has an apostrophe before it. Characters that are not seen are shown as their
    escapes.
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for row in (table["columns"], *table["rows"]):
        writer.writerow(map(csv_cell, row))
    return text.getvalue()


def csv_cell(text: str) -> str:
    """Return the text of a cell that is no formula to a spreadsheet, its hidden letters shown."""
    shown = visible(text, keep="\n\t")
    return f"'{shown}" if FORMULA.match(shown) and not NUMBER.match(shown) else shown
