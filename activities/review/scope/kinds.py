"""Tell the kind of each file of a repository: by what its owners say of it, by its path, and by its
first lines. Nothing here loops over a file's content or backtracks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import re2

from holdfast.activities.review.analysing.languages import OTHER, is_code, language_of
from holdfast.activities.review.scope import rules
from holdfast.activities.review.scope.attributes import Attributes
from holdfast.contracts import FileKind

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.case_sensitive = True
_PATHS = [(kind, re2.compile("|".join(patterns), _OPTIONS)) for kind, patterns in rules.PATHS]
_GENERATED = re2.compile(
    (rf"(?im){rules.COMMENT}.{{0,200}}?(?:{'|'.join(rules.GENERATED)})").encode()
)


class Base:
    """The paths of the base, if a review is of what differs from it."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._folders = {folder for path in self._paths for folder in _folders(path)}
        self._names = {_name(folder) for folder in self._folders}

    def bears(self, path: str, pattern: Any) -> bool:
        """True if it has the file, or a folder that makes it match. For data the name is enough: a
        lock file is new once.
        """
        if path in self._paths or (language_of(path) != OTHER and not is_code(path)):
            return True
        return next(
            (each in self._folders for each in _folders(path) if pattern.search(each)), False
        )

    def uses(self, path: str, pattern: Any) -> bool:
        """True if a file that people write is where the base has such files: it has the file, or
        somewhere a folder of the name that makes it match. A file's own name (`test_a.py`), by
        which tools take it for a test, is enough, as it is for data.
        """
        if pattern.search(path.rpartition("/")[2]) or self.bears(path, pattern):
            return True
        matching = next((each for each in _folders(path) if pattern.search(each)), "")
        return _name(matching) in self._names


def _folders(path: str) -> Iterator[str]:
    """Yield the folders above a path, from the top, each with a slash at its end."""
    return (path[: place + 1] for place, sign in enumerate(path) if sign == "/")


def _name(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]


def kind_of(
    path: str, content: bytes, attributes: Attributes, base: Base | None = None
) -> FileKind:
    """Return the kind of a file. What its owners say counts most; an attribute that is taken back
    (`-linguist-vendored`) takes that kind back, by whatever rule it came. With a `base` only
    content that stands there, too, counts, and a new folder or name makes no file one that nobody
    wrote.
    """
    said = attributes.of(path)
    for attribute, kind in rules.ATTRIBUTES.items():
        if said.get(attribute):
            return kind
    denied = {kind for name, kind in rules.ATTRIBUTES.items() if said.get(name) is False}
    for kind, pattern in _PATHS:
        if kind not in denied and pattern.search(path):
            if base is not None and not _is_known(base, kind, path, pattern):
                continue
            # A generated test is no test that a person wrote.
            return _by_content(path, content, denied) or kind if _is_by_hand(kind) else kind
    return _by_content(path, content, denied) or "production"


def _is_known(base: Base, kind: FileKind, path: str, pattern: Any) -> bool:
    return base.uses(path, pattern) if _is_by_hand(kind) else base.bears(path, pattern)


def _is_by_hand(kind: FileKind) -> bool:
    return kind in ("tests", "docs", "examples")


def is_written(kind: FileKind) -> bool:
    """True if somebody wrote such a file here: it is not generated, vendored, minified or built."""
    return kind == "production" or _is_by_hand(kind)


def _by_content(path: str, content: bytes, denied: set[FileKind]) -> FileKind | None:
    """Return what its first lines and the length of its lines say; None: nothing."""
    if "generated" not in denied and _says_generated(content):
        return "generated"
    if path.lower().endswith(rules.MINIFIED) and len(content) >= rules.SHORT_FILE:
        lines = content.count(b"\n") + 1
        if len(content) / lines > rules.LONG_LINES:
            return "minified"
    return None


def _says_generated(content: bytes) -> Any:
    head = b"\n".join(content[: rules.FIRST_BYTES].split(b"\n", rules.FIRST_LINES)[:-1])
    return _GENERATED.search(head or content[: rules.FIRST_BYTES])
