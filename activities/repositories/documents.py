"""Which tool reads a file that is given as an input, told by its bytes and never by its name."""

from __future__ import annotations

DOCUMENT_BYTES = 32 * 1024 * 1024
"""The largest document; text is enclosed in prompts, and bounded by them."""
TEXT_WINDOW = 8_000
"""Bytes; a NUL byte among the first of a file makes it no text, as git decides it."""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BEGINNINGS = {
    b"PK\x03\x04": "read_document",
    b"PAR1": "query_data",
    b"SQLite format 3\0": "query_data",
}


class NotReadable(ValueError):
    """No tool reads such a file: what it is, and what to do, as the rest of a sentence."""


def reader_of(content: bytes) -> str:
    """The tool that reads it; empty: it is text, which prompts enclose. NotReadable for neither."""
    if b"%PDF-" in content[:1024]:
        return "read_document"
    for beginning, reader in _BEGINNINGS.items():
        if content.startswith(beginning):
            return reader
    if content.startswith(_OLD_OFFICE):
        raise NotReadable(
            "an old or encrypted Office document; save it as .docx, .xlsx or .pptx without password"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "read_document"
    if b"\0" in content[:TEXT_WINDOW]:
        raise NotReadable(
            "neither text nor a document that a tool reads: PDF, Word, Excel, PowerPoint, Parquet"
            " or SQLite"
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        # Text as another system writes it, which is no UTF-8, has to be decoded.
        return "read_document"
    return ""
