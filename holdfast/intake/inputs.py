"""The inputs of a Goal, each from `name=PATH` or `name=text:...`: checked before all else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath

from holdfast.activities.catalogue.files import PlaybookFile, PlaybookInput
from holdfast.activities.preparation import INPUT_BYTES
from holdfast.activities.repositories.documents import (
    DOCUMENT_BYTES,
    NotReadable,
    is_blank,
    reader_of,
)
from holdfast.contracts import GoalInput, InputKind, Plan
from holdfast.errors import Refused
from holdfast.text import one_line, says_something
from holdfast.text.mistakes import refuse_choice, refuse_other
from holdfast.untrusted.folders import read_regular, resolve_path

LITERAL = "text:"
SCAN_SECONDS = 5.0
"""How long a file is looked at whose items are mapped."""
MOST_LITERAL_BYTES = 200 * 1024
"""Literal text travels inside the Goal, which must stay readable in the Web UI."""
_KINDS: dict[InputKind, str] = {
    "text": "text",
    "file": "file",
    "repository": "repository",
    "folder": "folder",
}


def input_of(
    pair: str,
    playbook: PlaybookFile | None,
    below: tuple[Path, ...] | None = None,
    mapped: Collection[str] = (),
) -> GoalInput:
    """Return the input that a pair gives. Refused if it gives none, or none of the playbook's.
    `below`: the only places that it may name, where it is a path. `mapped`: names of inputs or
    files whose items are mapped, which may be of any size.
    """
    name, found, value = pair.partition("=")
    if not found or not name or not value:
        raise Refused(f"--input {pair!r}: write name=PATH, or name={LITERAL}... for literal text")
    declared = playbook.inputs.get(name) if playbook else None
    if playbook and declared is None:
        known = ", ".join(sorted(playbook.inputs)) or "none"
        wrong = f"playbook {playbook.name!r} has no such input"
        raise Refused(f"--input {name}: {wrong}; it has: {known}")
    if declared and declared.kind == "text":
        text = value.removeprefix(LITERAL)
        if wrong := refuse_choice(declared.one_of, text):
            raise Refused(f"--input {name}: {wrong}")
        return GoalInput(name=name, kind="text", value=check_size(f"--input {name}", text))
    if value.startswith(LITERAL) and declared is None:
        text = value.removeprefix(LITERAL)
        if not says_something(text):
            raise Refused(f"--input {name}: the text after {LITERAL!r} is empty; write some")
        return GoalInput(name=name, kind="text", value=check_size(f"--input {name}", text))
    if declared and not says_something(value.removeprefix(LITERAL)):
        what = f"the text after {LITERAL!r} is empty, and a {_KINDS[declared.kind]} is needed"
        raise Refused(f"--input {name}: {what}; give {name}=PATH")
    wanted = declared.kind if declared else None
    is_mapped = name in mapped or PurePath(value).name in mapped
    given = _path_input(name, value, wanted, below, mapped=is_mapped)
    if declared and declared.mentions and unread_of(given)[1] is None:
        text = read_regular(Path(given.value), DOCUMENT_BYTES).decode("utf-8", "replace")
        if why := refuse_other(declared.mentions, text):
            raise Refused(f"--input {name}: {given.value!r} {why}")
    return given


def _is_below(leads: Path, places: tuple[Path, ...]) -> bool:
    return any(leads.is_relative_to(os.path.realpath(each)) for each in places)


def _leads_below(value: str, places: tuple[Path, ...]) -> bool:
    try:
        return _is_below(Path(os.path.realpath(Path(value).expanduser())), places)
    except (OSError, ValueError, RuntimeError):
        return False


def _path_input(
    name: str,
    value: str,
    kind: InputKind | None,
    below: tuple[Path, ...] | None,
    *,
    mapped: bool,
) -> GoalInput:
    elsewhere = Refused(
        f"--input {name}: {value!r:.200} is below no allowed root; name one in"
        f" HOLDFAST_ALLOWED_ROOTS, or give {LITERAL}..."
    )
    try:
        # Followed once: what is looked at is what the goal names.
        path = resolve_path(Path(value).expanduser())
    except (OSError, ValueError, RuntimeError) as error:
        # In the same words whether anything is there or not.
        if below is not None and not _leads_below(value, below):
            raise elsewhere from None
        # ValueError: a NUL in it; RuntimeError: a user there is not.
        hint = f"; for literal text write {name}={LITERAL}..."
        if kind:
            file = f"; a {_KINDS[kind]} is needed, so put the text into one"
            hint = file if value.startswith(LITERAL) and kind == "file" else ""
        raise Refused(f"--input {name}: there is no file or folder {value!r}{hint}") from error
    if below is not None and not _is_below(path, below):
        raise elsewhere
    found = _kind_of(path, kind)
    if kind and kind != found:
        raise Refused(f"--input {name}: {value!r} is a {_KINDS[found]}, a {_KINDS[kind]} is needed")
    if found == "file" and not path.is_file():
        raise Refused(f"--input {name}: {value!r} is not a regular file; give one")
    if not os.access(path, os.R_OK):
        raise Refused(f"--input {name}: {value!r} is not readable; change its permissions")
    if found == "file" and not (mapped and path.stat().st_size > INPUT_BYTES):
        # What `prepare` would refuse later is refused now.
        _check_file(name, path)
    return GoalInput(name=name, kind=found, value=str(path))


def _kind_of(path: Path, wanted: InputKind | None) -> InputKind:
    """Return the kind of a path. A folder is a repository if it holds git's own folder, or if a
    repository is wanted: then its faults are named as such.
    """
    if not path.is_dir():
        return "file"
    if wanted in ("repository", "folder"):
        return wanted
    return "repository" if os.path.lexists(path / ".git") else "folder"


def _check_file(name: str, path: Path) -> None:
    """Refuse a file that is neither text short enough for prompts nor a document for a tool."""
    what = f"--input {name}: {str(path)!r}"
    try:
        content = read_regular(path, DOCUMENT_BYTES)
        reader = reader_of(content)
    except NotReadable as error:
        raise Refused(f"{what}: {error}") from error
    except OSError as error:
        raise Refused(f"{what}: {error.strerror}; give a smaller or another file") from error
    if is_blank(content):
        raise Refused(f"{what}: there is nothing in it; give a file that says something")
    if len(content) > INPUT_BYTES and not reader:
        raise Refused(f"{what}: larger than {INPUT_BYTES >> 20} MiB; give a smaller one")


async def check_documents(
    inputs: tuple[GoalInput, ...], declared: Mapping[str, PlaybookInput]
) -> None:
    """Refuse a document that does not open, has no word in it or none of those that its input
    mentions; one that is slow to read passes.
    """
    for each in inputs:
        _, reader = unread_of(each)
        mentions = declared[each.name].mentions if each.name in declared else ()
        if reader == "read_document":
            # Only here, because what reads documents takes a moment to load.
            from holdfast.activities.tools.read_document import explain_unreadable

            content = await asyncio.to_thread(read_regular, Path(each.value), DOCUMENT_BYTES)
            if why := await explain_unreadable(content, mentions):
                raise Refused(f"--input {each.name}: {each.value!r} {one_line(why)}")


async def check_maps(inputs: tuple[GoalInput, ...], plan: Plan | None) -> None:
    """Refuse a file that a map of the plan cannot be carried out on, as far as that is seen within
    some seconds: all of it is looked at when the run is prepared.
    """
    maps = [each for each in plan.subtasks if each.map] if plan else []
    over = {each.map.over for each in maps if each.map}
    for each in inputs:
        if each.kind == "file" and each.name in over:
            # Only here, because what reads documents takes a moment to load.
            from holdfast.activities.mapping.scanning import check_file
            from holdfast.activities.mapping.sources import NotItems

            try:
                await check_file(Path(each.value), each.name, maps, SCAN_SECONDS)
            except (NotItems, OSError) as error:
                raise Refused(f"--input {each.name}: {each.value!r} {error}") from error


def check_size(what: str, text: str) -> str:
    """Return the text. Refused, naming `what`, if it is too long for a Goal."""
    if len(text.encode("utf-8", "surrogateescape")) > MOST_LITERAL_BYTES:
        limit = MOST_LITERAL_BYTES // 1024
        remedy = "put it into a file: --input name=FILE"
        raise Refused(f"{what}: more than {limit} KiB of text; {remedy}")
    return text


def check_inputs(inputs: tuple[GoalInput, ...], playbook: PlaybookFile | None) -> None:
    """Refuse an input that is given twice, or a missing one that the playbook needs."""
    names = [each.name for each in inputs]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"--input {name}: given twice; give each input once")
    for name, declared in playbook.inputs.items() if playbook else ():
        if declared.required and name not in names:
            sample = "PATH" if declared.kind != "text" else "TEXT"
            about = f" ({declared.description})" if declared.description else ""
            raise Refused(f"input {name!r} is missing{about}: give --input {name}={sample}")


def unread_of(given: GoalInput) -> tuple[str, str | None]:
    """Return the name of an input and the tool that reads it: empty for a folder, None for text."""
    if given.kind in ("repository", "folder"):
        return given.name, ""
    if given.kind == "text":
        return given.name, None
    if Path(given.value).stat().st_size > DOCUMENT_BYTES:
        # Only what is mapped may be so large, and no prompt has it.
        return given.name, "query_data"
    return given.name, reader_of(read_regular(Path(given.value), DOCUMENT_BYTES)) or None
