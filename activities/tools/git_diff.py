"""Show how a repository differs from the revision that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from holdfast.activities.repositories.changed import Changed, list_changed
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.repositories.unified import Section, heads_around, lay_out
from holdfast.activities.toolset.inputs import (
    TEXT_BYTES,
    Location,
    clean_lines,
    decode_text,
    place_of,
    quote_path,
    read_file,
)
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import for_terminal, pluralize

LINE_LETTERS = 1_000
MOST_LINES = 5_000
"""Lines that one call shows, including those around changes."""


@tool(seconds=60, reads=("change",))
async def git_diff(
    here: Here,
    path: Annotated[str, Field(description="A repository, or a file or folder of one.")],
    context: Annotated[int, Field(description="Unchanged lines around.", ge=0, le=50)] = 3,
) -> str:
    """Show what differs from the revision that the repository is compared with, as a unified diff:
    each line with its number, then `-` if it was deleted or `+` if it is new. The number of a
    deleted line is that of the base. Deleted files are shown whole.
    """
    place = place_of(here, path)
    snapshot = await here.snapshot(place.input)
    base = snapshot.manifest.base[:12]
    if not base:
        raise ToolError(
            f"{quote_path(place.input)} is compared with no revision: its whole tree is there to be"
            " read; git_history shows what its commits changed"
        )
    wanted = "/".join(place.below)
    files = sorted(
        (
            file
            for file in list_changed(snapshot.manifest)
            if not wanted
            or any(
                each == wanted or each.startswith(f"{wanted}/")
                for each in (file.path, file.old_path)
            )
        ),
        key=lambda file: file.path,
    )
    if not files:
        return f"[nothing at {quote_path(path)} differs from {base}]"
    withheld = await here.withheld(place.input)
    show = _Diff(snapshot, place.input, context, withheld).show
    return "\n".join([f"[compared with {base}]", *await anyio.to_thread.run_sync(show, files)])


@dataclass(frozen=True)
class _Diff:
    snapshot: Snapshot
    name: str
    context: int
    withheld: Callable[[str], str]

    def show(self, files: list[Changed]) -> list[str]:
        """Return the lines of the diffs of some files, up to MOST_LINES. Blocking."""
        shown: list[str] = []
        for number, file in enumerate(files):
            if len(shown) >= MOST_LINES:
                left = pluralize(len(files) - number, "more file")
                shown.append(f"[not shown: {left}; name a path]")
                break
            shown += self._show_file(file, MOST_LINES - len(shown))
        return shown

    def _show_file(self, file: Changed, most: int) -> Iterator[str]:
        old, new = self._shown(file.old_path), self._shown(file.path)
        if file.now and file.now.was and file.old_path != file.path:
            yield f"renamed from {old}"
        yield f"--- {old}" if file.old_path else "--- /dev/null"
        yield f"+++ {new}" if file.now else "+++ /dev/null"
        if file.was is not None and file.was.link:
            yield f"[it was {file.was.end}]"
        if file.now is not None and file.was is None and file.old_path:
            yield "[the base's version is not kept: it is no text, or too large]"
        was = self._read(self.snapshot.before, file.was.path) if file.was else []
        now = self._read(self.snapshot.root, file.now.path) if file.now else []
        if not file.hunks:
            yield "[no line differs, but for line ends]" if file.was else "[it is empty]"
        for section in lay_out(file.hunks, len(was), len(now), self.context):
            yield self._header(section, was, now)
            yield from self._lines(section, was, now, most)
            most -= len(section.lines)
            if most <= 0:
                yield "[more of it differs; read_file shows it]"
                return

    def _header(self, section: Section, was: list[str], now: list[str]) -> str:
        first = section.first
        lines, number = (was, first.old) if first.mark == "-" else (now, first.new)
        heads = [lines[at - 1] for at in heads_around(lines, number)]
        shown = clean_lines(heads, LINE_LETTERS, self.withheld) if heads else ()
        return section.header_within(shown)

    def _lines(self, section: Section, was: list[str], now: list[str], most: int) -> Iterator[str]:
        told = section.lines[:most]
        texts = [
            _line(was, each.old) if each.mark == "-" else _line(now, each.new) for each in told
        ]
        for each, text in zip(told, clean_lines(texts, LINE_LETTERS, self.withheld), strict=True):
            yield each.show(text)

    def _read(self, root: Path, path: str) -> list[str]:
        place = Location(self.name, tuple(path.split("/")))
        text = decode_text(read_file(root, place, TEXT_BYTES), path)
        return text.removesuffix("\n").split("\n") if text else []

    def _shown(self, path: str) -> str:
        return for_terminal(f"{self.name}/{path}")


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1] if number <= len(lines) else "[not kept]"
