"""Find where a repository keeps its objects, refs and index: read as data, never through its own
configuration, and only below what may be read.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.contracts.errors import BadGoal
from holdfast.untrusted.folders import Folder
from holdfast.untrusted.roots import Outside, Roots, open_folder

SMALL_FILE = 64 * 1024
ALTERNATES = 20
"""Repositories that one may borrow objects from, including those that these borrow from."""
REMEDY = "name it in HOLDFAST_ALLOWED_ROOTS too"

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_WORKTREE = re.compile(r'(?m)^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$')


@dataclass(frozen=True)
class Layout:
    """The open folders of one repository. `git` is this working tree's own, `common` is shared with
    the repository's other working trees, `objects` are its own and those that it borrows from.
    """

    tree: Folder
    git: Folder
    common: Folder
    objects: tuple[Folder, ...]
    refs: Folder | None
    hash_letters: int
    notes: tuple[str, ...] = ()


def locate(repository: Path, roots: Roots, kept: ExitStack) -> Layout:
    """Return the layout of the repository with this top folder, open until `kept` closes. Raise
    BadGoal, in one line, if it is not a repository or leads elsewhere.
    """
    tree = kept.enter_context(_tree(repository, roots))
    git, owned = _git_folder(tree, roots)
    kept.enter_context(git)
    common = kept.enter_context(_common(tree, git, roots, owned))
    if not common.kind("objects") or read_small(git, "HEAD") is None:
        raise BadGoal(
            f"{str(tree.path)!r} is not a usable Git repository: {str(git.path)!r} has no HEAD or"
            " objects"
        )
    config = (read_small(common, "config") or "").lower()
    if common.kind("reftable") or re.search(r"(?m)^\s*refstorage\s*=\s*\"?reftable", config):
        raise BadGoal(
            f"{str(tree.path)!r} keeps its refs as reftable, which is not read here; "
            "convert a clone with `git refs migrate --ref-format=files`"
        )
    notes: list[str] = []
    objects = kept.enter_context(_below(common, "objects", roots))
    stores = _open_alternates(objects, roots, kept, notes)
    refs = kept.enter_context(_below(common, "refs", roots)) if common.kind("refs") else None
    # Only a hint on the length of hashes; nothing else of this file is looked at.
    sha256 = re.search(r"(?m)^\s*objectformat\s*=\s*\"?sha256", config)
    return Layout(tree, git, common, stores, refs, 64 if sha256 else 40, tuple(notes))


def _tree(repository: Path, roots: Roots) -> Folder:
    shown = repr(str(repository))[:300]
    try:
        tree = open_folder(repository, roots)
    except Outside as error:
        raise BadGoal(f"{shown} {error}") from None
    except (OSError, RuntimeError, ValueError):
        raise BadGoal(f"{shown} is not a folder; name the top folder of a repository") from None
    if not tree.kind(".git"):
        tree.close()
        raise BadGoal(_no_repository(tree.path))
    return tree


def _no_repository(tree: Path) -> str:
    if (tree / "HEAD").is_file() and (tree / "objects").is_dir():
        return f"{str(tree)!r} is a bare repository; a review reads a working tree: name a clone"
    for parent in tree.parents:
        if os.path.lexists(parent / ".git"):
            return f"{str(tree)!r} is inside a Git repository; name its top folder {str(parent)!r}"
    # Then all of it is reviewed: there is no commit to compare with.
    made = f"git -C {shlex.quote(str(tree))} init"
    return (
        f"{str(tree)!r} is not a Git repository; name one, or make it one: {made}"
        " (nothing has to be committed)"
    )


# ---------------------------------------------------------------- what leads elsewhere


def _git_folder(tree: Folder, roots: Roots) -> tuple[Folder, bool]:
    """Return the working tree's own git folder, and whether it is below no root but belongs to a
    repository that names this working tree as its own.
    """
    kind = tree.kind(".git")
    if kind == stat.S_IFDIR:
        return tree.enter(".git"), False
    place = tree.path / ".git"
    if kind == stat.S_IFREG:
        text = read_small(tree, ".git") or ""
        if not text.startswith("gitdir:"):
            raise BadGoal(_no_link(tree))
        place = Path(os.path.normpath(tree.path / text.removeprefix("gitdir:").strip()))
    elif kind != stat.S_IFLNK:
        raise BadGoal(_no_link(tree))
    try:
        return open_folder(place, roots), False
    except Outside:
        folder = _open_owned(tree, place) if kind == stat.S_IFREG else None
        if folder is None:
            raise _leads_outside(tree, place) from None
        return folder, True
    except (OSError, RuntimeError, ValueError):
        raise BadGoal(f"{str(tree.path)!r} points to {str(place)!r}, which is not there") from None


def _no_link(tree: Folder) -> str:
    return f"{str(tree.path)!r} is not a Git repository: its .git is neither a folder nor a link"


def _leads_outside(tree: Folder, place: Path) -> BadGoal:
    # A link's own words, not where it comes out: who asks may be somebody who must not know that.
    with suppress(OSError):
        place = place.parent / os.readlink(place)
    return BadGoal(
        f"{str(tree.path)!r} leads to {str(place)!r}, which is below no allowed root; {REMEDY}"
    )


def _open_owned(tree: Folder, place: Path) -> Folder | None:
    """Return the git folder of a linked working tree, or of a submodule, whose repository names
    this tree as its own, in a file that the tree's owner could not write unless that is the same
    person.
    """
    try:
        folder = Folder.at(place.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):
        return None
    back = (read_small(folder, "gitdir") or "").strip()
    if found := _WORKTREE.search(read_small(folder, "config") or ""):
        back = os.path.join(found[1], ".git")
    link = os.stat(".git", dir_fd=tree.handle, follow_symlinks=False)
    named = os.path.normpath(folder.path / back) if back else ""
    if named == str(tree.path / ".git") and folder.owner == tree.owner == link.st_uid:
        return folder
    folder.close()
    return None


def _common(tree: Folder, git: Folder, roots: Roots, owned: bool) -> Folder:
    """Return the folder that holds objects and refs."""
    if git.kind("commondir") == 0:
        return git.enter()
    pointer = read_small(git, "commondir")
    if pointer is None:
        raise BadGoal(f"{str(tree.path)!r}: its commondir is not a small file")
    place = Path(os.path.normpath(git.path / pointer.strip()))
    try:
        if owned and git.path.parent.name == "worktrees" and place == git.path.parent.parent:
            return Folder.at(place)
        return open_folder(place, roots)
    except Outside:
        raise _leads_outside(tree, place) from None
    except (OSError, RuntimeError, ValueError):
        raise BadGoal(f"{str(tree.path)!r} points to {str(place)!r}, which is not there") from None


def _below(common: Folder, name: str, roots: Roots) -> Folder:
    """Return a folder of the repository; if it is a link, it must lead below a root."""
    place = common.path / name
    try:
        if common.kind(name) == stat.S_IFLNK:
            return open_folder(place, roots)
        return common.enter(name)
    except Outside:
        raise _leads_outside(common, place) from None
    except (OSError, RuntimeError, ValueError):
        raise BadGoal(f"{str(place)!r} is not a folder; the repository cannot be read") from None


def _open_alternates(
    objects: Folder, roots: Roots, kept: ExitStack, notes: list[str]
) -> tuple[Folder, ...]:
    """Return the object folders that a repository borrows from, read by us: git would follow them
    on its own wherever they lead.
    """
    found = [objects]
    # It grows while it is walked.
    for folder in found:
        for line in (read_small(folder, "info", "alternates") or "").splitlines():
            if not line or line.startswith("#"):
                continue
            place = Path(os.path.normpath(folder.path / line))
            if place in [each.path for each in found]:
                continue
            if len(found) > ALTERNATES:
                raise BadGoal(f"{str(objects.path)!r} borrows from more than {ALTERNATES} folders")
            try:
                found.append(kept.enter_context(open_folder(place, roots)))
            except Outside:
                raise BadGoal(
                    f"{str(folder.path)!r} borrows objects from {str(place)!r}, which is below no"
                    f" allowed root; {REMEDY}, or make a full clone"
                ) from None
            except (OSError, RuntimeError, ValueError):
                notes.append(f"objects are borrowed from {str(place)!r}, which is not there")
    return tuple(found)


# ---------------------------------------------------------------- what is read


def read_small(folder: Folder, *names: str) -> str | None:
    """Return the text of a small regular file below a folder; None for anything else."""
    content = folder.read(*names, limit=SMALL_FILE)
    return None if content is None else content.decode("utf-8", "surrogateescape")


def is_hash(text: str) -> bool:
    """True for a full object name: 40 or 64 hexadecimal digits."""
    return _HASH.match(text) is not None
