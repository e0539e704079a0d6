"""Tell where a link of an untrusted working tree leads, without following it: a review that calls a
tree clean must have read what its links lead to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from holdfast.activities.repositories.output import TreeEntry
from holdfast.activities.repositories.texts import is_binary
from holdfast.activities.repositories.working_tree import SUBMODULE, Folders
from holdfast.untrusted.folders import Folder

MOST_LINKS = 40
"""Links on the way to what one leads to, as Linux has it."""
NOWHERE = (b"/dev/null",)
"""Targets outside of the tree that hold nothing."""
OUTSIDE, UNLISTED = "a link out of the repository", "a link to what was not read"


class Links:
    """The links of a tree whose `paths` are read, or judged, under their own names."""

    def __init__(
        self,
        root: Folder,
        paths: Collection[bytes],
        index: Mapping[bytes, TreeEntry],
        claims: Callable[[bytes], bool],
    ) -> None:
        self._root = root
        self._paths = paths
        self._index = index
        self._claims = claims

    def find_gap(self, path: bytes, target: bytes) -> str:
        """Return why nobody knows what a link leads to; empty: it is read under its own name, is
        binary by its name, or is nothing.
        """
        if target in NOWHERE or (not self._claims(target) and is_binary(target, b"")):
            return ""
        folders = Folders(self._root)
        try:
            found = _lead(folders, path, target)
            if found is None:
                return OUTSIDE
            if self._is_listed(found):
                return ""
            there = self._claims(path) or self._claims(found) or _exists(folders, found)
            return UNLISTED if there else ""
        finally:
            folders.close()

    def _is_listed(self, path: bytes) -> bool:
        entry = self._index.get(path)
        if entry is not None and entry.mode == SUBMODULE:
            return False
        return not path or path in self._paths or path in self._above

    @cached_property
    def _above(self) -> frozenset[bytes]:
        """Folders in which something is read."""
        found = set[bytes]()
        for path in self._paths:
            # A nested repository ends with a slash, and is not read.
            above = path.rstrip(b"/").rpartition(b"/")[0]
            while above and above not in found:
                found.add(above)
                above = above.rpartition(b"/")[0]
        return frozenset(found)


def _lead(folders: Folders, path: bytes, target: bytes) -> bytes | None:
    """Return the path at which a chain of links ends, itself if it is a circle; None: outside."""
    at, left = path.split(b"/")[:-1], target.split(b"/")
    absolute, hops = target.startswith(b"/"), 0
    while left and not absolute:
        part = left.pop(0)
        if part == b"..":
            if not at:
                return None
            at.pop()
        elif part not in (b"", b"."):
            further = _read_link(folders, at, part)
            hops += further is not None
            if hops > MOST_LINKS:
                return path
            if further is None:
                at.append(part)
            else:
                absolute = further.startswith(b"/")
                left[:0] = further.split(b"/")
    return None if absolute else b"/".join(at)


def _read_link(folders: Folders, parents: list[bytes], name: bytes) -> bytes | None:
    try:
        return os.readlink(name, dir_fd=folders.enter(parents))
    except OSError:
        return None


def _exists(folders: Folders, path: bytes) -> bool:
    *parents, name = path.split(b"/")
    try:
        os.stat(name, dir_fd=folders.enter(parents), follow_symlinks=False)
    except OSError:
        return False
    return True
