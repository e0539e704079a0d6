"""The result of a role with a `result` schema: as text for models, and as Markdown for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from holdfast.contracts import Finding
from holdfast.text import inline

Data = Mapping[str, JsonValue]
MOST_COLUMNS = 8
"""A list of objects with more fields than this is not readable as a table."""


def as_text(data: Data) -> str:
    """Return data as the content of a finding."""
    return json.dumps(data, ensure_ascii=False, indent=1)


def is_data(finding: Finding) -> bool:
    """True if the content of a finding is its data, as its role's schema wants it. Content that was
    cut or digested is text, and a lens has text beside its data.
    """
    return bool(finding.data) and finding.content == as_text(finding.data)


def as_markdown(data: Data) -> str:
    """Return data for people: a line for each field, a table for objects that are alike."""
    return "\n".join(_fields(data, ""))


def block(value: JsonValue) -> str:
    """Return a value as a code block in Markdown. No line of JSON can end the block: each begins
    with a bracket, a quote, or a word of JSON.
    """
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; an empty cell is a dash."""
    return "\n".join(_table(columns, [[inline(cell) or "–" for cell in row] for row in rows]))


def texts(value: JsonValue) -> Iterator[str]:
    """Yield each text and number in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


def _fields(data: Data, indent: str) -> Iterator[str]:
    for name, value in data.items():
        yield from _entry(f"{indent}- **{inline(name)}**:", value, indent + "  ")


def _entry(head: str, value: JsonValue, indent: str) -> Iterator[str]:
    columns = _columns(value)
    if columns and isinstance(value, list):
        yield head
        yield ""
        rows = [[_scalar(row[name]) for name in columns] for row in value if isinstance(row, dict)]
        yield from (indent + line for line in _table(columns, rows))
        yield ""
    elif isinstance(value, dict) and value:
        yield head
        yield from _fields(value, indent)
    elif isinstance(value, list) and value:
        yield head
        for each in value:
            yield from _entry(f"{indent}-", each, indent + "  ")
    else:
        yield f"{head} {_scalar(value)}"


def _columns(value: JsonValue) -> tuple[str, ...]:
    """Return the fields of a list of flat objects that all have the same ones; else none."""
    rows = value if isinstance(value, list) else []
    names = tuple(rows[0]) if rows and isinstance(rows[0], dict) else ()
    alike = all(isinstance(row, dict) and tuple(row) == names and _flat(row) for row in rows)
    return names if alike and len(names) <= MOST_COLUMNS else ()


def _flat(row: Data) -> bool:
    return not any(isinstance(each, dict | list) for each in row.values())


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(map(inline, columns))
    yield "|" + "---|" * len(columns)
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _scalar(value: JsonValue) -> str:
    if isinstance(value, str):
        return inline(value) or "–"
    if value is None or isinstance(value, dict | list):
        return "–"
    return json.dumps(value)
