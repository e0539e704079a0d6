"""Show which lines of a repository differ from the revision that it is compared with."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.toolset.inputs import (
    TEXT_BYTES,
    Location,
    clean_line,
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


@tool(seconds=60, reads=("repository",))
async def git_diff(
    here: Here,
    path: Annotated[str, Field(description="A repository, or a file or folder of one.")],
    context: Annotated[int, Field(description="Unchanged lines around.", ge=0, le=50)] = 3,
) -> str:
    """Show what differs from the revision that the repository is compared with: lines that are new
    or changed are marked +. Lines and files that were deleted are not kept, and so not shown;
    git_history counts them.
    """
    place = place_of(here, path)
    manifest = await here.manifest(place.input)
    if not manifest.base:
        raise ToolError(
            f"{quote_path(place.input)} is compared with no revision: its whole tree is there to be"
            " read; git_history shows what its commits changed"
        )
    wanted = "/".join(place.below)
    files = [
        file
        for file in manifest.files
        if not wanted or file.path == wanted or file.path.startswith(f"{wanted}/")
    ]
    if not files:
        return f"[nothing at {quote_path(path)} differs from {manifest.base[:12]}]"
    root = await here.folder(place.input)
    lines = await anyio.to_thread.run_sync(_show_changes, root, place.input, files, context)
    return "\n".join([f"[compared with {manifest.base[:12]}]", *lines])


def _show_changes(root: Path, name: str, files: list[SnapshotFile], context: int) -> list[str]:
    """Return the changed lines of some files, up to MOST_LINES. Blocking."""
    shown_lines: list[str] = []
    for number, file in enumerate(files):
        if len(shown_lines) >= MOST_LINES:
            shown_lines.append(
                f"[not shown: {pluralize(len(files) - number, 'more file')}; name a path]"
            )
            break
        place = Location(name, tuple(file.path.split("/")))
        text = decode_text(read_file(root, place, TEXT_BYTES), file.path).removesuffix("\n")
        shown_lines.append(f"--- {for_terminal(str(place))}")
        shown_lines += _hunks(file, text.split("\n"), context, MOST_LINES - len(shown_lines))
    return shown_lines


def _hunks(file: SnapshotFile, lines: list[str], context: int, most: int) -> list[str]:
    touched = ((1, len(lines)),) if file.touched is None else file.touched
    numbers = (number for first, last in touched for number in range(first, last + 1))
    new = {*islice(numbers, most)}
    near = {number + each for number in new for each in range(-context, context + 1)}
    if not new:
        return ["[only lines that were deleted]"]
    last = 0
    hunks: list[str] = []
    for number in sorted(near & {*range(1, len(lines) + 1)}):
        if len(hunks) >= most:
            hunks.append(f"[more of it differs from line {number:,} on; read_file shows it]")
            break
        if number > last + 1:
            hunks.append(f"@@ line {number:,} @@")
        mark = "+" if number in new else " "
        hunks.append(f"{mark}{clean_line(lines[number - 1], LINE_LETTERS)}")
        last = number
    return hunks
