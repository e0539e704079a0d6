"""List the files that there are to read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.activities.repositories.changed import Changed, list_changed
from holdfast.activities.repositories.manifest import Manifest
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
    begins with the name of the input; other tools take it as it is shown here. Of a repository that
    is compared with a revision those come first that differ from it, each with how.
    """
    found = await list_below(here, path)
    within = name_pattern(pattern) if pattern else None
    if within is not None:
        found = [file for file in found if _matches(within, file)]
    marks, gone, notes = dict[str, str](), list[str](), list[str]()
    for name in _shown_inputs(found, path, here):
        if here.inputs[name].is_folder:
            manifest = (await here.snapshot(name)).manifest
            for file in list_changed(manifest):
                if file.now:
                    marks[f"{name}/{file.path}"] = f"  {for_terminal(file.mark)}"
                elif _is_listed(name, file, path, within):
                    place = for_terminal(f"{name}/{file.path}")
                    gone.append(
                        f"{place}  {for_terminal(file.mark)}, {pluralize(file.deleted, 'line')}"
                    )
            notes += _unread(name, manifest)
    differ = [file for file in found if str(file.place) in marks]
    same = [file for file in found if str(file.place) not in marks]
    lines = [
        *(f"{file.path}  {file.size}{marks[str(file.place)]}" for file in differ),
        *gone,
        *(f"{file.path}  {file.size}{_input(file)}" for file in same),
    ]
    if len(lines) > MOST:
        more = f"[{len(lines) - MOST:,} more; give a pattern or a path to see fewer]"
        lines = [*lines[:MOST], more]
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


def _is_listed(name: str, file: Changed, path: str, within: object) -> bool:
    """True if a file that was deleted stands below a path, and a glob means it."""
    place = Location(name, tuple(file.path.split("/")))
    below = path.strip("/")
    return f"{place}/".startswith(f"{below}/" if below else "") and (
        within is None or _matches(within, File(place, 0))
    )


def _unread(name: str, manifest: Manifest) -> list[str]:
    """Return how many files of an input are not in its snapshot, and why."""
    notes = []
    if manifest.around_cut:
        kept = "nobody wrote them, or they are beyond what is kept"
        notes.append(
            f"[{name}: {pluralize(manifest.around_cut, 'file')} that did not change cannot be read:"
            f" {kept}]"
        )
    if count := manifest.before_cut:
        files = pluralize(count, "file")
        notes.append(f"[{name}: the base's version of {files} is not kept: no text, or too large]")
    if count := manifest.unread_in_all:
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(manifest.unread_why.items()))
        were = "was" if count == 1 else "were"
        notes.append(
            f"[{name}: {pluralize(count, 'file')} {were} not read and cannot be: {reasons}]"
        )
    return notes
