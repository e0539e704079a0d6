"""Ranked search over the files of a folder: an index of SQLite's FTS5, made once, then asked.

`main` takes JSON (`root`, `files`, `left_out`, `index`, `query`, `most`, `seconds`) and returns
JSON: `hits` as [path, first line, last line], the best first, `left_out` as {reason: count}, and
whether there was any text to look in (`searched`).
The files are read when there is no such index yet. Runs isolated in a bounded child, so it imports
nothing of this project.
"""

import json
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK_LINES = 40
CHUNK_LETTERS = 8_000
"""Characters at which a chunk ends, however few its lines are."""
LINE_LETTERS = 20_000
TEXT_WINDOW = 8_000
MOST_WORDS = 20
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WORD = re.compile(r"[\w]+")
SCHEMA = """
create virtual table words using fts5(body, content='', tokenize="unicode61 tokenchars '_'");
create table chunks (id integer primary key, path text, first integer, last integer);
create table told (left_out text not null);
"""


def main(request: bytes) -> bytes:
    """Return the answer. The index gets its name only when it is whole: one that there was no time
    for is asked, and made anew the next time.
    """
    asked = json.loads(request)
    index = Path(asked["index"])
    draft = index.with_name(f"{index.name}.{os.getpid()}")
    if not index.exists():
        if make(draft, asked):
            os.replace(draft, index)
        else:
            index = draft
    with sqlite3.connect(f"file:{index}?mode=ro&immutable=1", uri=True) as db:
        [(left_out,)] = db.execute("select left_out from told")
        hits = ask(db, asked["query"], asked["most"])
        searched = db.execute("select 1 from chunks limit 1").fetchone() is not None
    draft.unlink(missing_ok=True)
    told = {"hits": hits, "left_out": json.loads(left_out), "searched": searched}
    return json.dumps(told).encode()


def make(path: Path, asked: dict[str, Any]) -> bool:
    """Index the files, as many as there is time for, and return whether there was time for all."""
    until = time.monotonic() + asked["seconds"]
    left_out = Counter(asked["left_out"])
    root = os.open(asked["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("pragma journal_mode=off; pragma synchronous=off;" + SCHEMA + "begin;")
    number, whole = 0, True
    for place, name in enumerate(asked["files"]):
        whole = time.monotonic() <= until
        if not whole:
            left_out["beyond the time there is"] += len(asked["files"]) - place
            break
        try:
            text = text_of(root, name)
        except OSError:
            left_out["not readable"] += 1
            continue
        if text is None:
            left_out["no text"] += 1
            continue
        for first, last, body in chunks(text):
            number += 1
            db.execute("insert into words (rowid, body) values (?, ?)", (number, body))
            db.execute("insert into chunks values (?, ?, ?, ?)", (number, name, first, last))
    db.execute("insert into told values (?)", (json.dumps(left_out),))
    db.execute("commit")
    db.close()
    return whole


def text_of(root: int, name: str) -> str | None:
    """Return the text of a file below the root, following no link; None: it is not text."""
    *folders, last = name.split("/")
    handle = os.dup(root)
    for flags, part in [*((OPEN | os.O_DIRECTORY, each) for each in folders), (OPEN, last)]:
        try:
            below = os.open(part, flags, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    with os.fdopen(handle, "rb") as file:
        content = file.read()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\0" in content[:TEXT_WINDOW]:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def chunks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, text) of pieces small enough to say where something is."""
    first, letters = 1, 0
    kept: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        kept.append(line[:LINE_LETTERS])
        letters += len(kept[-1])
        if len(kept) >= CHUNK_LINES or letters >= CHUNK_LETTERS:
            yield first, number, "\n".join(kept)
            first, kept, letters = number + 1, [], 0
    if any(kept):
        yield first, first + len(kept) - 1, "\n".join(kept)


def ask(db: sqlite3.Connection, query: str, most: int) -> list[list[Any]]:
    """Return the chunks that hold any of the words, those that say most of them first."""
    words = WORD.findall(query)[:MOST_WORDS]
    if not words:
        return []
    match = " OR ".join(f'"{word}"' for word in words)
    found = db.execute(
        "select path, first, last from words join chunks on chunks.id = words.rowid"
        " where words match ? order by rank limit ?",
        (match, most),
    )
    return [list(each) for each in found]
