"""Tests of a changed file: by their names, and by what they import."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from holdfast.activities.review.uses.reporting import Changed
from holdfast.activities.review.uses.tree import Pair, Tree

MOST = 8
"""Tests named of a file."""


def find(tree: Tree, changed: Sequence[Changed]) -> dict[str, list[str]]:
    """Return the tests of each changed file: those named after it, and those that use what it
    defines.
    """
    named: dict[str, list[str]] = {}
    for path in tree.head:
        if stem := _tested(path):
            named.setdefault(stem, []).append(path)
    found: dict[str, list[str]] = {}
    for pair in tree.pairs:
        if pair.kind == "tests":
            continue
        tests = sorted(named.get(_stem(pair), ()), key=lambda test: -_near(test, pair.path))
        users = [
            use.file
            for each in changed
            if each.file == pair.path
            for use in each.uses
            if tree.head[use.file].kind == "tests"
        ]
        listed = [each for each in dict.fromkeys([*tests, *users]) if each != pair.path]
        if listed:
            found[pair.path] = listed[:MOST]
    return found


def _stem(pair: Pair) -> str:
    name = posixpath.basename(pair.path).partition(".")[0]
    above = posixpath.basename(posixpath.dirname(pair.path))
    return above if name in ("__init__", "index", "mod") else name


def _tested(path: str) -> str:
    """Return the stem of the file that a test is named after; empty: it is no test by its name."""
    folder, name = posixpath.split(path)
    stem, _, rest = name.partition(".")
    if re.match(r"(?:test|spec)\.[cm]?[jt]sx?$", rest):
        return stem
    if "__tests__" in folder.split("/"):
        return stem
    for pattern in (r"test_(\w+)", r"(\w+)_(?:test|spec|tests)", r"([A-Z]\w*)(?:Tests?|IT|Spec)"):
        if found := re.fullmatch(pattern, stem):
            return found[1]
    return ""


def _near(test: str, path: str) -> int:
    """Return how many names of folders two paths share."""
    return len({*test.split("/")[:-1]} & {*path.split("/")[:-1]})
