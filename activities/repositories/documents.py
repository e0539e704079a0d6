"""Choose the tool that reads a file given as an input, by its bytes and never by its name."""

from __future__ import annotations

from holdfast.deployment import extras
from holdfast.text import says_something

DOCUMENT_BYTES = 32 * 1024 * 1024
"""The largest document; text is enclosed in prompts, and bounded by them."""
TEXT_WINDOW = 8_000
"""Bytes; a NUL byte among the first of a file means that it is not text, as git decides it."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NO_DOCUMENT = {
    b"\x89PNG\r\n": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF87a": "a picture (GIF)",
    b"GIF89a": "a picture (GIF)",
    b"II*\0": "a picture (TIFF)",
    b"MM\0*": "a picture (TIFF)",
    b"\x1f\x8b": "an archive (gzip)",
    b"BZh": "an archive (bzip2)",
    b"\xfd7zXZ\0": "an archive (xz)",
    b"7z\xbc\xaf\x27\x1c": "an archive (7z)",
    b"Rar!\x1a\x07": "an archive (RAR)",
    b"\x28\xb5\x2f\xfd": "an archive (zstd)",
}
_OFFICE = (b"word/document.xml", b"xl/workbook.xml", b"ppt/presentation.xml")
"""The directory of an Office file names one of them; nothing is unpacked to find it."""
_BEGINNINGS = {
    b"PK\x03\x04": "read_document",
    b"PAR1": "query_data",
    b"SQLite format 3\0": "query_data",
}


class NotReadable(ValueError):
    """No tool reads such a file; the message says what it is and what to do, as the rest of a
    sentence.
    """


def reader_of(content: bytes) -> str:
    """Return the tool that reads a file; empty: it is text, which prompts enclose. Raise
    NotReadable if it is neither.
    """
    if b"%PDF-" in content[:1024]:
        return "read_document"
    if content.startswith(b"PK\x03\x04") and not any(part in content for part in _OFFICE):
        raise NotReadable("an archive (ZIP), and no document that a tool reads; unpack it first")
    for beginning, reader in _BEGINNINGS.items():
        if content.startswith(beginning):
            return reader
    if content.startswith(_OLD_OFFICE):
        raise NotReadable(
            "an old or encrypted Office document; save it as .docx, .xlsx or .pptx without password"
        )
    if content.startswith(_UTF_16):
        return "read_document"
    if b"\0" in content[:TEXT_WINDOW]:
        raise NotReadable(
            "neither text nor a document that a tool reads: PDF, Word, Excel, PowerPoint, Parquet"
            " or SQLite"
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        # Only here: a text may well begin with the letters of a signature.
        for beginning, what in _NO_DOCUMENT.items():
            if content.startswith(beginning):
                raise NotReadable(f"{what}, which no tool reads; give text or a document") from None
        # Text as another system writes it, which is no UTF-8, has to be decoded.
        return "read_document"
    return ""


def lacking_for_reader(content: bytes, reader: str) -> str:
    """Return what the reader of a file needs and is not installed here, as the rest of a sentence;
    empty if nothing. Text in any encoding needs nothing.
    """
    if reader == "query_data":
        return extras.lacking("data")
    packed = b"%PDF-" in content[:1024] or content.startswith(b"PK\x03\x04")
    return extras.lacking("documents") if reader and packed else ""


def is_blank(content: bytes) -> bool:
    """True if nobody would see anything of a text. A document begins with letters, and is not
    blank.
    """
    return not says_something(decode(content))


def decode(content: bytes) -> str:
    """Return bytes as text: UTF-8, UTF-16 if a mark says so, else Windows-1252."""
    if content.startswith(_UTF_16):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")
