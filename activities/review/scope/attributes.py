"""Read `.gitattributes` as text: what a repository says of the kinds of its files. Git is not
asked, so no attribute has any other effect here, and every bound is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.activities.review.scope.rules import ATTRIBUTES
from holdfast.activities.toolset.globs import name_pattern
from holdfast.activities.toolset.tool import ToolError

NAME = ".gitattributes"
MOST_RULES = 200
"""Lines of all files together that say something of kinds: each is tried on every path."""
LINE_LETTERS = 2_048
"""Longest line that is a rule, as in Git."""


@dataclass(frozen=True)
class _Rule:
    folder: str
    """Path with a slash at its end; empty: the top."""
    pattern: Any
    said: Mapping[str, bool | None]
    """None: it is not said any more."""


class Attributes:
    """Rules of the files of this name; those nearer to a path come after those above it."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.beyond = 0
        """Rules that were too many."""
        self._rules: list[_Rule] = []
        for path, content in sorted((files or {}).items(), key=lambda item: item[0].count("/")):
            self._read(path.removesuffix(NAME), content.decode("utf-8", "replace"))

    def of(self, path: str) -> dict[str, bool]:
        """Return what is said of a path: an attribute is set, or it is taken back."""
        found: dict[str, bool | None] = {}
        for rule in self._rules:
            if path.startswith(rule.folder) and rule.pattern.search(
                path[len(rule.folder) :].encode("utf-8", "surrogateescape")
            ):
                found.update(rule.said)
        return {name: value for name, value in found.items() if value is not None}

    def _read(self, folder: str, text: str) -> None:
        for line in text.splitlines():
            if len(line) > LINE_LETTERS or "linguist-" not in line:
                continue
            glob, said = _parse_line(line)
            if not glob or not said:
                continue
            if len(self._rules) >= MOST_RULES:
                self.beyond += 1
                continue
            try:
                # A brace means itself here.
                pattern = name_pattern(glob.replace("{", "[{]").replace("}", "[}]"))
            except ToolError:
                continue
            self._rules.append(_Rule(folder, pattern, said))


def _parse_line(line: str) -> tuple[str, dict[str, bool | None]]:
    """Return the pattern of a line, and what it says of kinds; empty for a comment, or a macro."""
    text = line.strip()
    if text.startswith(("#", "[", "!")):
        return "", {}
    if text.startswith('"'):
        glob, _, rest = text[1:].partition('"')
    else:
        glob, _, rest = text.partition(" ") if " " in text else text.partition("\t")
    said: dict[str, bool | None] = {}
    for word in rest.split():
        name, _, value = word.partition("=")
        if name.lstrip("-!") in ATTRIBUTES:
            said[name.lstrip("-!")] = _value(name, value)
    return glob.strip(), said


def _value(name: str, value: str) -> bool | None:
    if name.startswith("!"):
        return None
    return not name.startswith("-") and value.lower() not in ("false", "0", "no")
