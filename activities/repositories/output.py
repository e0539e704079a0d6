"""Parse what git prints, always from forms that no file name or content can imitate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_RANGES = 2_000
"""Touched ranges of one file that are told apart."""
_COMMIT = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) ")
_FILE_OF_DIFF = re.compile(rb"diff --git a/(\d+) b/(\d+)\Z")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_BLOBS = re.compile(rb":\d+ \d+ ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*")

Hunk = tuple[int, int, int, int]
"""First line and number of lines in the base, first line and number of lines in the head: as after
`@@` in a diff without context. With no lines the first is the one before.
"""


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


@dataclass
class FileDiff:
    """What of a file differs: its numbers in the old tree and in the new one, and its hunks."""

    old: int
    new: int
    hunks: list[Hunk] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    """The lines of its hunks, if they are kept."""


class BlobChange(NamedTuple):
    """A file that one commit changed, by the ids of its content before and after."""

    commit: str
    path: bytes
    old: str
    new: str


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


def file_diffs(diff: bytes, *, keep: bool = False) -> list[FileDiff]:
    """Return each file of a diff whose names are numbers; with `keep` the lines of its hunks, too.
    Lines of content begin with `+`, `-`, a blank or a backslash, so nothing in a file can pass for
    a header.
    """
    found: list[FileDiff] = []
    for line in diff.split(b"\n"):
        if header := _FILE_OF_DIFF.match(line):
            found.append(FileDiff(int(header[1]), int(header[2])))
        elif found and (hunk := _HUNK.match(line)):
            old, many, new, more = (1 if each is None else int(each) for each in hunk.groups())
            found[-1].hunks.append((old, many, new, more))
            if keep:
                found[-1].lines.append(line)
        elif keep and line and found and found[-1].hunks:
            found[-1].lines.append(line)
    return found


def few_hunks(hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Return the hunks; if there are too many, the one that holds them all."""
    if len(hunks) <= MOST_RANGES:
        return tuple(hunks)
    first, last = hunks[0], hunks[-1]
    old, new = max(first[0], 1), max(first[2], 1)
    return ((old, last[0] + max(last[1], 1) - old, new, last[2] + max(last[3], 1) - new),)


def ranges_of(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return first and last line of each span (first line, number of lines) that has lines."""
    return tuple((first, first + count - 1) for first, count in spans if count)


def sizes_of(output: bytes, kind: str) -> dict[str, int]:
    """Return the sizes of those objects that are there and of one kind, by their ids."""
    # Of what is not there, git says so instead: "ID missing".
    said = [line.split(" ") for line in output.decode().splitlines()]
    return {each[0]: int(each[2]) for each in said if each[1:2] == [kind]}


def objects_of(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield id and content of each object that `cat-file --batch` prints."""
    place = 0
    while (end := output.find(b"\n", place)) >= 0:
        words = output[place:end].decode().split(" ")
        if len(words) != 3:
            # "ID missing"
            place = end + 1
            continue
        size = int(words[2])
        yield words[0], output[end + 1 : end + 1 + size]
        place = end + 1 + size + 1


def blob_changes(output: bytes) -> Iterator[BlobChange]:
    """Yield what `diff-tree --stdin --raw -z` prints: a commit, then two records for each file."""
    records = iter(split_records(output))
    commit = ""
    for record in records:
        if blobs := _BLOBS.fullmatch(record):
            yield BlobChange(commit, next(records, b""), blobs[1].decode(), blobs[2].decode())
        else:
            commit = record.decode("ascii", "replace").strip()
