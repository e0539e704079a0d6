"""Find lines by a regular expression."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from holdfast.activities.repositories.changed import list_changed
from holdfast.activities.toolset.globs import line_pattern, name_pattern
from holdfast.activities.toolset.inputs import (
    TEXT_BYTES,
    File,
    clean_line,
    decode_text,
    list_below,
    read,
    read_file,
)
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import pluralize

Mode = Literal["content", "files_with_matches", "count"]
SECONDS = 40.0
"""Time limit of the search itself; what was found by then is returned."""
MOST_COUNTED = 10_000
"""Lines of one file that are counted."""
LINE_LETTERS = 500
TOLD_BYTES = 200_000
"""Bytes of all lines that are told."""


@tool(seconds=60, reads=("folder", "repository"))
async def search_files(
    here: Here,
    pattern: Annotated[
        str, Field(description="A regular expression of RE2: no look-arounds.", min_length=1)
    ],
    path: Annotated[str, Field(description="A folder or file to look in; empty: all.")] = "",
    glob: Annotated[str, Field(description="Only in files like this: *.py, src/**/*.ts.")] = "",
    output_mode: Annotated[
        Mode, Field(description="Matching lines, the files that have any, or how many in each.")
    ] = "content",
    ignore_case: bool = False,
    context: Annotated[int, Field(description="Lines around each match.", ge=0, le=20)] = 0,
    head_limit: Annotated[int, Field(description="Results at most.", ge=1, le=1_000)] = 100,
) -> str:
    """Search the lines of your text files with a regular expression. A line is shown as
    `path:12:text`, those around a match as `path-11-text`; what looks like a secret is shown as
    [redacted] and cannot be searched for. Files that differ from the revision that a repository is
    compared with come first.
    """
    search = Search(
        line_pattern(pattern, ignore_case=ignore_case),
        output_mode,
        context,
        head_limit,
        time.monotonic() + SECONDS,
    )
    files = await list_below(here, path)
    if glob:
        names = name_pattern(glob)
        files = [file for file in files if names.search("/".join(file.place.below).encode())]
    searched = set()
    for name in sorted({file.place.input for file in files}):
        before = search.looked_at
        mine = [file for file in files if file.place.input == name]
        if here.inputs[name].kind in ("text", "file"):
            content = await read(here, name, TEXT_BYTES)
            await anyio.to_thread.run_sync(search.look, mine[0], content)
        else:
            snapshot = await here.snapshot(name)
            search.withheld = await here.withheld(name)
            changed = {file.path for file in list_changed(snapshot.manifest)}
            first = [file for file in mine if "/".join(file.place.below) in changed]
            rest = [file for file in mine if "/".join(file.place.below) not in changed]
            walk, found = search.walk, search.found
            await anyio.to_thread.run_sync(walk, snapshot.root, first, abandon_on_cancel=True)
            search.in_changed += search.found - found
            search.compared |= bool(snapshot.manifest.base)
            await anyio.to_thread.run_sync(walk, snapshot.root, rest, abandon_on_cancel=True)
        if search.looked_at > before:
            searched.add(name)
    # A search that went through no text, as of a PDF, has told nothing; one without a hit has.
    for name in here.inputs.keys() - searched:
        here.not_read(name)
    return search.render(len(files))


@dataclass
class Search:
    """Hits so far; `deadline` is on the monotonic clock."""

    pattern: Any
    mode: Mode
    context: int
    most: int
    deadline: float
    results: list[str] = field(default_factory=list)
    found: int = 0
    told_bytes: int = 0
    not_read: int = 0
    looked_at: int = 0
    late: bool = False
    withheld: Callable[[str], str] = str
    compared: bool = False
    """True if a repository that is compared with a revision was searched."""
    in_changed: int = 0
    """What was found in files that differ from it."""

    @property
    def full(self) -> bool:
        """True if nothing more would be told."""
        return self.found >= self.most or self.told_bytes > TOLD_BYTES

    def walk(self, root: Path, files: list[File]) -> None:
        """Search files of a folder until there is enough, or it is late. Blocking."""
        for file in files:
            self.late = time.monotonic() > self.deadline
            if self.full or self.late:
                return
            try:
                self.look(file, read_file(root, file.place, TEXT_BYTES))
            except ToolError:
                self.not_read += 1

    def look(self, file: File, content: bytes) -> None:
        """Search one file. Blocking."""
        try:
            lines = decode_text(content, file.path).removesuffix("\n").split("\n")
        except ToolError:
            self.not_read += 1
            return
        self.looked_at += 1
        numbers = self._matching(lines)
        most = self.most - self.found if self.mode == "content" else MOST_COUNTED
        matching = [*islice(numbers, 1 if self.mode == "files_with_matches" else most)]
        self.found += len(matching) if self.mode == "content" else bool(matching)
        if self.mode == "content":
            self._tell_lines(file, lines, matching)
        elif matching:
            more = "+" if len(matching) == MOST_COUNTED else ""
            counted = f":{len(matching)}{more}" if self.mode == "count" else ""
            self._tell(f"{file.path}{counted}")

    def _matching(self, lines: list[str]) -> Iterator[int]:
        """Yield the places of lines with a match."""
        data = "\n".join(lines).encode("utf-8", "replace")
        number = start = 0
        while match := self.pattern.search(data, start):
            number += data.count(b"\n", start, match.start())
            end = data.find(b"\n", match.end())
            # A secret is not to be found by guessing it, a letter after the other.
            if self.pattern.search(clean_line(lines[number], LINE_LETTERS, self.withheld).encode()):
                yield number
            self.late = time.monotonic() > self.deadline
            if end < 0 or self.late:
                return
            start, number = end + 1, number + 1

    def _tell_lines(self, file: File, lines: list[str], matching: list[int]) -> None:
        """Tell these lines, and those around them; a gap between two blocks is marked."""
        around = range(-self.context, self.context + 1)
        near = {number + each for number in matching for each in around}
        last = -1
        for number in sorted(near & {*range(len(lines))}):
            if self.context and number > last + 1 and self.results:
                self._tell("--")
            mark = ":" if number in matching else "-"
            text = clean_line(lines[number], LINE_LETTERS, self.withheld)
            self._tell(f"{file.path}{mark}{number + 1}{mark}{text}")
            last = number

    def _tell(self, line: str) -> None:
        self.results.append(line)
        self.told_bytes += len(line.encode("utf-8", "replace"))

    def render(self, files: int) -> str:
        """Return what was found, and what of it is missing and why."""
        notes = []
        if self.full:
            notes.append("there may be more: search for less, or raise head_limit")
        if self.late:
            notes.append(f"stopped after {SECONDS:.0f} s and {pluralize(self.looked_at, 'file')}")
        if self.not_read:
            notes.append(f"not read, as no text or too large: {pluralize(self.not_read, 'file')}")
        lines = self.results or [
            f"[nothing found in {self.looked_at:,} of {pluralize(files, 'file')}]"
        ]
        first = []
        if self.compared and self.results:
            what = "lines" if self.mode == "content" else "files"
            those = f"{self.in_changed:,} of {self.found:,} {what}"
            first = [f"[{those} are in what changed: they come first]"]
        return "\n".join([*first, *lines, *(f"[{note}]" for note in notes)])
