"""Run one SELECT over files of data, loaded into DuckDB. Runs isolated, in a bounded process of its
own, so it imports nothing of this project.

What is loaded is loaded before the query is looked at; from then on nothing may be opened.
"""

from __future__ import annotations

import codecs
import datetime
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import duckdb

CELL_LETTERS = 500
SAMPLE_ROWS = 3
"""Rows of each table that are shown if nothing is asked yet."""
UNPACKED = 200 * 1024 * 1024
RATIO = 200
"""Most that an XLSX file may unpack to, in bytes and in times its size."""
MOST_CELLS = 4_000_000
MOST_COLUMNS = 1_000
MOST_TABLES = 50
AT_FIRST = (
    "memory_limit='400MB'", "threads=2", "temp_directory=''", "autoload_known_extensions=false",
    "autoinstall_known_extensions=false", "python_enable_replacements=false",
)  # fmt: skip
JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]\s*[\[{\"\]}]")
"""Matches how JSON begins that may be a table."""
BAD_FILE = (duckdb.InvalidInputException, duckdb.ConversionException)
"""Errors of DuckDB for a file that it cannot take; not for want of memory."""
AFTERWARDS = ("enable_external_access=false", "lock_configuration=true")


class Mistake(Exception):
    """The query or file is unusable; the message is for whoever asked."""


def main(request: bytes) -> bytes:
    """Return what the query `sql` says of the files of `sources` (name, path), at most `rows` rows
    of it, as `{"tables": […], "notes": […]}`, or `{"error": …}`; without a query, which tables
    there are.
    """
    asked = json.loads(request)
    try:
        answer = ask(asked["sources"], asked["sql"], asked["rows"])
    except Mistake as error:
        answer = {"error": str(error)}
    return json.dumps(answer).encode()


def ask(sources: Sequence[Mapping[str, str]], sql: str, most: int) -> dict[str, Any]:
    """Load the sources into tables, then run the query over nothing but those."""
    db = duckdb.connect()
    for setting in AT_FIRST:
        db.execute(f"set {setting}")
    notes: list[str] = []
    try:
        for each in sources:
            notes += load(db, each["name"], each["path"])
        for setting in AFTERWARDS:
            db.execute(f"set {setting}")
        if not sql:
            return {"tables": overview(db), "notes": notes}
        statements = db.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise Mistake("exactly one SELECT can be run, and nothing else")
        found = db.execute(statements[0])
        columns = [each[0] for each in found.description or ()]
        rows = [row_of(each) for each in found.fetchmany(most)]
        return {"tables": [{"title": "", "columns": columns, "rows": rows}], "notes": notes}
    except duckdb.OutOfMemoryException as error:
        raise Mistake("it needs more memory than there is; ask for less at once") from error
    except duckdb.Error as error:
        known = ", ".join(name for name, *_ in tables(db))
        raise Mistake(f"{plain_error(error, sources)} (tables: {known or 'none'})") from error


def row_of(values: Sequence[object]) -> list[str | None]:
    """Return the cells of a row as text, each cut if it is too long."""
    return [None if each is None else cell(each) for each in values]


def cell(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= CELL_LETTERS else f"{text[:CELL_LETTERS]}… ({len(text)} letters)"


def plain_error(error: Exception, sources: Sequence[Mapping[str, str]]) -> str:
    """Return what a library says, without the paths of this machine and the picture of the
    place.
    """
    text = str(error).split("\n\nLINE ")[0]
    for each in sources:
        text = text.replace(each["path"], each["name"])
    return re.sub(r"\s+", " ", text)[:600]


def kind_of(path: str) -> str:
    """Return what a file is, by how it begins."""
    with open(path, "rb") as file:
        start = file.read(1_000)
    known = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}.get(start[:4])
    return known or ("json" if JSON.match(start) else "csv")


def load(db: Any, name: str, path: str) -> list[str]:
    """Make tables of a file, and return notes on how it was read."""
    kind = kind_of(path)
    if kind == "parquet":
        db.execute(f"create table {fresh_name(db, name)} as select * from read_parquet(?)", [path])
        return []
    if kind == "xlsx":
        return load_sheets(db, name, path)
    if kind == "json":
        db.execute(f"create table {fresh_name(db, name)} as select * from read_json(?)", [path])
        return []
    encoding, notes = encoding_of(path), []
    options = f"encoding='{encoding}'"
    if encoding != "utf-8":
        notes = [f"{name} is not UTF-8 and was read as {encoding}"]
    target = fresh_name(db, name)
    made = f"create table {target} as select * from read_csv(?, {options}"
    try:
        db.execute(f"{made})", [path])
    except BAD_FILE as error:
        try:
            db.execute(f"{made}, all_varchar=true)", [path])
        except BAD_FILE:
            # The first complaint is the one about the file as it is.
            raise error from None
        notes.append(f"{name}: not every row fits the types of the first ones; all are text, cast")
    return notes


def encoding_of(path: str) -> str:
    """Return UTF-8 if it is, else Latin-1, by which every file can be read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        try:
            while part := file.read(1 << 20):
                decoder.decode(part)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"


def fresh_name(db: Any, name: str) -> str:
    """Return a name for a table, quoted, that no other has."""
    plain = re.sub(r"\W+", "_", name).strip("_").lower() or "data"
    taken = {each for each, *_ in tables(db)}
    if len(taken) >= MOST_TABLES:
        raise Mistake(f"more than {MOST_TABLES} tables; name fewer sources")
    number, free = 1, plain
    while free in taken:
        number += 1
        free = f"{plain}_{number}"
    return f'"{free}"'


def tables(db: Any) -> list[tuple[str, int]]:
    """Return names and numbers of rows of what was loaded."""
    found = db.execute("select table_name, estimated_size from duckdb_tables() order by 1")
    return [(str(name), int(rows)) for name, rows in found.fetchall()]


def overview(db: Any) -> list[dict[str, Any]]:
    """Return each table with its columns, their types and its first rows."""
    shown = []
    for name, count in tables(db):
        found = db.execute(f'select * from "{name}" limit {SAMPLE_ROWS}')
        columns = [f"{column} {kind}" for column, kind, *_ in found.description]
        rows = [row_of(each) for each in found.fetchall()]
        title = f"table {name}, {count:,} row{'s' * (count != 1)}"
        shown.append({"title": title, "columns": columns, "rows": rows})
    return shown


# ---------------------------------------------------------------- sheets


def load_sheets(db: Any, name: str, path: str) -> list[str]:
    """Make a table of each sheet, its first row being the names of the columns."""
    check_packed(name, path)
    # Opened here, as openpyxl takes no path without the ending it expects.
    with open(path, "rb") as file:
        book = open_workbook(name, file)
        notes, left = [], MOST_CELLS
        for sheet in book.worksheets:
            rows = rows_of(name, sheet, left)
            left -= sum(map(len, rows))
            if rows:
                called = name if len(book.worksheets) == 1 else f"{name}_{sheet.title}"
                make_table(db, fresh_name(db, called), rows)
            if sheet.sheet_state != "visible":
                notes.append(f"the sheet {sheet.title!r} of {name} is hidden")
    return notes


def open_workbook(name: str, file: BinaryIO) -> Any:
    """Open the workbook, with the values that its formulas had when it was saved."""
    import openpyxl

    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:
        # What is broken or encrypted makes it fail in many ways.
        raise Mistake(f"{name} cannot be opened as XLSX ({type(error).__name__})") from error


def rows_of(name: str, sheet: Any, most: int) -> list[tuple[object, ...]]:
    """Return the rows of a sheet that hold anything. Raise Mistake if it has more cells than
    `most`.
    """
    rows: list[tuple[object, ...]] = []
    for row in sheet.iter_rows(values_only=True):
        # Rows that are not there cost time, too.
        most -= max(1, len(row))
        if most < 0 or len(row) > MOST_COLUMNS:
            raise Mistake(
                f"the sheet {sheet.title!r} of {name} has cells very far from its first one, or"
                f" too many: up to {MOST_COLUMNS:,} columns and {MOST_CELLS:,} cells are read"
            )
        if any(value is not None for value in row):
            rows.append(row)
    return rows


def check_packed(name: str, path: str) -> None:
    """Raise Mistake for an archive that unpacks to more than any honest one."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as error:
        raise Mistake(f"{name} is a damaged archive, no XLSX file") from error
    whole, packed = sum(each.file_size for each in parts), sum(each.compress_size for each in parts)
    if whole > UNPACKED or whole > RATIO * max(packed, 1):
        raise Mistake(f"{name} would unpack to {whole >> 20} MiB, {RATIO} times its size or more")


def make_table(db: Any, target: str, rows: Sequence[Sequence[object]]) -> None:
    """Make a table of rows, each column with the narrowest type that takes all its values."""
    header, *body = rows
    width = max(len(row) for row in rows)
    names = list(column_names(header, width))
    columns = [[row[place] if place < len(row) else None for row in body] for place in range(width)]
    kinds = [kind_of_column(each) for each in columns]
    defined = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    db.execute(f"create table {target} ({defined})")
    values = [
        [None if value is None else str(value) if kind == "VARCHAR" else value for value in column]
        for column, kind in zip(columns, kinds, strict=True)
    ]
    if body:
        taken = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        db.execute(f"insert into {target} select {taken}", values)


def column_names(header: Sequence[object], width: int) -> Iterator[str]:
    """Yield quoted names, none of them twice; without regard to case, as SQL has none."""
    taken: set[str] = set()
    for place in range(width):
        given = header[place] if place < len(header) else None
        name = free = str(given).replace('"', "'") if given is not None else f"column_{place + 1}"
        number = 1
        while free.lower() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.lower())
        yield f'"{free}"'


def kind_of_column(values: Iterable[object]) -> str:
    kinds = {type(each) for each in values if each is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds and kinds <= {int, float}:
        return "DOUBLE"
    return "TIMESTAMP" if kinds == {datetime.datetime} else "VARCHAR"
