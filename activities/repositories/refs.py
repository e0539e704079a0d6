"""Read the branches and tags of a repository from its files. What git would not write is left out,
and nothing waits or goes on forever.
"""

from __future__ import annotations

import re
import stat
import time
from dataclasses import dataclass, field

from holdfast.activities.repositories.layout import Layout, is_hash, read_small
from holdfast.untrusted.folders import Folder

REFS_FILE = 64 * 1024 * 1024
REF_LIMIT = 200_000
ENTRIES = 400_000
"""Files and folders below `refs` that are looked at."""
REF_FOLDERS = 30
"""Folders in the name of one ref."""
LINK_DEPTH = 5
BRANCHES, ORIGIN = "refs/heads/", "refs/remotes/origin/"
WALK_SECONDS = 20.0

_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+\Z")


def read_head(layout: Layout) -> str:
    """Return what HEAD says: `ref: refs/heads/…` or a hash; empty if it says neither."""
    text = (read_small(layout.git, "HEAD") or "").strip()
    target = text.removeprefix("ref:").strip()
    if text.startswith("ref:") and _is_ref(target):
        return f"ref: {target}"
    return text if is_hash(text) else ""


def resolve_head(head: str, refs: dict[str, str]) -> str:
    """Return the hash that HEAD stands for; empty if its branch has no commit yet."""
    return refs.get(head.removeprefix("ref: "), "") if head.startswith("ref: ") else head


def read_origin_head(layout: Layout) -> str:
    """Return the branch that `origin/HEAD` stands for; empty if none."""
    text = "" if layout.refs is None else read_small(layout.refs, "remotes", "origin", "HEAD") or ""
    target = text.strip().removeprefix("ref:").strip()
    name = target.removeprefix(ORIGIN)
    return name if name != target and _is_ref(target) else ""


def read_refs(layout: Layout) -> dict[str, str]:
    """Return every branch, tag and remote branch with the hash it stands for, without what is
    malformed or beyond the limits.
    """
    found: dict[str, str] = {}
    content = layout.common.read("packed-refs", limit=REFS_FILE) or b""
    for line in content.decode("utf-8", "surrogateescape").splitlines():
        value, _, name = line.partition(" ")
        if len(found) < REF_LIMIT and is_hash(value) and _is_ref(name):
            found[name] = value
    walk = _Walk()
    if layout.refs is not None:
        walk.look(layout.refs, "refs", 0)
    loose = walk.loose
    found.update((name, value) for name, value in loose.items() if is_hash(value))
    for name, value in loose.items():
        if (hash_ := _follow(value, loose, found)) is not None:
            found[name] = hash_
    return found


@dataclass
class _Walk:
    loose: dict[str, str] = field(default_factory=dict)
    entries: int = 0
    until: float = field(default_factory=lambda: time.monotonic() + WALK_SECONDS)

    def look(self, folder: Folder, prefix: str, depth: int) -> None:
        below = []
        with folder.entries() as entries:
            for entry in entries:
                self.entries += 1
                if self._over():
                    return
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                elif _is_ref(ref := f"{prefix}/{entry.name}"):
                    content = folder.read(entry.name, limit=1024) or b""
                    self.loose[ref] = content.decode("utf-8", "surrogateescape").strip()
        for name in below if depth < REF_FOLDERS else ():
            if folder.kind(name) == stat.S_IFDIR and not self._over():
                with folder.enter(name) as next_folder:
                    self.look(next_folder, f"{prefix}/{name}", depth + 1)

    def _over(self) -> bool:
        return (
            self.entries > ENTRIES or len(self.loose) >= REF_LIMIT or time.monotonic() > self.until
        )


def _follow(value: str, loose: dict[str, str], found: dict[str, str]) -> str | None:
    for _ in range(LINK_DEPTH):
        if not value.startswith("ref:"):
            return None
        name = value.removeprefix("ref:").strip()
        if name in found:
            return found[name]
        value = loose.get(name, "")
    return None


def _is_ref(name: str) -> bool:
    return (
        _REF.match(name) is not None
        and ".." not in name
        and "@{" not in name
        and not any(
            not part or part.startswith(".") or part.endswith((".lock", "."))
            for part in name.split("/")
        )
    )
