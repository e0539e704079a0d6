"""Read documents as text, with what a finding can cite: pages, cells, slides, rows, lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field, JsonValue

from holdfast.activities.repositories.documents import decode
from holdfast.activities.tools.read_file import read_file
from holdfast.activities.toolset.child import ChildFailed, in_child
from holdfast.activities.toolset.inputs import cited_as, place_of, quote_path, read
from holdfast.activities.toolset.tool import Here, Result, ToolError, tool
from holdfast.deployment import extras
from holdfast.text import one_line, pluralize, says_something
from holdfast.text.mistakes import refuse_other
from holdfast.untrusted.redact import redact, without_keys

DOCUMENT_BYTES = 64 * 1024 * 1024
"""The largest document that is read."""
LETTERS = 400_000
"""Characters of one call, before the rest is left for the next."""
SECONDS, ALL_SECONDS = 30.0, 60.0
"""How long a reader goes on to the next part; how long it may take in all."""
OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
OFFICE = {b"word/document.xml": "docx", b"xl/workbook.xml": "xlsx", b"ppt/presentation.xml": "pptx"}
LOOK_SECONDS, ALL_LOOK_SECONDS = 5.0, 15.0
"""The same for a look at whether there is anything to read."""
LOOK_LETTERS = 100_000
"""Characters of a document that are looked at for words that it is to mention."""
SCRIPTS = {"pdf": "read_pdf.py", "csv": "read_text.py", "html": "read_text.py"}
ENDINGS = {"csv": "csv", "tsv": "csv", "html": "html", "htm": "html", "xhtml": "html"}
NOTHING = "has nothing in it that can be read"
NEVER = {
    "doc": "an old Word document; save it as .docx",
    "xls": "an old workbook; save it as .xlsx",
    "ppt": "an old presentation; save it as .pptx",
}


@tool(seconds=90, reads=("folder", "repository", "document"))
async def read_document(
    here: Here,
    file_path: Annotated[str, Field(description="As list_files shows it: INPUT/folder/name.")],
    first: Annotated[
        int, Field(description="First page, slide, row, paragraph or line.", ge=1)
    ] = 1,
    last: Annotated[int, Field(description="The last one; 0: as far as it goes.", ge=0)] = 0,
    sheet: Annotated[str, Field(description="Of a workbook, only this sheet.")] = "",
) -> Result:
    """Read a PDF, a Word document, a workbook, a presentation, CSV, HTML, Markdown or plain text.
    Each part is marked so that it can be cited: `report.pdf p. 12`, `figures.xlsx Data!B7`,
    `talk.pptx slide 3`, `list.csv row 5`. Text in pictures is not read, and formulas are not
    calculated: a cell has the value that was last kept in it.
    """
    content = await read(here, file_path, DOCUMENT_BYTES)
    name = cited_as(here, place_of(here, file_path))
    kind = kind_of(content, name)
    if kind == "text":
        limit = 20_000 if last == 0 else min(20_000, max(1, last - first + 1))
        arguments: dict[str, JsonValue] = {"file_path": file_path, "offset": first, "limit": limit}
        return await read_file.run(here, arguments)
    if lacking := lacking_for(kind):
        raise ToolError(f"{quote_path(file_path)} is not read: that {lacking}")
    if kind in ("csv", "html"):
        content = await anyio.to_thread.run_sync(_clean, content)
    try:
        answer = await _read(content, kind, first, last, sheet)
    except ChildFailed as error:
        raise ToolError(f"{quote_path(file_path)} is not read: a reader of it {error}") from None
    if answer["refused"]:
        raise ToolError(f"{quote_path(file_path)} {one_line(answer['refused'])}")
    return Result(await anyio.to_thread.run_sync(_render, answer, name, first))


async def read_parts(content: bytes, name: str, first: int = 1) -> dict[str, Any]:
    """Return the parts of a document from one on, as far as one call goes: `unit`, `total`, `parts`
    as [name, text], `notes`, `refused`. Raise ToolError if nothing reads it; the message is the
    rest of a sentence.
    """
    kind = kind_of(content, name)
    if kind == "html":
        content = await anyio.to_thread.run_sync(_clean, content)
    try:
        return await _read(content, kind, first, 0, "")
    except ChildFailed as error:
        raise ToolError(f"a reader of it {error}") from None


async def _read(content: bytes, kind: str, first: int, last: int, sheet: str) -> dict[str, Any]:
    asked = {
        "kind": kind,
        "first": first,
        "last": last,
        "sheet": sheet,
        "letters": LETTERS,
        "seconds": SECONDS,
    }
    return await _parse(content, asked, ALL_SECONDS)


def lacking_for(kind: str) -> str:
    """Return what documents of a kind need and is not installed here, as the rest of a sentence;
    empty: nothing.
    """
    return "" if kind in ("csv", "text") else extras.lacking("documents")


async def explain_unreadable(content: bytes, mentions: Sequence[str] = ()) -> str:
    """Return why nobody would read a word of a document, or none of those that it is to mention, as
    the rest of a sentence. Empty if there is one, or that cannot be told soon, or not here.
    """
    try:
        kind = kind_of(content, "document")
    except ToolError as error:
        return str(error).partition(" ")[2]
    if kind not in ("pdf", *OFFICE.values()):
        text = decode(content)
        return refuse_other(mentions, text) if says_something(text) else NOTHING
    if lacking_for(kind):
        # Who runs it may be on another machine, and says what is missing there.
        return ""
    asked = {
        "kind": kind,
        "first": 1,
        "last": 0,
        "sheet": "",
        "letters": LOOK_LETTERS if mentions else 1,
        "seconds": LOOK_SECONDS,
    }
    try:
        answer = await _parse(content, asked, ALL_LOOK_SECONDS)
    except ChildFailed:
        # What an agent that has more time makes of it, it says.
        return ""
    if any(note.startswith("stopped before") for note in answer["notes"]):
        return ""
    if answer["refused"]:
        return str(answer["refused"])
    text = "\n".join(text for _, text in answer["parts"])
    return refuse_other(mentions, text) if says_something(text.replace("|", "")) else NOTHING


async def _parse(content: bytes, asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the answer of the script for this kind of document. Raise ChildFailed if there is
    none.
    """
    script = SCRIPTS.get(asked["kind"], "read_office.py")
    request = json.dumps(asked).encode() + b"\n" + content
    return dict(json.loads(await in_child(script, request, seconds=seconds)))


def kind_of(content: bytes, path: str) -> str:
    """Return what a document is, by its content first: names lie. Raise ToolError for what is not
    read.
    """
    ending = path.rpartition(".")[2].lower()
    if content.startswith(b"PK"):
        for mark, kind in OFFICE.items():
            if mark in content:
                return kind
        raise ToolError(f"{quote_path(path)} is a packed archive, and no Office document")
    if b"%PDF-" in content[:1024]:
        return "pdf"
    if content.startswith(OLD_OFFICE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise ToolError(f"{quote_path(path)} is encrypted: give it without its password")
        raise ToolError(f"{quote_path(path)} is {NEVER.get(ending, NEVER['doc'])}")
    start = content[:1024].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "html"
    return ENDINGS.get(ending, "text")


def _clean(content: bytes) -> bytes:
    """Return text of any encoding as UTF-8, without private keys."""
    return without_keys(decode(content)).encode("utf-8", "replace")


def _render(answer: dict[str, Any], name: str, first: int) -> str:
    """Return what a model is told, without secrets. Blocking."""
    unit, total, parts = answer["unit"], answer["total"], answer["parts"]
    if not parts and first > 1:
        raise ToolError(
            f"{quote_path(name)} has nothing from {unit} {first:,} on; it has {total:,}"
        )
    lines = []
    for part, text in parts:
        lines.append(f"[{part}]\n{text}" if unit in ("page", "slide") else f"{part}: {text}")
    notes = [pluralize(total, unit)] if unit in ("page", "slide") else []
    notes += [one_line(note) for note in answer["notes"]]
    return redact("\n".join([f"[{name}: {'; '.join(notes)}]" if notes else f"[{name}]", *lines]))
