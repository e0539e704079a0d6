"""Answer questions to tables: one SELECT over inputs, by DuckDB or SQLite."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

import anyio.to_thread
from pydantic import Field

from holdfast.activities.toolset.child import in_child
from holdfast.activities.toolset.inputs import read
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import pluralize

SECONDS = 30.0
LARGEST = 200 * 1024 * 1024
"""Bytes of a file that is loaded."""
MOST_ROWS = 500
SQLITE = b"SQLite format 3\0"
"""First bytes of a SQLite file."""

Source = Annotated[str, Field(min_length=1, max_length=500)]


@tool(seconds=45, reads=("folder", "repository", "table"), extra="data")
async def query_data(
    here: Here,
    sources: Annotated[
        list[Source],
        Field(
            min_length=1,
            max_length=10,
            description="CSV, JSON, Parquet, XLSX or SQLite: an input's name, or INPUT/file",
        ),
    ],
    sql: Annotated[
        str, Field(max_length=10_000, description="One SELECT; empty: which tables there are")
    ] = "",
) -> str:
    """Ask tables of data by SQL, read-only. Each source becomes a table named after it, each sheet
    of a workbook one of its own: call it without `sql` first to see names, types and first rows.
    The dialect is DuckDB's. A SQLite file is asked alone, in SQLite's dialect, and its tables keep
    their names. Numbers of CSV files are floating-point: cast money to DECIMAL before summing.
    """
    with tempfile.TemporaryDirectory(prefix="query-") as folder:
        placed = {
            each: await _place(here, each, Path(folder) / str(place))
            for place, each in enumerate(sources)
        }
        answer = await _ask(placed, sql.strip())
    if "error" in answer:
        raise ToolError(answer["error"])
    return "\n".join([*map(_table, answer["tables"]), *_bracketed(answer.get("notes", ()))])


async def _ask(placed: dict[str, Path], sql: str) -> dict[str, Any]:
    """Return what the child answers: `tables` and `notes`, or an `error`."""
    # One more than is shown tells that there are more.
    asked: dict[str, Any] = {"sql": sql, "rows": MOST_ROWS + 1}
    if any(map(_is_sqlite, placed.values())):
        if len(placed) > 1:
            raise ToolError("a SQLite file is asked alone; name it as the only source")
        (path,) = placed.values()
        script, asked = "query_sqlite.py", {**asked, "path": str(path)}
    else:
        named = [{"name": _table_name(each), "path": str(path)} for each, path in placed.items()]
        script, asked = "query_tables.py", {**asked, "sources": named}
    answer = await in_child(script, json.dumps(asked).encode(), seconds=SECONDS)
    return cast(dict[str, Any], json.loads(answer))


def _table(found: Mapping[str, Any]) -> str:
    """Return a table as CSV, with its title before it, or how many rows there are behind it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(found["columns"])
    rows = found["rows"]
    for row in rows[:MOST_ROWS]:
        writer.writerow("NULL" if each is None else each for each in row)
    if found["title"]:
        return f"{found['title']}\n{text.getvalue()}"
    more = f"the first {MOST_ROWS} rows; there are more" if len(rows) > MOST_ROWS else ""
    return f"{text.getvalue()}[{more or pluralize(len(rows), 'row')}]"


def _bracketed(notes: Iterable[str]) -> list[str]:
    return [f"[{each}]" for each in notes]


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _table_name(source: str) -> str:
    """Return what a table is called: as its input, or as its file without the ending."""
    return PurePosixPath(source).stem


async def _place(here: Here, source: str, free: Path) -> Path:
    """Put the source into a file of its own, as libraries do not read bytes."""
    content = await read(here, source, LARGEST)
    await anyio.to_thread.run_sync(free.write_bytes, content)
    return free
