"""Tell text from binary files: a NUL byte or UTF-16 takes no file out of a review."""

from __future__ import annotations

import codecs

BINARY = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"8BPS",
    b"\0\0\1\0", b"\0\0\2\0", b"RIFF", b"OggS", b"ID3", b"fLaC", b"\xff\xfb", b"\x1aE\xdf\xa3",
    b"wOFF", b"wOF2", b"OTTO", b"ttcf", b"\0\1\0\0", b"true\0",
    b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf\x27\x1c",
    b"Rar!", b"\x28\xb5\x2f\xfd", b"PACK", b"!<arch>\n",
    b"%PDF-", b"\xd0\xcf\x11\xe0", b"SQLite format 3\0", b"PAR1", b"\x89HDF", b"\x93NUMPY",
    b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\0asm",
    b"\xde\x12\x04\x95", b"\x95\x04\x12\xde",
)  # fmt: skip
"""First bytes of pictures, sound, fonts, archives, documents and programs."""
LATER = ((4, b"ftyp"), (257, b"ustar"))
"""The place and bytes of signatures that stand further on."""
HEAD = 512
"""Bytes that are enough to tell."""
ENDINGS = (
    b".png", b".jpg", b".jpeg", b".gif", b".bmp", b".ico", b".webp", b".avif", b".tif", b".tiff",
    b".psd", b".mp3", b".mp4", b".mov", b".wav", b".ogg", b".webm", b".ttf", b".otf", b".woff",
    b".woff2", b".eot", b".zip", b".gz", b".tgz", b".bz2", b".xz", b".zst", b".7z", b".rar",
    b".tar", b".jar", b".war", b".whl", b".pdf", b".docx", b".xlsx", b".pptx", b".doc", b".xls",
    b".ppt", b".odt", b".ods", b".sqlite", b".sqlite3", b".db", b".parquet", b".so", b".dll",
    b".dylib", b".exe", b".class", b".pyc", b".o", b".a", b".wasm", b".bin", b".npy", b".npz",
    b".onnx", b".pt", b".safetensors", b".mo", b".glb",
)  # fmt: skip
"""Ends of the names of binary files."""
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
"""The longer ones first: one begins with another."""
MOST, FEWEST = 0.4, 0.02
"""Share of NUL among every second byte of Latin letters in UTF-16, and among the others."""


def is_binary(path: bytes, head: bytes) -> bool:
    """True if the end of its name or its first bytes say that a file is not text."""
    return (
        path.lower().endswith(ENDINGS)
        or head.startswith(BINARY)
        or any(head.startswith(sign, place) for place, sign in LATER)
    )


def to_utf8(content: bytes) -> bytes:
    """Return a text as UTF-8. If its encoding is unknown, each NUL becomes a space: every line
    keeps its length and its number, and no analyser stumbles over it.
    """
    if encoding := _encoding(content):
        return content.decode(encoding, "replace").encode()
    return content.replace(b"\0", b" ")


def _encoding(content: bytes) -> str:
    """Return the encoding by a mark or the places of NUL bytes; empty if neither tells."""
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return encoding
    half = len(content) // 2
    if not half:
        return ""
    even, odd = content[::2].count(0) / half, content[1::2].count(0) / half
    if odd >= MOST and even <= FEWEST:
        return "utf-16-le"
    return "utf-16-be" if even >= MOST and odd <= FEWEST else ""
