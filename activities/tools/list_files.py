"""List the files that there are to read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.activities.toolset.globs import name_pattern
from holdfast.activities.toolset.inputs import File, Location, list_below
from holdfast.activities.toolset.tool import Here, tool
from holdfast.text import for_terminal, pluralize

MOST = 1_000
"""Files that are named at once."""


@tool(seconds=60, reads=("folder", "repository"))
async def list_files(
    here: Here,
    pattern: Annotated[
        str, Field(description="A glob, as **/*.py or *.{md,txt}; empty: all.", max_length=1_000)
    ] = "",
    path: Annotated[
        str, Field(description="Look below this folder only; empty: in all inputs.")
    ] = "",
) -> str:
    """List the files of your inputs whose path matches a glob, with their sizes in bytes. A path
    begins with the name of the input; other tools take it as it is shown here.
    """
    found = await list_below(here, path)
    if pattern:
        within = name_pattern(pattern)
        found = [file for file in found if _matches(within, file)]
    lines = [f"{file.path}  {file.size}{_input(file)}" for file in found[:MOST]]
    if len(found) > MOST:
        lines.append(f"[{len(found) - MOST:,} more; give a pattern or a path to see fewer]")
    notes = [
        note for name in _shown_inputs(found, path, here) if (note := await _unread(here, name))
    ]
    for name in here.inputs:
        here.not_read(name)
    return "\n".join([*(lines or ["[no file matches]"]), *notes])


def _input(file: File) -> str:
    """Return which input a file is, if it is cited by its own name."""
    own = file.cited not in ("", str(file.place))
    return f"  (the input {for_terminal(str(file.place))})" if own else ""


def _matches(pattern: object, file: File) -> bool:
    """True if a glob means a file: below its input, or with the input's name before it."""
    below = Location("", file.place.below)
    paths = (file.path, str(below).removeprefix("/"))
    return any(pattern.search(each.encode("utf-8", "replace")) for each in paths)  # type: ignore[attr-defined]


def _shown_inputs(found: list[File], path: str, here: Here) -> list[str]:
    first = path.strip("/").partition("/")[0]
    return sorted({file.place.input for file in found} | ({first} & here.inputs.keys()))


async def _unread(here: Here, name: str) -> str:
    """Return how many files of an input are not in its snapshot, and why."""
    if here.inputs[name].kind in ("text", "file"):
        return ""
    manifest = await here.manifest(name)
    if not manifest.unread_in_all:
        return ""
    reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(manifest.unread_why.items()))
    count = manifest.unread_in_all
    were = "was" if count == 1 else "were"
    return f"[{name}: {pluralize(count, 'file')} {were} not read and cannot be: {reasons}]"
