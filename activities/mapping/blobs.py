"""Blobs of items and of outcomes: a line of JSON each."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.calls.rows import Item, Outcome


def lines_of(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a blob of items or outcomes."""
    return (line for line in content.split(b"\n") if line)


def dump_line(value: Item | Outcome) -> bytes:
    return value.model_dump_json(exclude_defaults=True).encode() + b"\n"
