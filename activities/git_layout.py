"""Where a repository keeps its objects, refs and index: read as data, never through its own
configuration.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import BadGoal

SMALL_FILE = 64 * 1024
REFS_FILE = 64 * 1024 * 1024
REF_LIMIT = 200_000
LINK_DEPTH = 5

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+\Z")


@dataclass(frozen=True)
class Layout:
    """The folders of one repository. `git` is this working tree's own, `common` is shared with
    the repository's other working trees.
    """

    tree: Path
    git: Path
    common: Path
    hash_letters: int = 40

    @property
    def objects(self) -> Path:
        return self.common / "objects"


def locate(repository: Path) -> Layout:
    """The layout of the repository whose top folder this is. BadGoal, in one line, otherwise."""
    if not repository.is_dir():
        raise BadGoal(f"{str(repository)!r} is not a folder; name the top folder of a repository")
    tree = repository.resolve()
    if not os.path.lexists(tree / ".git"):
        raise BadGoal(_no_repository(tree))
    git = _git_folder(tree)
    common = git
    if (pointer := read_small(git / "commondir")) is not None:
        common = Path(os.path.normpath(git / pointer.strip()))
    if not (common / "objects").is_dir() or read_small(git / "HEAD") is None:
        raise BadGoal(
            f"{str(tree)!r} is not a usable Git repository: {str(git)!r} has no HEAD or objects"
        )
    config = (read_small(common / "config") or "").lower()
    if (common / "reftable").is_dir() or re.search(r"(?m)^\s*refstorage\s*=\s*\"?reftable", config):
        raise BadGoal(
            f"{str(tree)!r} keeps its refs as reftable, which is not read here; "
            "convert a clone with `git refs migrate --ref-format=files`"
        )
    # Only a hint on the length of hashes; nothing else of this file is looked at.
    sha256 = re.search(r"(?m)^\s*objectformat\s*=\s*\"?sha256", config)
    return Layout(tree, git, common, 64 if sha256 else 40)


def _no_repository(tree: Path) -> str:
    if (tree / "HEAD").is_file() and (tree / "objects").is_dir():
        return f"{str(tree)!r} is a bare repository; a review reads a working tree: name a clone"
    for parent in tree.parents:
        if os.path.lexists(parent / ".git"):
            return f"{str(tree)!r} is inside a Git repository; name its top folder {str(parent)!r}"
    return f"{str(tree)!r} is not a Git repository; name one, or run `git init` there"


def _git_folder(tree: Path) -> Path:
    path = tree / ".git"
    if path.is_dir():
        return path.resolve()
    text = read_small(path)
    if text is None or not text.startswith("gitdir:"):
        raise BadGoal(f"{str(tree)!r} is not a Git repository: its .git is no folder and no link")
    folder = Path(os.path.normpath(tree / text.removeprefix("gitdir:").strip()))
    if not folder.is_dir():
        raise BadGoal(f"{str(tree)!r} points to {str(folder)!r}, which is not there")
    return folder


def read_small(path: Path, limit: int = SMALL_FILE) -> str | None:
    """The text of a regular file of at most `limit` bytes; None for anything else, without ever
    waiting on a FIFO or following a link.
    """
    content = read_regular(path, limit)
    return None if content is None else content.decode("utf-8", "surrogateescape")


def read_regular(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file of at most `limit` bytes; None for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def head(layout: Layout) -> str:
    """What HEAD says: `ref: refs/heads/…` or a hash; empty when it says neither."""
    text = (read_small(layout.git / "HEAD") or "").strip()
    target = text.removeprefix("ref:").strip()
    if text.startswith("ref:") and _is_ref(target):
        return f"ref: {target}"
    return text if is_hash(text) else ""


def refs(layout: Layout) -> dict[str, str]:
    """Every branch, tag and remote branch with the hash it stands for. What is malformed is left
    out.
    """
    found: dict[str, str] = {}
    for line in (read_small(layout.common / "packed-refs", REFS_FILE) or "").splitlines():
        value, _, name = line.partition(" ")
        if is_hash(value) and _is_ref(name):
            found[name] = value
    loose: dict[str, str] = {}
    for folder, _, names in os.walk(layout.common / "refs", followlinks=False):
        for name in names:
            path = Path(folder, name)
            ref = path.relative_to(layout.common).as_posix()
            if len(loose) < REF_LIMIT and _is_ref(ref):
                loose[ref] = (read_small(path, 1024) or "").strip()
    found.update((name, value) for name, value in loose.items() if is_hash(value))
    for name, value in loose.items():
        if (hash_ := _follow(value, loose, found)) is not None:
            found[name] = hash_
    return found


def _follow(value: str, loose: dict[str, str], found: dict[str, str]) -> str | None:
    for _ in range(LINK_DEPTH):
        if not value.startswith("ref:"):
            return None
        name = value.removeprefix("ref:").strip()
        if name in found:
            return found[name]
        value = loose.get(name, "")
    return None


def is_hash(text: str) -> bool:
    """Whether this is a full object name: 40 or 64 hexadecimal digits."""
    return _HASH.match(text) is not None


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
