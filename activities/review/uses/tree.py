"""The two trees of a change: the base's and the head's, as files on disk."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import re2

MOST_BYTES = 400_000
"""Bytes of a file that is parsed; longer ones are data, or made by a program."""
LONGEST_LINE = 20_000
"""Bytes of a line of a file that is parsed."""
MOST_HOLDING = 300
"""Files that hold a changed name and are parsed."""
MOST_SEARCHED = 400
"""Changed files whose names are searched for."""
Hunk = tuple[int, int, int, int]


@dataclass(frozen=True)
class File:
    """A file of one of the trees."""

    path: str
    language: str
    kind: str = "production"


@dataclass(frozen=True)
class Pair:
    """One file of the change: its path in the base and in the head, empty where it is not."""

    was: str
    now: str
    language: str
    kind: str
    hunks: tuple[Hunk, ...] = ()

    @property
    def path(self) -> str:
        return self.now or self.was

    def touches(self, first: int, last: int) -> bool:
        """True if the change added, edited or deleted lines among these of the head."""
        return not self.was or any(
            (start <= last and first <= start + count - 1) if count else first <= start < last
            for _, _, start, count in self.hunks
        )

    def touched_before(self, first: int, last: int) -> bool:
        """True if the change deleted or edited lines among these of the base."""
        return any(
            count and start <= last and first <= start + count - 1
            for start, count, _, _ in self.hunks
        )


@dataclass(frozen=True)
class Wanted:
    """What a file must hold to be parsed: one of some names and, if there are any, one of others
    with it.
    """

    names: frozenset[str]
    with_one_of: frozenset[str] = frozenset()

    @property
    def patterns(self) -> list[Any]:
        return [
            re2.compile("|".join(map(re.escape, sorted(names))).encode())
            for names in (self.names, self.with_one_of)
            if names
        ]


@dataclass
class Tree:
    """Both trees. Texts are read when they are asked for, and kept."""

    root: Path
    before: Path
    head: Mapping[str, File]
    base: Mapping[str, File]
    """All files of the base: those that the change left alone are read below `root`."""
    pairs: tuple[Pair, ...]
    linked: frozenset[str]
    """Files of the base that a link replaced: what imports them still finds something."""
    deadline: float
    """On the monotonic clock."""
    unread: set[str] = field(default_factory=set)
    """Files that were to be parsed and could not be."""
    late: bool = False
    """True if the time was over before all was read."""
    not_searched: int = 0
    """Files that hold a changed name and are beyond the bound."""
    _texts: dict[tuple[bool, str], str | None] = field(default_factory=dict)

    @classmethod
    def given(cls, told: Mapping[str, Any]) -> Tree:
        """Return the trees that the lens describes."""
        head = {path: File(path, *more) for path, *more in told["head"]}
        changed = {path: File(path, *more) for path, *more in told["before"]}
        pairs = tuple(
            Pair(was, now, language, kind, tuple((a, b, c, d) for a, b, c, d in hunks))
            for was, now, language, kind, hunks in told["pairs"]
        )
        same = {path: file for path, file in head.items() if path not in {p.now for p in pairs}}
        return cls(
            Path(told["root"]),
            Path(told["before_root"]),
            head,
            {**same, **changed},
            pairs,
            frozenset(told["linked"]),
            time.monotonic() + float(told["seconds"]),
        )

    @cached_property
    def _changed_before(self) -> frozenset[str]:
        return frozenset(pair.was for pair in self.pairs if pair.was)

    def is_gone(self, path: str) -> bool:
        """True if there is nothing at a path of the base any more."""
        return path not in self.head and path not in self.linked

    def on_time(self) -> bool:
        """False once the time is over, which is remembered."""
        if time.monotonic() > self.deadline:
            self.late = True
        return not self.late

    def touches(self, path: str, first: int, last: int) -> bool:
        """True if the change touched a file of the head among these lines."""
        return any(pair.now == path and pair.touches(first, last) for pair in self.pairs)

    def place(self, path: str, *, base: bool = False) -> Path:
        return (self.before if base and path in self._changed_before else self.root) / path

    def text(self, path: str, *, base: bool = False) -> str | None:
        """Return the text of a file, None if there is none that can be parsed."""
        key = base and path in self._changed_before, path
        if key not in self._texts:
            there = self.base if base else self.head
            self._texts[key] = self._read(path, base=base) if path in there else None
        return self._texts[key]

    def _read(self, path: str, *, base: bool) -> str | None:
        try:
            content = self.place(path, base=base).read_bytes()
        except OSError:
            return None
        if len(content) > MOST_BYTES or max(map(len, content.split(b"\n"))) > LONGEST_LINE:
            self.unread.add(path)
            return None
        text = content.decode("utf-8-sig", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self, path: str, *, base: bool = False) -> list[str]:
        return (self.text(path, base=base) or "").split("\n")

    def holding(self, wanted: Sequence[Wanted], languages: Collection[str]) -> list[str]:
        """Return the files of the head in these languages that hold what is wanted, those of the
        change first, then the nearest to it.
        """
        patterns = [each.patterns for each in wanted[:MOST_SEARCHED]]
        found = [path for path in self._searched(languages) if self._holds(path, patterns)]
        changed = {pair.now for pair in self.pairs}
        folders = {path.rpartition("/")[0] for path in changed}
        found.sort(key=lambda path: (path not in changed, path.rpartition("/")[0] not in folders))
        self.not_searched += max(len(found) - MOST_HOLDING, 0)
        return found[:MOST_HOLDING]

    def _searched(self, languages: Collection[str]) -> Iterator[str]:
        for path, file in self.head.items():
            if file.language in languages and self.on_time():
                yield path

    def _holds(self, path: str, wanted: Sequence[Sequence[Any]]) -> bool:
        try:
            content = self.place(path).read_bytes()
        except OSError:
            return False
        return any(all(part.search(content) for part in patterns) for patterns in wanted)


def module_paths(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths by their last name without its ending."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[2].partition(".")[0], []).append(path)
    return found
