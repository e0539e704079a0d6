"""The folders and files that a Goal may name, and how one below them is opened.

A root is a place *and* the thing that was found there: whoever owns the folder above could put a
link, or another folder, in its place later. Nothing is ever resolved a second time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.untrusted.folders import Folder, NotRegular, open_regular, resolve_path

Roots = tuple["Root", ...]
_NOWHERE = "is below no allowed root; name one in HOLDFAST_ALLOWED_ROOTS"


class Outside(Exception):
    """The path is below no allowed root. The message is the rest of a sentence that begins with the
    path.
    """


@dataclass(frozen=True)
class Root:
    """A folder or a file as it was when it was allowed."""

    path: Path
    """Absolute, without links."""
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Root:
        """Return what is at a path now. OSError, RuntimeError or ValueError if nothing is."""
        place = resolve_path(path.expanduser())
        found = place.lstat()
        return cls(place, found.st_dev, found.st_ino)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


def roots_at(paths: Iterable[Path]) -> tuple[Roots, tuple[Path, ...]]:
    """Return the roots at these paths as they are now, and the paths where nothing is."""
    found: list[Root] = []
    missing: list[Path] = []
    for path in paths:
        try:
            found.append(Root.of(path))
        except (OSError, RuntimeError, ValueError):
            missing.append(path)
    return tuple(found), tuple(missing)


def open_folder(path: Path, roots: Roots) -> Folder:
    """Open a folder below a root. Outside, or the OSError of what is not a folder."""
    place = _resolve(path, roots)
    with _root_of(place, roots) as (root, below):
        return root.enter(*below)


def open_file(path: Path, roots: Roots) -> int:
    """Open a regular file for reading: one below a root, or a root itself. Outside, or the OSError
    of what is none.
    """
    place = _resolve(path, roots)
    for root in roots:
        if root.path == place and not place.is_dir():
            handle = open_regular(place)
            found = os.fstat(handle)
            if (found.st_dev, found.st_ino) == root.identity:
                return handle
            os.close(handle)
    with _root_of(place, roots) as (root_folder, below):
        if not below:
            raise NotRegular(0, "not a regular file", str(path))
        with root_folder.enter(*below[:-1]) as folder:
            return open_regular(below[-1], folder.handle)


def _resolve(path: Path, roots: Roots) -> Path:
    """Return the path without links. Only below a root does the error say that it is missing:
    whoever asks may not know what is elsewhere.
    """
    try:
        return resolve_path(path)
    except OSError:
        nearest = Path(os.path.realpath(path))
        if any(nearest.is_relative_to(root.path) for root in roots):
            raise
        raise Outside(_NOWHERE) from None


def _root_of(resolved: Path, roots: Roots) -> _Opened:
    """Return the root that a path is below, open, and the names from there to the path."""
    replaced = None
    for root in roots:
        if not resolved.is_relative_to(root.path):
            continue
        try:
            folder = Folder.at(root.path)
        except OSError:
            replaced = root.path
            continue
        if folder.identity == root.identity:
            return _Opened(folder, resolved.relative_to(root.path).parts)
        folder.close()
        replaced = root.path
    if replaced is not None:
        raise Outside(
            f"was allowed as {str(replaced)!r}, which is another file or folder now; allow it anew"
            " by naming it in a `run` of your own, or restart the worker"
        )
    raise Outside(_NOWHERE)


@dataclass(frozen=True)
class _Opened:
    folder: Folder
    below: tuple[str, ...]

    def __enter__(self) -> tuple[Folder, tuple[str, ...]]:
        return self.folder, self.below

    def __exit__(self, *_: object) -> None:
        self.folder.close()
