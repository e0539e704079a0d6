"""The text of a Word document, a workbook or a presentation, with what a reader can cite.

`main` takes a line of JSON (`kind`, `first`, `last`, `sheet`, `letters`, `seconds`) and behind it
the bytes of the document, and returns JSON: `unit`, `total`, `parts` as [name, text], `notes`,
`refused`. Runs isolated in a bounded child, so it imports nothing of this project.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any

UNPACKED = 200 * 1024 * 1024
"""Bytes of all parts of a document together."""
RATIO = 200
"""How many times smaller than its content a packed part may be, if it is of some size."""
SMALL = 1024 * 1024
MOST_PARTS = 20_000
CELL_LETTERS = 2_000
DEEPEST_GROUP = 20


class Refused(Exception):
    """The document is not read; the message follows its name."""


class Enough(Exception):
    """The letters or the seconds are used up."""


class Reading:
    """State of the reading."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.first, self.last = asked["first"], asked["last"] or 1 << 60
        self.left = asked["letters"]
        self.until = time.monotonic() + asked["seconds"]
        self.sheet = asked["sheet"]
        self.total = 0
        self.parts: list[list[str]] = []
        self.notes: list[str] = []

    def wants(self, number: int) -> bool:
        """True if a part was asked for. Raise Enough if it no longer fits."""
        if number > self.last or number < self.first:
            return False
        if self.left <= 0 or time.monotonic() > self.until:
            raise Enough(number)
        return True

    def add(self, name: str, text: str) -> None:
        text = text[: self.left + 1]
        self.left -= len(text) + len(name)
        self.parts.append([name, text])


def main(request: bytes) -> bytes:
    """Return the answer; what no reader can open is refused in words."""
    head, _, content = request.partition(b"\n")
    asked = json.loads(head)
    answer = Reading(asked)
    unit, read = READERS[asked["kind"]]
    refused = ""
    try:
        check_zip(content)
        read(content, answer)
    except Refused as error:
        refused = str(error)
    except Enough as error:
        answer.notes.append(f"stopped before {unit} {error}; first={error} reads on")
    except MemoryError:
        raise
    except Exception as error:
        refused = f"is damaged, and cannot be read ({type(error).__name__})"
    return json.dumps(
        {
            "unit": unit,
            "total": answer.total,
            "parts": answer.parts,
            "notes": answer.notes,
            "refused": refused,
        }
    ).encode()


def check_zip(content: bytes) -> None:
    """Raise Refused for what would fill the memory when unpacked, before anything is."""
    try:
        parts = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except zipfile.BadZipFile:
        raise Refused("is damaged: its packing cannot be read") from None
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MOST_PARTS:
        raise Refused(f"has {len(parts):,} parts; at most {MOST_PARTS:,} are read")
    if unpacked > UNPACKED:
        raise Refused(f"unpacks to {unpacked >> 20:,} MiB; at most {UNPACKED >> 20} MiB are read")
    for part in parts:
        if part.file_size > SMALL and part.file_size > RATIO * max(part.compress_size, 1):
            raise Refused(f"is packed more than {RATIO}-fold, as only a bomb is, and is not read")
        if part.flag_bits & 1:
            raise Refused("is encrypted: give it without its password")


def read_docx(content: bytes, answer: Reading) -> None:
    """Read paragraphs and rows of tables, in their order."""
    import docx
    from docx.table import Table

    def blocks() -> Iterator[str]:
        for block in docx.Document(io.BytesIO(content)).iter_inner_content():
            if isinstance(block, Table):
                for row in block.rows:
                    yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
            elif block.text.strip():
                style = block.style.name if block.style is not None else ""
                level = style.removeprefix("Heading ")
                mark = "#" * int(level) + " " if style != level and level.isdigit() else ""
                yield mark + block.text.strip()

    for number, text in enumerate(blocks(), 1):
        answer.total = number
        if answer.wants(number):
            answer.add(f"paragraph {number}", text)


def read_xlsx(content: bytes, answer: Reading) -> None:
    """Read the rows of each sheet, or of the one asked for, with the letters of their columns."""
    import openpyxl
    from openpyxl.utils import get_column_letter

    book = openpyxl.load_workbook(
        io.BytesIO(content), read_only=True, data_only=True, keep_links=False
    )
    sheets = [each for each in book.worksheets if answer.sheet in ("", each.title)]
    names = ", ".join(
        f"{each.title}{'' if each.sheet_state == 'visible' else ' (hidden)'}"
        for each in book.worksheets
    )
    if not sheets:
        raise Refused(f"has no sheet {answer.sheet!r}; it has: {names}")
    answer.notes.append(f"sheets: {names}")
    for sheet in sheets:
        # The size that a sheet claims would have each of its rows filled up to it.
        sheet.reset_dimensions()
        rows = sheet.iter_rows(min_row=answer.first, values_only=True)
        for number, values in enumerate(rows, answer.first):
            if number > answer.last:
                break
            cells = [
                f"{get_column_letter(place)}={str(value)[:CELL_LETTERS]}"
                for place, value in enumerate(values, 1)
                if value is not None
            ]
            if answer.wants(number) and cells:
                answer.add(f"{sheet.title}!{number}", " | ".join(cells))
                answer.total += 1


def read_pptx(content: bytes, answer: Reading) -> None:
    """Read the text of each slide's shapes, and its notes."""
    import pptx

    slides = pptx.Presentation(io.BytesIO(content)).slides
    answer.total = len(slides)
    for number, slide in enumerate(slides, 1):
        if not answer.wants(number):
            continue
        lines = [line for shape in slide.shapes for line in shape_lines(shape, 0)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += [f"(notes) {notes}"] if notes else []
        answer.add(f"slide {number}", "\n".join(lines))


def shape_lines(shape: Any, depth: int) -> Iterator[str]:
    """Yield the lines of a shape, a table or a group of shapes."""
    if depth > DEEPEST_GROUP:
        return
    if hasattr(shape, "shapes"):
        for each in shape.shapes:
            yield from shape_lines(each, depth + 1)
    elif getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield shape.text_frame.text.strip()


READERS = {
    "docx": ("paragraph", read_docx),
    "xlsx": ("row", read_xlsx),
    "pptx": ("slide", read_pptx),
}
