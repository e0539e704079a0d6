"""`show RUN SUBTASK --rows …`: the rows of a map, on the screen, as CSV or as JSON."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice

from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from holdfast.activities.mapping.closing import cells_of
from holdfast.cli.screen.exits import Code
from holdfast.cli.screen.streams import draw, put, put_json, say
from holdfast.client.rows import Row, Rows, read_rows
from holdfast.contracts.orders import RowsWhich
from holdfast.intake.connection import Connection
from holdfast.text import one_line

MOST_SHOWN = 200
"""Rows on a screen."""
CELL_LETTERS = 200
HIDDEN = ("place", "tier", "tries", "dollars")
"""Columns that a screen does not have."""


async def run(
    connection: Connection,
    run_id: str,
    subtask: str,
    which: RowsWhich,
    *,
    as_json: bool,
    as_csv: bool,
) -> int:
    """Print the rows of a map that stand so, in the order of its items."""
    async with read_rows(connection, run_id, subtask, which) as rows:
        if as_json:
            await _put_json(rows)
        elif as_csv:
            await _put_csv(rows)
        else:
            await _draw(rows, which)
    return Code.COMPLETE


async def _put_json(rows: Rows) -> None:
    """Print a list, a line for each row, as they are read."""
    before = "["
    async for page in rows.pages:
        for row in page:
            put_json(before + json.dumps(row, ensure_ascii=False))
            before = ","
    put("]" if before == "," else "[]")


async def _put_csv(rows: Rows) -> None:
    put(_lines([{each: each for each in rows.heads}]))
    async for page in rows.pages:
        put(_lines(page))


def _lines(page: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(map(cells_of, page))
    return text.getvalue().removesuffix("\n")


async def _draw(rows: Rows, which: RowsWhich) -> None:
    heads = [each for each in rows.heads if each not in HIDDEN]
    table, count = Table(), 0
    for each in heads:
        table.add_column(Text(one_line(each)), overflow="fold")
    async for page in rows.pages:
        for row in islice(page, max(MOST_SHOWN - count, 0)):
            table.add_row(*(Text(_cell(row[each])) for each in heads))
        count += len(page)
    if not count:
        say("the map has no rows" if which == "all" else f"no row is {which}")
        return
    draw(table)
    if count > MOST_SHOWN:
        say(f"the first {MOST_SHOWN} of {count:,} rows; --csv and --json print all")


def _cell(value: JsonValue) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    line = one_line(text)
    return line if len(line) <= CELL_LETTERS else f"{line[:CELL_LETTERS]}…"
