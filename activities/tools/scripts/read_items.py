"""Read the items of a file one by one: lines, records of JSON, rows of tables. Runs isolated, in a
bounded process of its own, so it imports nothing of this project.

`main` takes JSON (`path`, `by`, `fields` that are wanted, none: all; `id`, the field that names an
item; `most` bytes that an item may show; `short` characters that other fields may have, of which
one more is read where they have more, and nothing of lists and objects) and yields lines of JSON:
for each item `[place, fields, why it is broken]`, at the end `{"fields": […], "note": how it was
read}`, or `{"refused": why}`.
However large the file is, no more than one item of it is held.
"""

import csv
import datetime
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

LONGEST = 16 * 1024 * 1024
"""Characters of one item as it stands in its file; of a longer one no more is read."""
WINDOW = 1024 * 1024
MOST_FIELDS = 500
UNPACKED = 4 * 1024 * 1024 * 1024
RATIO = 200
"""Most that an XLSX file may unpack to, in bytes and in times its size."""
AT_FIRST = (
    "memory_limit='400MB'",
    "threads=1",
    "temp_directory=''",
    "autoload_known_extensions=false",
    "autoinstall_known_extensions=false",
    "preserve_insertion_order=true",
)
AT_ONCE = 1_000
DELIMITERS = "\t,;|"
QUOTED = re.compile(r'"[^"]*"?')
NESTED = re.compile(r"BLOB|(?:STRUCT|MAP|UNION)\(|.*\]$")
"""Types of columns whose values are never short."""
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
Row = Iterator[tuple[str, dict[str, Any] | None, str]]
"""Place, fields, and why it is broken."""


class Refused(Exception):
    """Nothing of the file is an item; the message follows its name."""


class Wanted:
    """The fields that are wanted, and those that were seen."""

    def __init__(self, fields: Sequence[str], id: str, short: int) -> None:
        self.cut = short + 1
        self.fields = (*fields, *([id] if id and fields and id not in fields else ()))
        self.seen: dict[str, None] = {}
        self.note = ""
        """What is to be known of how the file was read, as the rest of a sentence."""

    def see(self, names: Iterable[str]) -> None:
        """Take in the names of an item's fields. Raise Refused for more than any table has."""
        self.seen.update(dict.fromkeys(names))
        if len(self.seen) > MOST_FIELDS:
            raise Refused(f"has more than {MOST_FIELDS} different fields")

    def of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of an item that are wanted, and the beginning of the others."""
        if not self.fields:
            return dict(item)
        others = {name: self.start_of(value) for name, value in item.items()}
        return others | {name: item.get(name) for name in self.fields}

    def start_of(self, value: Any) -> Any:
        """Return as much of a value as tells whether it is short."""
        if isinstance(value, str):
            return value[: self.cut]
        return [] if isinstance(value, dict | list | tuple | set | bytes) else value

    def select(self, name: str, kind: str) -> str:
        """Return what is selected of a column of this type."""
        column = '"' + name.replace('"', '""') + '"'
        if not self.fields or name in self.fields:
            return column
        if kind == "VARCHAR":
            return f"left({column}, {self.cut})"
        return "[]" if NESTED.match(kind) else column

    def shown(self, fields: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return those that a model may be shown."""
        named = self.fields or (fields or {})
        return {name: value for name, value in (fields or {}).items() if name in named}


def main(request: bytes) -> Iterator[bytes]:
    """Yield the items, a line each."""
    asked = json.loads(request)
    wanted = Wanted(asked["fields"], asked["id"], asked["short"])
    try:
        for place, fields, broken in READERS[asked["by"]](asked["path"], wanted):
            line = dump(place, fields, broken)
            shown = shown_bytes(wanted.shown(fields)) if len(line) > asked["most"] else 0
            if shown > asked["most"]:
                named = {asked["id"]: fields.get(asked["id"])} if fields and asked["id"] else None
                why = f"shows a model {shown:,} bytes; at most {asked['most']:,} are asked"
                line = dump(place, named, why)
            yield line
        yield json.dumps({"fields": [*wanted.seen], "note": wanted.note}).encode() + b"\n"
    except Refused as error:
        yield json.dumps({"refused": str(error)}).encode() + b"\n"


def dump(place: str, fields: Mapping[str, Any] | None, broken: str) -> bytes:
    """Return an item as a line; one with half a character in it is broken."""
    try:
        line = json.dumps([place, fields, broken], ensure_ascii=False, default=plain)
        return line.encode() + b"\n"
    except UnicodeEncodeError:
        why = "holds bytes that are no text in UTF-8"
    except (ValueError, RecursionError):
        why = "holds what is no JSON"
    return json.dumps([place, None, why]).encode() + b"\n"


def shown_bytes(fields: Mapping[str, Any] | None) -> int:
    """Return the bytes that an item shows a model."""
    texts = (
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, default=plain)
        for each in (fields or {}).values()
    )
    return sum(len(each.encode("utf-8", "replace")) for each in texts)


def plain(value: object) -> str:
    """Return a value of a table that JSON does not have."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def opened(path: str, wanted: Wanted | None = None) -> TextIO:
    """Open a text, whose bytes that are none become halves of characters. `wanted`: it may be in
    the encoding of Western Windows, and is told so; None: it is Unicode.
    """
    with open(path, "rb") as file:
        start = file.read(WINDOW)
    encoding, errors = "utf-8-sig", "surrogateescape"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding, errors = "utf-16", "replace"
    elif wanted is not None:
        # The last character of the window may be cut.
        try:
            start[: start.rfind(b"\n") + 1].decode()
        except UnicodeDecodeError as error:
            good = start.decode("utf-8", "ignore")
            # Single bytes that are broken are broken; a text without any other is no UTF-8.
            if good.isascii():
                encoding = "cp1252"
                line = start.count(b"\n", 0, error.start) + 1
                wanted.note = f"is no UTF-8 (line {line}), and is read as Windows-1252"
    return open(path, encoding=encoding, errors=errors, newline="")


def lines_of(file: TextIO) -> Iterator[tuple[int, str, bool]]:
    """Yield each line with its number, without its end, and whether it was too long and is cut."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        cut = len(line) == LONGEST and line[-1] not in "\r\n"
        if cut:
            while (rest := file.readline(LONGEST)) and rest[-1] not in "\r\n":
                pass
        yield number, line.rstrip("\r\n"), cut


REPEATS = "repeats the names of the columns"
TOO_LONG = f"is longer than {LONGEST >> 20} million characters"


def read_lines(path: str, wanted: Wanted) -> Row:
    wanted.see(["text"])
    with opened(path, wanted) as file:
        for number, line, cut in lines_of(file):
            if cut:
                yield f"line {number}", None, TOO_LONG
            elif line.strip():
                yield f"line {number}", {"text": line}, ""


# ---------------------------------------------------------------- records


def read_records(path: str, wanted: Wanted) -> Row:
    """Read JSON lines, or the objects of a JSON list."""
    with opened(path) as file:
        start = file.read(WINDOW).lstrip()
    whole = read_list(path) if start.startswith("[") else read_json_lines(path)
    for place, value, broken in whole:
        if broken:
            yield place, None, broken
        elif not isinstance(value, dict):
            yield place, None, f"is {named(value)}, and no object with fields"
        else:
            wanted.see(value)
            yield place, wanted.of(value), ""


def named(value: object) -> str:
    kinds = {str: "a text", list: "a list", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def read_json_lines(path: str) -> Iterator[tuple[str, Any, str]]:
    with opened(path) as file:
        for number, line, cut in lines_of(file):
            if cut:
                yield f"line {number}", None, TOO_LONG
            elif line.strip():
                yield (f"line {number}", *parsed(line))


def parsed(text: str) -> tuple[Any, str]:
    """Return a value, and why it is none."""
    try:
        return json.loads(text, parse_constant=refuse), ""
    except json.JSONDecodeError as error:
        return None, f"is no JSON: {error.msg} (character {error.colno})"
    except RecursionError:
        return None, "is nested too deeply"
    except ValueError as error:
        return None, f"is no JSON: {error}"


def refuse(name: str) -> None:
    raise ValueError(f"{name} is no number there")


class Buffer:
    """The text of a file from where it was read up to, as much as is looked at."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.text, self.at, self.more = file, "", 0, True

    def grow(self) -> bool:
        """Read on. Return False at the end, or if more is held than one item may have."""
        if not self.more or len(self.text) - self.at > LONGEST:
            return False
        piece = self.file.read(WINDOW)
        self.more = bool(piece)
        self.text, self.at = self.text[self.at :] + piece, 0
        return self.more

    def next(self, skipped: str) -> str:
        """Return the next character that is none of these, and stand on it; empty: the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in skipped:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow():
                return ""


def read_list(path: str) -> Iterator[tuple[str, Any, str]]:
    decoder, number = json.JSONDecoder(parse_constant=refuse), 0
    with opened(path) as file:
        rest = Buffer(file)
        rest.next(" \t\r\n")
        rest.at += 1
        while (first := rest.next(" \t\r\n,")) and first != "]":
            number += 1
            place = f"item {number}"
            while True:
                try:
                    value, end = decoder.raw_decode(rest.text, rest.at)
                    if end == len(rest.text) and rest.grow():
                        continue
                    rest.at = end
                    yield place, value, ""
                    break
                except RecursionError:
                    why = "is nested too deeply"
                except ValueError as error:
                    why = f"is no JSON: {getattr(error, 'msg', error)}"
                if not rest.grow():
                    skip_value(rest)
                    yield place, None, why
                    break
        if not first:
            yield f"item {number + 1}", None, "is missing: the list has no end"


def skip_value(rest: Buffer) -> None:
    """Go on behind a broken value, at the comma or bracket that ends it by its brackets."""
    depth = 0
    while True:
        for found in BRACKETS.finditer(rest.text, rest.at):
            mark = found[0]
            if depth == 0 and mark in ",]":
                rest.at = found.start()
                return
            depth += (mark in "[{") - (mark in "]}")
            if depth < 0:
                depth = 0
        rest.at = len(rest.text)
        if not rest.grow():
            return


# ---------------------------------------------------------------- rows


def read_rows(path: str, wanted: Wanted) -> Row:
    with open(path, "rb") as file:
        start = file.read(4)
    reader = {b"PAR1": read_parquet, b"PK\x03\x04": read_sheets}.get(start, read_csv)
    return reader(path, wanted)


def read_csv(path: str, wanted: Wanted) -> Row:
    csv.field_size_limit(LONGEST)
    with opened(path, wanted) as file:
        first = file.readline(LONGEST)
        bare = QUOTED.sub("", first)
        delimiter = max(DELIMITERS, key=bare.count)
        file.seek(0)
        cut: set[int] = set()
        rows = csv.reader(whole_lines(file, cut), delimiter=delimiter)
        names: list[str] = []
        header: list[str] = []
        begun = 0
        while True:
            begun = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:
                yield f"line {begun}", None, "has a quote that does not end"
                continue
            if not any(row):
                continue
            if not names:
                header, names = row, column_names(row, f"line {begun}")
                wanted.see(names)
            elif cut:
                cut.clear()
                yield f"line {begun}", None, TOO_LONG
            elif len(row) != len(names):
                why = f"has {len(row)} cells, where the header has {len(names)}"
                yield f"line {begun}", None, why
            elif row == header:
                yield f"line {begun}", None, REPEATS
            else:
                yield f"line {begun}", wanted.of(dict(zip(names, row, strict=True))), ""


def whole_lines(file: TextIO, cut: set[int]) -> Iterator[str]:
    """Yield the lines of a table; `cut` gets the numbers of those that are too long."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST and line[-1] not in "\r\n":
            cut.add(number)
            while (rest := file.readline(LONGEST)) and rest[-1] not in "\r\n":
                pass
            line = line[:1_000].replace('"', " ") + "\n"
        yield line


def column_names(header: Sequence[object], place: str) -> list[str]:
    """Return a name for each column. Refused where two have the same."""
    if len(header) > MOST_FIELDS:
        raise Refused(f"has {len(header):,} columns; at most {MOST_FIELDS} are read")
    taken: dict[str, int] = {}
    for number, given in enumerate(header, 1):
        text = " ".join(str(given).split()) if given is not None else ""
        name = text or f"column_{number}"
        first = taken.setdefault(name, number)
        if first != number:
            both = f"{first} and {number} of {place}"
            raise Refused(f"has two columns {name[:100]!r} ({both}); rename one")
    return [*taken]


def read_parquet(path: str, wanted: Wanted) -> Row:
    import duckdb

    db = duckdb.connect()
    for setting in AT_FIRST:
        db.execute(f"set {setting}")
    try:
        found = db.execute("describe select * from read_parquet(?)", [path]).fetchall()
        wanted.see(str(each[0]) for each in found)
        kinds = {str(each[0]): str(each[1]) for each in found}
        names, listed = [*kinds], ", ".join(wanted.select(*each) for each in kinds.items()) or "1"
        # Without a table behind it the result is read piece by piece.
        rows = db.execute(f"select {listed} from read_parquet(?)", [path])
        number = 0
        while part := rows.fetchmany(AT_ONCE):
            for row in part:
                number += 1
                yield f"row {number}", wanted.of(dict(zip(names, row, strict=False))), ""
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.Error as error:
        said = " ".join(str(error).replace(path, "it").split())[:200]
        raise Refused(f"cannot be read as Parquet: {said}") from error


def read_sheets(path: str, wanted: Wanted) -> Row:
    """Read the rows of each sheet, whose first one has the names of the columns."""
    check_packed(path)
    from openpyxl import load_workbook

    with open(path, "rb") as file:
        try:
            book = load_workbook(file, read_only=True, data_only=True)
        except MemoryError:
            raise
        except Exception as error:
            raise Refused(f"cannot be opened as XLSX ({type(error).__name__})") from error
        for sheet in book.worksheets:
            names: list[str] = []
            header: tuple[object, ...] = ()
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                if all(value is None for value in row):
                    continue
                place = f"row {number} of sheet {sheet.title}"
                if not names:
                    header, names = row, column_names(row, place)
                    wanted.see(names)
                elif row == header:
                    yield place, None, REPEATS
                elif len(row) > len(names) and any(each is not None for each in row[len(names) :]):
                    why = f"has {len(row)} cells, where the header has {len(names)}"
                    yield place, None, why
                else:
                    yield place, wanted.of(dict(zip(names, row, strict=False))), ""


def check_packed(path: str) -> None:
    """Raise Refused for an archive that unpacks to more than any honest one."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as error:
        raise Refused("is a damaged archive, no XLSX file") from error
    whole, packed = sum(each.file_size for each in parts), sum(each.compress_size for each in parts)
    if whole > UNPACKED or whole > RATIO * max(packed, 1):
        raise Refused(f"would unpack to {whole >> 20:,} MiB, {RATIO} times its size or more")


READERS = {"lines": read_lines, "records": read_records, "rows": read_rows}
