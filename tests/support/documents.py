"""Documents for tests, honest and hostile."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import docx
import openpyxl
import pptx
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def pdf(pages: Sequence[str], *, password: str = "", owner: str = "") -> bytes:
    """A PDF with these texts; an empty one is a page without any."""
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(612, 792)
        drawn = "".join(
            f"BT /F1 12 Tf 72 {720 - 20 * row} Td ({line}) Tj ET\n"
            for row, line in enumerate(text.split("\n"))
        )
        put(writer, page, drawn.encode("latin-1") if text else b"0 0 100 100 re f")
    if password or owner:
        writer.encrypt(password, owner or None, algorithm="AES-256")
    return written(writer)


def put(writer: PdfWriter, page: DictionaryObject, content: bytes) -> None:
    """Give a page its content and a font."""
    stream = DecodedStreamObject()
    stream.set_data(content)
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(k): NameObject(v) for k, v in names.items()})
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    page[NameObject("/Contents")] = writer._add_object(stream.flate_encode())


def written(writer: PdfWriter) -> bytes:
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def pdf_bomb(size: int) -> bytes:
    """A PDF whose one page unpacks to this many bytes."""
    writer = PdfWriter()
    page = writer.add_blank_page(612, 792)
    put(writer, page, b"0 0 m " * (size // 6))
    return written(writer)


def word(paragraphs: Sequence[str], table: Sequence[Sequence[str]] = ()) -> bytes:
    """A Word document: a heading, paragraphs, maybe a table."""
    document = docx.Document()
    document.add_heading("Title", 1)
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        rows = document.add_table(len(table), len(table[0])).rows
        for row, values in zip(rows, table, strict=True):
            for cell, value in zip(row.cells, values, strict=True):
                cell.text = value
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def workbook(
    sheets: Mapping[str, Mapping[str, str | int | float]], hidden: Sequence[str] = ()
) -> bytes:
    """A workbook: cells by their name, by sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, cells in sheets.items():
        sheet = book.create_sheet(title)
        sheet.sheet_state = "hidden" if title in hidden else "visible"
        for name, value in cells.items():
            sheet[name] = value
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def slides(texts: Sequence[str], notes: str = "") -> bytes:
    """A presentation with a text on each slide, and notes on the last."""
    show = pptx.Presentation()
    for text in texts:
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = text
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    buffer = io.BytesIO()
    show.save(buffer)
    return buffer.getvalue()


def repacked(document: bytes, parts: Mapping[str, bytes]) -> bytes:
    """An Office document with some of its parts replaced or added."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(document)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            if name not in parts:
                new.writestr(name, old.read(name))
        for name, content in parts.items():
            new.writestr(name, content)
    return buffer.getvalue()
