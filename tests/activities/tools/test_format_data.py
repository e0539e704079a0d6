"""The formatter of writers: exact text for a table, CSV or JSON, or the place of a mistake."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from hands import Bench
from holdfast.activities.tools.format_data import format_data

pytestmark = pytest.mark.anyio
ROWS = [["Ann | Co", 1.5, None], ["=SUM(A1)", -3, 'says "no",\nthen yes [t2]']]
COLUMNS = ["who", "cost", "note"]


async def made(**arguments: Any) -> str:
    return await Bench().told(format_data, **arguments)


async def test_rows_become_a_markdown_table_whose_cells_cannot_leave_it() -> None:
    lines = (await made(form="markdown", columns=COLUMNS, rows=ROWS)).split("\n")
    assert lines == [
        "| who | cost | note |",
        "| --- | --- | --- |",
        "| Ann \\| Co | 1.5 |  |",
        '| =SUM(A1) | -3 | says "no", then yes [t2] |',
    ]


async def test_csv_reads_back_cell_by_cell_and_holds_no_formula() -> None:
    text = await made(form="csv", columns=COLUMNS, rows=ROWS)
    assert [*csv.reader(io.StringIO(text, newline=""))] == [
        COLUMNS,
        ["Ann | Co", "1.5", ""],
        ["'=SUM(A1)", "-3", 'says "no",\nthen yes [t2]'],
    ]


async def test_a_list_of_objects_is_a_table_and_rows_are_a_list_of_objects() -> None:
    text = await made(form="json", columns=["a", "b"], rows=[[1, "x"], [2, None]])
    assert json.loads(text) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    table = await made(form="markdown", text=text)
    assert table.split("\n")[2:] == ["| 1 | x |", "| 2 |  |"]
    assert json.loads(await made(form="json", text='{"any": ["thing"]}')) == {"any": ["thing"]}


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"columns": ["a", "b"], "rows": [["1", "2"], ["3"]]}, "rows[1] and the columns differ"),
        ({"columns": ["a", "a "], "rows": []}, "columns: 'a' stands there 2 times"),
        ({"columns": ["a", " "], "rows": []}, "columns[1] has no name"),
        ({"text": '[{"a": 1}, {"b": 1}]'}, "text[1] has no 'a', which text[0] has"),
        ({"text": '[{"a": 1}, {"a": 1, "b": 1}]'}, "text[1] has 'b', which text[0] has not"),
        ({"text": '[{"a": [1]}]'}, "text[0].a is not a cell"),
        ({"text": '[{"a": 1,}]'}, "text: not JSON: line 1 column "),
        ({"text": '[{"a": 1, "a": 2}]'}, "text: the key 'a' is given twice"),
        ({"text": "[]"}, "a list of objects, with one at least"),
        ({"text": "[1]", "columns": ["a"]}, "and not both"),
        ({}, "and not both"),
    ],
)
async def test_what_a_reader_would_stumble_over_is_refused_with_its_place(
    arguments: dict[str, Any], wrong: str
) -> None:
    assert wrong in await Bench().refused(format_data, form="markdown", **arguments)


async def test_it_is_handed_up_as_a_file_as_well() -> None:
    here = Bench()
    told = await here.told(format_data, form="csv", columns=["a"], rows=[["1"]], file_name="a.csv")
    assert here.files == {"a.csv": b'"a"\r\n"1"\r\n'}
    assert told.startswith("[a.csv is handed up (10 bytes).]")
