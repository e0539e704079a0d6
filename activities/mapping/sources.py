"""Read the items of an input one after another, whatever it is: a file by a bounded child, a folder
file by file, a document page by page.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import anyio.to_thread
from pydantic import JsonValue

from holdfast.activities.repositories.documents import DOCUMENT_BYTES, decode
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.tools.read_document import kind_of, lacking_for, read_parts
from holdfast.activities.toolset.child import ChildFailed, lines_of_child
from holdfast.activities.toolset.tool import ToolError
from holdfast.calls.items import SHORT_LETTERS, SHOWN_BYTES
from holdfast.contracts.plans import MapUnit
from holdfast.deployment import extras
from holdfast.text import one_line, says_something
from holdfast.untrusted.folders import Folder, read_regular

AT_ONCE = 4
"""Documents of a folder that are read together."""
START_BYTES = 1_024
JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]\s*[\[{\"\]}]")
"""Matches how JSON begins that may be records."""
RECORDS, TABLES = (".json", ".jsonl", ".ndjson"), (".csv", ".tsv")
OFFICE: dict[bytes, tuple[MapUnit | None, str]] = {
    b"xl/workbook.xml": ("rows", "a workbook"),
    b"ppt/presentation.xml": ("pages", "a presentation"),
    b"word/document.xml": (None, "a Word document"),
}
PLACE_LETTERS = 300
CHILD_MEMORY = 2 * 1024 * 1024 * 1024
"""Bytes of addresses, of which far less is ever used: a library reserves them for a row group."""


class NotItems(ValueError):
    """An input cannot be mapped as it is to be; the message is the rest of a sentence that begins
    with its name.
    """


class TooSlow(NotItems):
    """There was no time to read all of it."""


@dataclass(frozen=True)
class Raw:
    """An item as it was read."""

    place: str
    fields: dict[str, JsonValue] | None = None
    """Those that are wanted, and the others as far as they are short; of a broken one at most its
    id.
    """
    broken: str = ""


@dataclass(frozen=True)
class Names:
    """The names of all fields, which come last."""

    fields: tuple[str, ...]
    note: str = ""
    """What is to be known of how they were read, as the rest of a sentence."""


Taking = Callable[[Iterable[Raw | Names]], Awaitable[None]]
"""Takes in some items; what it is given is computed while it is looked through."""


@dataclass(frozen=True)
class Wanted:
    """What is read of each item."""

    by: MapUnit
    fields: tuple[str, ...] = ()
    """Empty: all."""
    id: str = ""
    most: int = SHOWN_BYTES
    """Bytes of what is read of one item."""
    seconds: float = 2_700.0


@dataclass(frozen=True)
class Kind:
    """What a file is, as far as items go."""

    unit: MapUnit | None
    """The unit that it is mapped by; None: by none."""
    what: str
    is_text: bool = False


def kind_of_file(path: Path, name: str) -> Kind:
    """Return what a file is, by its bytes first; `name` only tells kinds of text apart.
    Blocking.
    """
    with path.open("rb") as file:
        return kind_of_open(file, name)


def kind_of_open(file: BinaryIO, name: str) -> Kind:
    """Return the same of an open file, and leave it at its beginning."""
    start = file.read(START_BYTES)
    file.seek(0)
    if start.startswith(b"PK\x03\x04"):
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for mark, (unit, what) in OFFICE.items():
                if content.find(mark) >= 0:
                    return Kind(unit, what)
        return Kind(None, "a packed archive")
    if start.startswith(b"PAR1"):
        return Kind("rows", "a Parquet file")
    if b"%PDF-" in start:
        return Kind("pages", "a PDF")
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Kind(None, "no text, and no table or document that can be read")
    ending = PurePosixPath(name).suffix.lower()
    if JSON.match(start) or ending in RECORDS:
        return Kind("records", "JSON", is_text=True)
    return Kind("rows" if ending in TABLES else "lines", "text", is_text=True)


def unit_for(by: MapUnit, kind: Kind) -> MapUnit:
    """Return how a file is read that is to be mapped by this unit: records and rows are both what
    a table has. Raise NotItems if it has no such items.
    """
    if by in ("records", "rows") and kind.unit in ("records", "rows"):
        return kind.unit
    if kind.unit == by or (kind.is_text and by in ("lines", "rows", "records")):
        return by
    instead = f"; map it by {kind.unit}" if kind.unit else ""
    raise NotItems(f"is {kind.what}, which has no {by}{instead}")


async def read_file(path: Path, name: str, wanted: Wanted, take: Taking) -> None:
    """Read the lines, records, rows or pages of a file. Raise NotItems if it has none."""
    kind = await anyio.to_thread.run_sync(kind_of_file, path, name)
    unit = unit_for(wanted.by, kind)
    if unit == "pages":
        await _read_pages(path, name, take)
        return
    if unit == "rows" and not kind.is_text and (lacking := extras.lacking("data")):
        raise NotItems(f"is {kind.what}: to read it this worker {lacking}")
    asked = {
        "path": str(path),
        "by": unit,
        "fields": wanted.fields,
        "id": wanted.id,
        "most": wanted.most,
        "short": SHORT_LETTERS,
    }
    request = json.dumps(asked).encode()
    try:
        async with aclosing(
            lines_of_child("read_items.py", request, seconds=wanted.seconds, memory=CHILD_MEMORY)
        ) as blocks:
            async for block in blocks:
                await take(_parsed(block))
    except ChildFailed as error:
        kind_of_failure = TooSlow if error.late else NotItems
        raise kind_of_failure(f"is not read: a reader of it {error}") from None


def _parsed(block: bytes) -> Iterator[Raw | Names]:
    for line in block.split(b"\n"):
        said = json.loads(line)
        if isinstance(said, list):
            yield Raw(*said)
        elif "refused" in said:
            raise NotItems(one_line(said["refused"]))
        else:
            yield Names(tuple(said["fields"]), said["note"])


async def _read_pages(path: Path, name: str, take: Taking) -> None:
    content = await anyio.to_thread.run_sync(read_regular, path, 2 * DOCUMENT_BYTES)
    first, total = 1, 1
    while first <= total:
        try:
            answer = await read_parts(content, name, first)
        except ToolError as error:
            raise NotItems(one_line(str(error))) from None
        total, unit = int(answer["total"]), answer["unit"]
        found = {int(part.rpartition(" ")[2]): text for part, text in answer["parts"]}
        if answer["refused"] and not found:
            raise NotItems(one_line(answer["refused"]))
        stopped = any(note.startswith("stopped before") for note in answer["notes"])
        last = max(found, default=first) if stopped else total
        pages = range(first, last + 1)
        await take([_page(f"{unit} {number}", found.get(number)) for number in pages])
        first = last + 1
    await take([Names(("text",))])


def _page(place: str, text: str | None) -> Raw:
    if text is None:
        return Raw(place, broken="cannot be read")
    if not says_something(text):
        return Raw(place, broken="has no text; nothing here reads letters in pictures")
    return Raw(place, {"text": text})


async def read_folder(snapshot: Snapshot, take: Taking) -> None:
    """Read the files of a folder, in the order of their paths."""
    unread = {
        each.path: each.why
        for each in snapshot.manifest.unread
        if not PurePosixPath(each.path).name.startswith(".")
    }
    paths = sorted([*(each.path for each in snapshot.manifest.files), *unread])
    for group in (paths[n : n + AT_ONCE] for n in range(0, len(paths), AT_ONCE)):
        found: dict[str, Raw] = {}

        async def read(path: str, found: dict[str, Raw] = found) -> None:
            found[path] = await _read_one(snapshot, path, unread.get(path, ""))

        async with anyio.create_task_group() as together:
            for path in group:
                together.start_soon(read, path)
        await take([found[path] for path in group])
    await take([Names(("text",))])


async def _read_one(snapshot: Snapshot, path: str, unread: str) -> Raw:
    place = one_line(path)[:PLACE_LETTERS]
    if unread:
        return Raw(place, broken=f"was not read: {one_line(unread)}")
    try:
        content = await anyio.to_thread.run_sync(_bytes_of, snapshot.root, path)
        text = await _text_of(content, path)
    except (ToolError, OSError) as error:
        return Raw(place, broken=f"cannot be read: {one_line(str(error))}")
    if not says_something(text):
        return Raw(place, broken="has nothing in it that can be read")
    return Raw(place, {"text": text})


def _bytes_of(root: Path, path: str) -> bytes:
    *folders, name = path.split("/")
    with Folder.at(root) as top, top.enter(*folders) as folder:
        return read_regular(name, DOCUMENT_BYTES, folder.handle)


async def _text_of(content: bytes, path: str) -> str:
    """Return what a file says. Raise ToolError if nothing reads it."""
    kind = kind_of(content, path)
    if kind in ("csv", "text"):
        return await anyio.to_thread.run_sync(decode, content)
    if lacking := lacking_for(kind):
        raise ToolError(f"to read it this worker {lacking}")
    answer = await read_parts(content, path)
    if answer["refused"]:
        raise ToolError(answer["refused"])
    if cut := [note for note in answer["notes"] if note.startswith("stopped before")]:
        raise ToolError(f"it is too long for one item ({cut[0]})")
    return "\n".join(
        f"[{part}]\n{text}" if answer["unit"] in ("page", "slide") else text
        for part, text in answer["parts"]
    )
