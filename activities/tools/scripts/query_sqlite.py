"""Run one SELECT over a SQLite file, which is opened for reading alone. Runs isolated, in a bounded
process of its own, so it imports nothing of this project.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote

CELL_LETTERS = 500
SAMPLE_ROWS = 3
"""Rows of each table that are shown if nothing is asked yet."""
MOST_TABLES = 50
VALUE_BYTES = 10 * 1024 * 1024
"""The longest value that may be made."""
DEFINITION_LETTERS = 2_000
READING = (
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
)  # fmt: skip


def main(request: bytes) -> bytes:
    """Return what the query `sql` says of the file `path`, at most `rows` rows of it, as
    `{"tables": …}`, or `{"error": …}`; without a query, which tables there are.
    """
    asked = json.loads(request)
    uri = f"file:{quote(asked['path'])}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        db.text_factory = lambda value: value.decode("utf-8", "replace")
        # What a stranger's file defines may call nothing that has effects.
        db.execute("pragma trusted_schema=off")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
        answer: dict[str, object]
        try:
            # What is damaged may answer, with what never stood in it.
            if db.execute("pragma quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("this file is damaged")
            db.set_authorizer(authorise)
            found = ask(db, asked["sql"], asked["rows"]) if asked["sql"] else describe_tables(db)
            answer = {"tables": found}
        except (sqlite3.Error, sqlite3.Warning) as error:
            answer = {"error": f"{error}; one SELECT can be run, and nothing else"}
    return json.dumps(answer).encode()


def authorise(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def ask(db: sqlite3.Connection, sql: str, most: int) -> list[dict[str, Any]]:
    """Return the rows that a query finds."""
    found = db.execute(sql)
    columns = [each[0] for each in found.description or ()]
    rows = [row_of(each) for each in found.fetchmany(most)]
    return [{"title": "", "columns": columns, "rows": rows}]


def describe_tables(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return how each table and view was defined, and its first rows."""
    known = db.execute(
        "select name, coalesce(sql, '') from sqlite_schema where type in ('table', 'view')"
    )
    shown = []
    for name, definition in known.fetchmany(MOST_TABLES):
        quoted = '"' + str(name).replace('"', '""') + '"'
        try:
            (part,) = ask(db, f"select * from {quoted}", SAMPLE_ROWS)
        except sqlite3.Error as error:
            part = {"columns": [f"cannot be read: {error}"], "rows": []}
        shown.append({**part, "title": definition[:DEFINITION_LETTERS]})
    return shown


def row_of(values: Sequence[object]) -> list[str | None]:
    """Return the cells of a row as text, each cut if it is too long."""
    return [None if each is None else cell(each) for each in values]


def cell(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= CELL_LETTERS else f"{text[:CELL_LETTERS]}… ({len(text)} letters)"
