"""Read a page of the public web."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from holdfast.activities.repositories.documents import decode
from holdfast.activities.toolset.child import ChildFailed, in_child
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.activities.toolset.web import Answer, fetch
from holdfast.deployment import extras
from holdfast.text import one_line

PAGE_BYTES = 8 * 1024 * 1024
"""Bytes read of a page."""
LETTERS = 400_000
"""Characters of its text."""
SECONDS, ALL_SECONDS = 15.0, 30.0
"""How long a reader goes on to the next part; how long it may take in all."""
READERS = {"text/html": "html", "application/xhtml+xml": "html", "application/pdf": "pdf"}
SCRIPTS = {"html": "read_text.py", "pdf": "read_pdf.py"}
TEXTUAL = ("application/json", "application/xml", "application/javascript", "application/yaml")


@tool(seconds=60, reads=(), sends="any address of the public web that the agent names", extra="web")
async def web_fetch(
    here: Here,
    url: Annotated[str, Field(min_length=1, max_length=2_000, description="With https://")],
) -> str:
    """Read a page of the public web as text, with the addresses that it links to; PDF, too. Cite
    the address that the answer begins with. Pages that need a login or a program to show their text
    cannot be read, nor can addresses that are not public.
    """
    del here
    answer = await fetch(url, most=PAGE_BYTES)
    if answer.status >= 300:
        raise ToolError(f"{one_line(answer.url)[:200]!r} answered with status {answer.status}")
    text = await _text(answer)
    cut = f", the first {PAGE_BYTES >> 20} MiB of it" if answer.cut else ""
    return f"[{one_line(answer.url)}{cut}]\n{text.strip() or 'There is no text on this page.'}"


async def _text(answer: Answer) -> str:
    reader = READERS.get(answer.kind)
    if reader == "pdf" and (lacking := extras.lacking("documents")):
        raise ToolError(f"this address holds a PDF, and to read it {lacking}")
    if reader:
        return await _read(answer, reader)
    ending = answer.kind.rpartition("+")[2]
    if answer.kind.startswith("text/") or answer.kind in TEXTUAL or ending in ("json", "xml"):
        return _decode(answer)[:LETTERS]
    raise ToolError(f"this address holds {answer.kind[:100]!r}, which is not text")


def _decode(answer: Answer) -> str:
    """Return the text of a page, by the encoding it names, if there is such a one."""
    if not answer.charset:
        return decode(answer.content)
    try:
        return answer.content.decode(answer.charset, "replace")
    except LookupError:
        return decode(answer.content)


async def _read(answer: Answer, reader: str) -> str:
    """Return what a reader in a bounded child makes of a page."""
    asked: dict[str, Any] = {"kind": reader, "first": 1, "last": 0}
    asked |= {"letters": LETTERS, "seconds": SECONDS, "links": answer.url}
    content = answer.content
    if reader == "html":
        content = _decode(answer).encode("utf-8", "replace")
    request = json.dumps(asked).encode() + b"\n" + content
    try:
        found = json.loads(await in_child(SCRIPTS[reader], request, seconds=ALL_SECONDS))
    except ChildFailed as error:
        raise ToolError(f"this page is not read: a reader of it {error}") from None
    if found["refused"]:
        raise ToolError(f"this page {one_line(found['refused'])}")
    pages = found["unit"] == "page"
    lines = [f"[{part}]\n{text}" if pages else text for part, text in found["parts"]]
    # How a document is read on says nothing here.
    notes = [one_line(note).partition("; first=")[0] for note in found["notes"]]
    return "\n".join([*lines, *(f"[{each}]" for each in notes)])
