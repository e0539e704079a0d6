"""Make what git looks through at a repository: an empty bare repository of ours, with copies of the
refs and the index and links to the objects. Bounded in disk and time.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.activities.repositories import refs as git_refs
from holdfast.activities.repositories.layout import Layout, is_hash, read_small
from holdfast.contracts.errors import BadGoal
from holdfast.text import for_terminal
from holdfast.untrusted.folders import Folder

INDEX_BYTES = 128 * 1024 * 1024
"""Bytes of the index and the one that it shares entries with; a million files take about 100 MB."""
EXCLUDE_BYTES = 1024 * 1024
OBJECT_FILES = 2_000_000
"""Packs and loose objects that are looked at before git does: it would wait on a FIFO among them.
"""
LINK_SECONDS = 60.0
MOST_NOTES = 5

HEADS = (
    "^[[:space:]]*(((export|default|public|private|protected|static|final|abstract|async|pub)"
    "[[:space:]]+)*(class|interface|trait|impl|enum|struct|module|def|fn|func|function)[[:space:]]+.*)$"
)
"""What the heads of definitions look like, for git to name in each hunk the one it is in."""
_CONFIG = """[core]
	bare = true
	repositoryformatversion = {version}
	attributesFile = /dev/null
	excludesFile = /dev/null
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	commitGraph = false
	multiPackIndex = false
[protocol]
	allow = never
[diff "default"]
	xfuncname = "{heads}"
"""
_OBJECTS = re.compile(r"pack|[0-9a-f]{2}")
SHARED_LOOKS = 100
"""Places, from its end, that may be the index's link to the file that it shares entries with."""


@dataclass(frozen=True)
class View:
    """A view that was made: the object stores for git, and what HEAD says."""

    stores: tuple[Path, ...]
    head: str
    """`ref: refs/heads/…` or a hash; empty: it says neither."""
    commit: str
    """The hash that HEAD stands for; empty: its branch has no commit yet."""
    notes: tuple[str, ...]
    refs: Mapping[str, str] = field(default_factory=dict)
    """Every branch and tag by its full name."""
    main: str = ""
    """The main branch by the remote `origin`; empty: it names none."""
    shallow: bool = False
    """True if its history is cut off."""


def prepare(layout: Layout, folder: Path) -> View:
    """Make the view below an empty folder, as `git`. Raise BadGoal for what is beyond the
    bounds.
    """
    git = folder / "git"
    for name in ("objects/info", "objects/pack", "refs", "info"):
        (git / name).mkdir(parents=True)
    config = _CONFIG.format(heads=HEADS, version=0 if layout.hash_letters == 40 else 1)
    if layout.hash_letters == 64:
        config += "[extensions]\n\tobjectFormat = sha256\n"
    (git / "config").write_text(config)
    head = git_refs.read_head(layout)
    (git / "HEAD").write_text((head or "ref: refs/heads/none") + "\n")
    refs = {
        name: hash_
        for name, hash_ in git_refs.read_refs(layout).items()
        if len(hash_) == layout.hash_letters
    }
    lines = [f"{refs[name]} {name}\n".encode("utf-8", "surrogateescape") for name in sorted(refs)]
    (git / "packed-refs").write_bytes(b"".join(lines))
    shallow = (read_small(layout.common, "shallow") or "").split()
    if boundary := [hash_ for hash_ in shallow if is_hash(hash_)]:
        (git / "shallow").write_text("".join(f"{hash_}\n" for hash_ in boundary))
    excludes = layout.common.read("info", "exclude", limit=EXCLUDE_BYTES)
    (git / "info" / "exclude").write_bytes(excludes or b"")
    _copy_index(layout, git)
    links = _Links()
    stores = []
    for number, objects in enumerate(layout.objects):
        stores.append(folder / f"objects-{number}")
        links.make(objects, stores[-1])
    return View(
        tuple(stores),
        head,
        git_refs.resolve_head(head, refs),
        links.describe(),
        refs,
        git_refs.read_origin_head(layout),
        bool(boundary),
    )


def environment(folder: Path, stores: Sequence[Path], largest: int) -> dict[str, str]:
    """Return the environment of git, and nothing else; files above `largest` bytes are not diffed
    by lines.
    """
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_DIR": str(folder / "git"),
        "GIT_INDEX_FILE": str(folder / "git" / "index"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quote, stores)),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bigFileThreshold",
        "GIT_CONFIG_VALUE_0": str(largest),
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
    }


def _quote(path: Path) -> str:
    """Quote a path, because a colon separates and a leading quote begins a quoted path."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _copy_index(layout: Layout, git: Path) -> None:
    """Copy the index, and the one file that it says it shares entries with."""
    kind = layout.git.kind("index")
    if kind == 0:
        return
    content = layout.git.read("index", limit=INDEX_BYTES)
    if content is None:
        raise BadGoal(
            f"{str(layout.tree.path)!r}: its index is larger than {INDEX_BYTES >> 20} MiB, or is"
            " not a regular file; `git read-tree HEAD` there writes it anew"
        )
    _write_as_old(git / "index", content, layout.git.modified("index"))
    # The link to it is an extension behind all entries: what looks like one before is a file name.
    place = len(content)
    for _ in range(SHARED_LOOKS):
        place = content.rfind(b"link", 0, place)
        if place < 0:
            return
        hash_ = content[place + 8 : place + 8 + layout.hash_letters // 2]
        shared = layout.git.read(f"sharedindex.{hash_.hex()}", limit=INDEX_BYTES - len(content))
        if shared is not None:
            name = f"sharedindex.{hash_.hex()}"
            _write_as_old(git / name, shared, layout.git.modified(name))
            return


def _write_as_old(path: Path, content: bytes, moment: int) -> None:
    """Write a copy that is as old as what it is of: git reads a file that was written since, as it
    may have the size and the second of what the index knows.
    """
    path.write_bytes(content)
    os.utime(path, ns=(moment, moment))


@dataclass
class _Links:
    """Makes links to the packs and loose objects of some object folders, for git, which would
    otherwise follow whatever link, and wait on whatever FIFO, it finds there.
    """

    entries: int = 0
    until: float = field(default_factory=lambda: time.monotonic() + LINK_SECONDS)
    notes: list[str] = field(default_factory=list)

    def make(self, objects: Folder, target: Path) -> None:
        """Make a folder of links at `target`, without `info`: we follow alternates ourselves."""
        target.mkdir()
        with objects.entries() as entries:
            names = sorted(entry.name for entry in entries if _OBJECTS.fullmatch(entry.name))
        for name in names:
            if objects.kind(name) == stat.S_IFDIR:
                with objects.enter(name) as folder:
                    self._link(folder, target / name, f"{objects.reached}/{name}")
            else:
                self.notes.append(f"objects/{name} is not a folder")

    def _link(self, folder: Folder, target: Path, reached: str) -> None:
        regular: list[str] = []
        other: list[str] = []
        with folder.entries() as entries:
            for entry in entries:
                self.entries += 1
                if self.entries > OBJECT_FILES or time.monotonic() > self.until:
                    raise BadGoal(
                        f"{str(folder.path.parent)!r} holds too many files to be read in"
                        f" {LINK_SECONDS:.0f} s; `git gc` there packs them"
                    )
                (regular if entry.is_file(follow_symlinks=False) else other).append(entry.name)
        if not other:
            target.symlink_to(reached)
            return
        target.mkdir()
        for name in regular:
            (target / name).symlink_to(f"{reached}/{name}")
        self.notes += [f"objects/{target.name}/{name} is not a regular file" for name in other]

    def describe(self) -> tuple[str, ...]:
        """Return a few notes on what is not read; names in them are the repository's."""
        told = tuple(for_terminal(note)[:200] + ": not read" for note in self.notes[:MOST_NOTES])
        more = len(self.notes) - MOST_NOTES
        return (*told, f"{more} more of its objects are not read") if more > 0 else told
