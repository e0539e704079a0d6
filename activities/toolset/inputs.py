"""The inputs of a subtask as one tree of files for its agent: each is a folder or a file at the top
of it, under its own name. Nothing outside of them has a path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories.documents import decode
from holdfast.activities.repositories.working_tree import PATH_FOLDERS
from holdfast.activities.toolset.tool import Here, ToolError
from holdfast.text import for_terminal, one_line
from holdfast.untrusted.folders import Folder, NotRegular, TooLarge, read_regular
from holdfast.untrusted.redact import MARGIN, redact, without_keys

MOST_FILES = 100_000
"""Files below one input that are looked at; a snapshot holds no more."""
PATH_LETTERS = 1_000
TEXT_BYTES = 4 * 1024 * 1024
"""The largest file that is read as text: its lines take twenty times its size."""
TEXT_WINDOW = 8_000
"""Bytes; a NUL byte among the first of a file means that it is not text, as git decides it."""


@dataclass(frozen=True)
class Location:
    """Target of a path: an input, or something below one."""

    input: str
    below: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join((self.input, *self.below))


@dataclass(frozen=True)
class File:
    """A file that a tool may read."""

    place: Location
    size: int
    cited: str = ""
    """Name that findings cite it by, if not its path."""

    @property
    def path(self) -> str:
        """The path as a model is shown it; a line break in a name would look like another file."""
        return for_terminal(self.cited or str(self.place))


def place_of(here: Here, path: str) -> Location:
    """Return what a model named. Raise ToolError for what is not an input of the subtask or leads
    out of it.
    """
    if len(path) > PATH_LETTERS or "\0" in path:
        raise ToolError("that is not a path; list_files shows those there are")
    name = path.removeprefix("/")
    own = {cited: input for input in here.inputs if (cited := cited_as(here, Location(input)))}
    if (meant := own.get(name, name)) in here.inputs:
        return Location(meant)
    # The name of an input may hold a slash: the longest that fits is meant.
    for known in sorted(here.inputs, key=len, reverse=True):
        if name.rstrip("/") == known or name.startswith(f"{known}/"):
            below = tuple(each for each in name[len(known) :].split("/") if each not in ("", "."))
            break
    else:
        raise ToolError(f"{quote_path(path)} begins with no input; {_inputs(here)}")
    if ".." in below:
        raise ToolError(f"{quote_path(path)} leads out; give a path as list_files shows it")
    if below and not _is_folder(here, known):
        raise ToolError(f"{quote_path(known)} is a file and no folder; there is nothing below it")
    return Location(known, below)


def cited_as(here: Here, place: Location) -> str:
    """Return what a finding cites: for an input that is a single file the name of that file, unless
    another input has it, too; else the place.
    """
    pinned = here.inputs[place.input]
    if place.below or not pinned.file_name:
        return str(place)
    others = [each for each in here.inputs.values() if each.name != pinned.name]
    taken = {name for each in others for name in (each.name, each.file_name)}
    return str(place) if pinned.file_name in taken else pinned.file_name


def quote_path(path: str) -> str:
    """Return a path for a message: harmless, short and in quotes."""
    line = one_line(path)
    return repr(line if len(line) <= 200 else f"{line[:200]}…")


def _inputs(here: Here) -> str:
    names = ", ".join(f"{name} ({pinned.kind})" for name, pinned in sorted(here.inputs.items()))
    return f"your inputs are: {one_line(names)}" if names else "this subtask has no inputs"


def _is_folder(here: Here, name: str) -> bool:
    return here.inputs[name].kind not in ("text", "file")


async def list_below(here: Here, path: str) -> list[File]:
    """Return the files below a path, or the one that it names, by path; empty: of all inputs. Raise
    ToolError if there is nothing of that name.
    """
    if not path.strip("/. "):
        places = [Location(name) for name in sorted(here.inputs)]
    else:
        places = [place_of(here, path)]
    found: list[File] = []
    for place in places:
        if _is_folder(here, place.input):
            root = await here.folder(place.input)
            found += await anyio.to_thread.run_sync(_walked, root, place)
        else:
            size = here.inputs[place.input].size
            found.append(File(place, size, cited_as(here, place)))
    return found


async def read(here: Here, path: str, limit: int) -> bytes:
    """Return the bytes of one file. Raise ToolError if it is not one, or larger than `limit`."""
    place = place_of(here, path)
    if _is_folder(here, place.input):
        root = await here.folder(place.input)
        return await anyio.to_thread.run_sync(read_file, root, place, limit)
    # Asked before: what is mapped may be larger than all memory.
    if here.inputs[place.input].size > limit:
        raise _too_large(place, limit)
    content = await here.content(place.input)
    if len(content) > limit:
        raise _too_large(place, limit)
    return content


def read_file(root: Path, place: Location, limit: int) -> bytes:
    """Return the bytes of a file of a snapshot, following no link on the way. Blocking."""
    path = quote_path(str(place))
    if not place.below:
        raise ToolError(f"{path} is a folder; list_files shows what is in it")
    try:
        with Folder.at(root) as top, top.enter(*place.below[:-1]) as folder:
            return read_regular(place.below[-1], limit, folder.handle)
    except TooLarge:
        raise _too_large(place, limit) from None
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(f"there is no file {path}; list_files shows those there are") from None
    except NotRegular:
        raise ToolError(f"{path} is not a regular file; list_files shows those there are") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from None


def _too_large(place: Location, limit: int) -> ToolError:
    return ToolError(f"{quote_path(str(place))} is larger than {limit >> 20} MiB, and is not read")


def _walked(root: Path, place: Location) -> list[File]:
    """Return the regular files at and below a place, by path. Blocking."""
    try:
        with Folder.at(root) as top:
            if not place.below:
                return _sorted(_files(top, place))
            with top.enter(*place.below[:-1]) as folder:
                name = place.below[-1]
                if folder.kind(name) == stat.S_IFREG:
                    found = os.stat(name, dir_fd=folder.handle, follow_symlinks=False)
                    return [File(place, found.st_size)]
                with folder.enter(name) as within:
                    return _sorted(_files(within, place))
    except OSError:
        path = quote_path(str(place))
        raise ToolError(f"there is no {path}; list_files shows what there is") from None


def _sorted(files: Iterator[File]) -> list[File]:
    return sorted(islice(files, MOST_FILES), key=lambda file: file.place.below)


def _files(folder: Folder, place: Location) -> Iterator[File]:
    with folder.entries() as entries:
        for entry in entries:
            below = Location(place.input, (*place.below, entry.name))
            if entry.is_file(follow_symlinks=False):
                yield File(below, entry.stat(follow_symlinks=False).st_size)
            elif entry.is_dir(follow_symlinks=False) and len(below.below) <= PATH_FOLDERS:
                with folder.enter(entry.name) as within:
                    yield from _files(within, below)


def decode_text(content: bytes, path: str) -> str:
    """Return the text of a file, private keys taken out. Raise ToolError if it is not text."""
    if b"\0" in content[:TEXT_WINDOW] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(
            f"{quote_path(path)} is not text; read_document reads PDF and Office documents"
        )
    return without_keys(decode(content))


def clean_lines(
    lines: Sequence[str], letters: int, withheld: Callable[[str], str] = str
) -> list[str]:
    """Return lines of a file as a model may see them: without secrets, and cut, with how much there
    is. Many at once take much less time.
    """
    whole = [line.rstrip("\r") for line in lines]
    # What is cut in the middle of a secret is looked at whole.
    told = redact(withheld("\n".join(line[: letters + MARGIN] for line in whole))).split("\n")
    return [
        shown if len(line) <= letters else f"{shown[:letters]}… [{len(line):,} letters in all]"
        for shown, line in zip(told, whole, strict=True)
    ]


def clean_line(line: str, letters: int, withheld: Callable[[str], str] = str) -> str:
    """Return one line as `clean_lines` does."""
    return clean_lines([line], letters, withheld)[0]
