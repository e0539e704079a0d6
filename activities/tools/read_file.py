"""Read a text file, or some lines of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import Field

from holdfast.activities.toolset.inputs import (
    TEXT_BYTES,
    Location,
    clean_lines,
    decode_text,
    place_of,
    quote_path,
    read,
)
from holdfast.activities.toolset.inputs import read_file as read_file_at
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import for_terminal, pluralize

LINE_LETTERS = 2_000
"""Characters shown of a line."""
SHOWN_LETTERS = 400_000
"""Characters of all lines of one call, before the rest is left for the next."""


@tool(seconds=60, reads=("folder", "repository"))
async def read_file(
    here: Here,
    file_path: Annotated[str, Field(description="As list_files shows it: INPUT/folder/name.")],
    offset: Annotated[int, Field(description="The first line to read.", ge=1)] = 1,
    limit: Annotated[int, Field(description="How many lines.", ge=1, le=20_000)] = 2_000,
    version: Annotated[
        Literal["head", "base"],
        Field(description="base: as in the revision that a repository is compared with, if it is."),
    ] = "head",
) -> str:
    """Read a text file of your inputs, with the numbers of its lines. Cite a line as `path:12`.
    What looks like a secret is shown as [redacted]. For PDF and Office documents use read_document.
    """
    place = place_of(here, file_path)
    if version == "base":
        content, note = await _read_base(here, place)
    else:
        content, note = await _read_head(here, file_path, place), ""
    withheld = await here.withheld(place.input)
    numbered = await anyio.to_thread.run_sync(
        _number_lines, content, file_path, offset, limit, withheld
    )
    return f"{note}{numbered}"


async def _read_head(here: Here, file_path: str, place: Location) -> bytes:
    try:
        return await read(here, file_path, TEXT_BYTES)
    except ToolError as error:
        if not place.below:
            raise
        deleted = (await here.snapshot(place.input)).manifest.deleted
        gone = {each.path: each.end for each in deleted}
        if (end := gone.get("/".join(place.below))) is None:
            raise
        raise ToolError(f"{quote_path(file_path)} was {end}; version=base reads it") from error


async def _read_base(here: Here, place: Location) -> tuple[bytes, str]:
    """Return what the base has under a path of the head or of its own, and a note on it."""
    path = quote_path(str(place))
    snapshot = await here.snapshot(place.input)
    manifest = snapshot.manifest
    if not manifest.base:
        raise ToolError(f"{quote_path(place.input)} is compared with no revision")
    wanted = "/".join(place.below)
    there = {file.path: file for file in manifest.before}
    heads = {file.path: file for file in (*manifest.files, *manifest.around)}
    head = heads.get(wanted)
    old = head.was if head else wanted
    if old in there:
        shown = Location(place.input, tuple(old.split("/")))
        content = await anyio.to_thread.run_sync(read_file_at, snapshot.before, shown, TEXT_BYTES)
        name = for_terminal(str(shown))
        return content, f"[{name} in {manifest.base[:12]}]\n"
    if head is None:
        raise ToolError(f"there was no file {path} in the base that is kept")
    if not head.was:
        raise ToolError(f"{path} is new: the base has no such file")
    if head in manifest.files:
        raise ToolError(f"the base's version of {path} is not kept: it is no text, or too large")
    content = await anyio.to_thread.run_sync(read_file_at, snapshot.root, place, TEXT_BYTES)
    return content, "[the same in the base and in the head]\n"


def _number_lines(
    content: bytes, path: str, offset: int, limit: int, withheld: Callable[[str], str]
) -> str:
    lines = decode_text(content, path).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return f"[{quote_path(path)} is empty]"
    if offset > len(lines):
        raise ToolError(
            f"{quote_path(path)} has {pluralize(len(lines), 'line')}; there is no line {offset:,}"
        )
    shown = clean_lines(lines[offset - 1 : offset - 1 + limit], LINE_LETTERS, withheld)
    numbered, left = [], SHOWN_LETTERS
    for number, line in enumerate(shown, offset):
        numbered.append(f"{number:>6}\t{line}")
        left -= len(numbered[-1])
        if left < 0:
            break
    end = offset + len(numbered) - 1
    if end < len(lines):
        numbered.append(
            f"[lines {offset:,} to {end:,} of {len(lines):,}; offset={end + 1} reads on]"
        )
    return "\n".join(numbered)
