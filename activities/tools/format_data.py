"""Format rows or JSON as text that readers and programs can take as it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.rendering.answers import as_csv
from holdfast.text import for_json
from holdfast.untrusted.reading import NotPlain, from_json

Cell = str | int | float | bool | None


@tool(seconds=15, reads=())
async def format_data(
    here: Here,
    form: Annotated[Literal["markdown", "csv", "json"], Field(description="What to make of it")],
    columns: Annotated[
        list[str], Field(max_length=100, description="Heads of a table; none beside `text`")
    ] = [],  # noqa: B006 - it is only read, and the schema shows it
    rows: Annotated[
        list[list[Cell]], Field(max_length=2_000, description="Its rows, a cell for each column")
    ] = [],  # noqa: B006
    text: Annotated[
        str, Field(max_length=400_000, description="JSON, in place of columns and rows")
    ] = "",
    file_name: Annotated[
        str, Field(max_length=100, description="Hand it up as a file, too: prices.csv")
    ] = "",
) -> str:
    """Make a Markdown table, CSV or JSON, and get the exact text of it for your answer. Give
    `columns` and `rows`, or JSON in `text`; a table is made of a list of objects with the same
    fields. Rows of another length, columns without a name or named twice, and what is not JSON are
    refused with their place. In CSV a cell that a spreadsheet would run has an apostrophe before.
    """
    if bool(text.strip()) == bool(columns):
        raise ToolError("give `columns` with `rows`, or JSON in `text`, and not both")
    value = _parse(text) if not columns else None
    if columns or form != "json":
        columns, rows = (columns, rows) if columns else _read_objects(value)
        _check(columns, rows)
        value = [dict(zip(columns, row, strict=True)) for row in rows]
    match form:
        case "json":
            made = for_json(json.dumps(value, ensure_ascii=False, indent=2))
        case "csv":
            made = as_csv({"columns": columns, "rows": [[*map(_written, row)] for row in rows]})
        case "markdown":
            made = _as_markdown(columns, rows)
    if not file_name:
        return made
    file = await here.hand_up(file_name, made.encode("utf-8", "backslashreplace"))
    return f"[{file.name} is handed up ({file.size:,} bytes).]\n{made}"


def _parse(text: str) -> Any:
    try:
        return from_json(text)
    except NotPlain as error:
        raise ToolError(f"text: {error}") from None


def _read_objects(value: Any) -> tuple[list[str], list[list[Cell]]]:
    """Return the columns and rows of a list of objects. Raise ToolError with the first place where
    it is not a table.
    """
    items = value if isinstance(value, list) else []
    if not items or not all(isinstance(each, dict) for each in items):
        raise ToolError("text: a table is made of a list of objects, with one at least")
    columns = list(items[0])
    for place, item in enumerate(items):
        _check_object(place, item, columns)
    return columns, [[item[name] for name in columns] for item in items]


def _check_object(place: int, item: Mapping[str, Any], columns: Sequence[str]) -> None:
    for name in columns:
        if name not in item:
            raise ToolError(f"text[{place}] has no {name!r:.80}, which text[0] has")
    for name, cell in item.items():
        if name not in columns:
            raise ToolError(f"text[{place}] has {name!r:.80}, which text[0] has not")
        if isinstance(cell, list | dict):
            raise ToolError(
                f"text[{place}].{name:.80} is not a cell: text, number, true, false, null"
            )


def _check(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    for place, name in enumerate(columns):
        if not name.strip():
            raise ToolError(f"columns[{place}] has no name")
    name, count = Counter(each.strip() for each in columns).most_common(1)[0]
    if count > 1:
        raise ToolError(f"columns: {name!r:.80} stands there {count} times; name each once")
    for place, row in enumerate(rows):
        if len(row) != len(columns):
            raise ToolError(
                f"rows[{place}] and the columns differ in length: {len(row)} and {len(columns)}"
            )


def _as_markdown(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    lines = [columns, ["---"] * len(columns), *([*map(_written, row)] for row in rows)]
    return "\n".join(f"| {' | '.join(map(_in_line, each))} |" for each in lines)


def _in_line(cell: str) -> str:
    """Return a cell that ends neither its line nor itself; markup and citations stay."""
    return " ".join(cell.split()).replace("|", "\\|")


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell)
