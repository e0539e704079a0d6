"""Decide what kind each file under review is, and say what its change claims about itself: which of
its comments would suppress remarks, and which of its new places only look like tests.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.activities.repositories.main_line import REMEDY
from holdfast.activities.repositories.manifest import display_path
from holdfast.activities.repositories.output import TreeEntry
from holdfast.activities.review.scope import marks
from holdfast.activities.review.scope.attributes import Attributes
from holdfast.activities.review.scope.kinds import Base, kind_of
from holdfast.contracts import FileKind
from holdfast.text import pluralize

MOST_NAMED = 5
"""Places that are named in a note."""
PATH_LETTERS = 200


@dataclass(frozen=True)
class FileKinds:
    """The kind of each file, by raw path, and what a reader must know of how it was decided."""

    kinds: Mapping[bytes, FileKind]
    notes: tuple[str, ...] = ()


def decide_kinds(
    files: Mapping[bytes, bytes],
    touched: Mapping[bytes, marks.Ranges] | None,
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
    *,
    partial: bool = False,
) -> FileKinds:
    """Return the kinds of the files. `touched` and `tree` are of a change: its lines, by path, and
    what the base has. `partial`: there is no base, because the clone lacks its main line.
    """
    stated = {path: kind_of(path.decode(), text, attributes) for path, text in files.items()}
    if touched is None or tree is None:
        return FileKinds(stated, _note_believed(files) if partial else ())
    base = Base(os.fsdecode(path) for path in tree)
    kinds = dict[bytes, FileKind]()
    ignored, denied = list[str](), list[str]()
    for path, text in files.items():
        before = marks.drop_touched(text, touched[path])
        kinds[path] = kind_of(path.decode(), before, attributes, base)
        ignored += [f"{_show(path)}:{line}" for line in marks.strip_marks(text, touched[path])[1]]
        if kinds[path] != stated[path]:
            denied.append(f"{_show(path)} ({stated[path]})")
    tests = [_show(path) for path, kind in kinds.items() if kind == "tests" and path not in tree]
    return FileKinds(kinds, (*_note_ignored(ignored), *_note_denied(denied), *_note_tests(tests)))


def _note_ignored(places: Sequence[str]) -> tuple[str, ...]:
    if not places:
        return ()
    were = "was" if len(places) == 1 else "were"
    return (
        f"{pluralize(len(places), 'mark')} in changed lines {were} not honoured, since what"
        f" suppresses remarks counts where the base has it: {_named(places)}",
    )


def _note_denied(places: Sequence[str]) -> tuple[str, ...]:
    if not places:
        return ()
    return (
        f"{pluralize(len(places), 'new file')} counted as production code, since only the change"
        f" says otherwise, by a folder or a first line: {_named(places)}",
    )


def _note_tests(paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        return ()
    return (f"{pluralize(len(paths), 'new file')} taken for tests: {_named(paths)}",)


def _note_believed(files: Mapping[bytes, bytes]) -> tuple[str, ...]:
    """Return a note of the comments that are believed although they may be part of the change."""
    count = sum(len(marks.find_marks(text)) for text in files.values())
    if not count:
        return ()
    return (
        f"{pluralize(count, 'mark')} that may suppress remarks {'was' if count == 1 else 'were'}"
        " honoured and may be part of the change, since the clone lacks its main line and nobody"
        f" named a base: {REMEDY}",
    )


def _show(path: bytes) -> str:
    return display_path(path)[:PATH_LETTERS]


def _named(places: Sequence[str]) -> str:
    more = len(places) - MOST_NAMED
    return ", ".join(places[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
