"""Parse what git prints, always from forms that no file name or content can imitate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_RANGES = 2_000
"""Touched ranges of one file that are told apart."""
_COMMIT = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) ")
_FILE_OF_DIFF = re.compile(rb"diff --git a/\d+ b/(\d+)\Z")
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class TreeEntry(NamedTuple):
    """An entry of a commit's tree or of the index."""

    mode: str
    hash: str


@dataclass(frozen=True)
class LogEntry:
    """One commit: seconds since the epoch, and lines added and deleted by file (raw names)."""

    hash: str
    time: int
    author: str
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)


def split_records(output: bytes) -> list[bytes]:
    """Split what `-z` separates."""
    return [record for record in output.split(b"\0") if record]


def index_entries(output: bytes) -> dict[bytes, TreeEntry]:
    """Return what the index tracks, by raw path: each as mode, hash and stage."""
    return {path: TreeEntry(mode, hash_) for path, (mode, hash_, _stage) in _parse_entries(output)}


def tree_entries(output: bytes) -> dict[bytes, TreeEntry]:
    """Return every entry of a commit's tree, by raw path: each as mode, kind and hash."""
    return {path: TreeEntry(mode, hash_) for path, (mode, _kind, hash_) in _parse_entries(output)}


def _parse_entries(output: bytes) -> Iterator[tuple[bytes, list[str]]]:
    """Yield each path that git lists, with the words before it."""
    for record in split_records(output):
        description, _, path = record.partition(b"\t")
        yield path, description.decode().split(" ")


def blobs_present(output: bytes, most: int) -> set[str]:
    """Return the ids of the objects that are there, are blobs and have at most `most` bytes."""
    # Of what is not there, git says so instead: "ID missing".
    said = [line.split(" ") for line in output.decode().splitlines()]
    return {each[0] for each in said if each[1:2] == ["blob"] and int(each[2]) <= most}


def log_entries(output: bytes) -> list[LogEntry]:
    """Return commits, newest first, from records that are a commit's line or one of its files'."""
    entries: list[LogEntry] = []
    for token in split_records(output):
        if header := _COMMIT.match(token):
            author = token[header.end() :].decode("utf-8", "replace")
            entries.append(LogEntry(header[1].decode(), int(header[2]), author))
            continue
        added, _, rest = token.lstrip(b"\n").partition(b"\t")
        deleted, _, path = rest.partition(b"\t")
        if entries and added.isdigit() and deleted.isdigit():
            # Binary files have dashes for numbers and no lines to count.
            entries[-1].changes.append((int(added), int(deleted), path))
    return entries


def changed_ranges(diff: bytes) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return first and last touched line of each hunk, by file number. Lines of content begin with
    `+`, `-` or a backslash, so nothing in a file can pass for a header.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    current: list[tuple[int, int]] = []
    for line in diff.split(b"\n"):
        if header := _FILE_OF_DIFF.match(line):
            current = found.setdefault(int(header[1]), [])
        elif hunk := _HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or b"1")
            if count:
                current.append((first, first + count - 1))
    return {number: _few(ranges) for number, ranges in found.items()}


def _few(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the ranges; if there are too many, the one that holds them all."""
    if len(ranges) <= MOST_RANGES:
        return tuple(ranges)
    return ((min(first for first, _ in ranges), max(last for _, last in ranges)),)
