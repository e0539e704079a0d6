"""The snapshot of a repository: what every lens reads, and nothing else.

`take` reads the working tree and the history once, at the start of a run, and stores them by
content: one archive of the files, one manifest. `Snapshots` puts a stored snapshot on disk, once.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import anyio.to_thread

from activities import git
from activities.git import Git, GitFailed
from activities.git_output import LogEntry, TreeEntry
from activities.seam import Store
from activities.working_tree import Collected, Comparison, collect
from orchestrator.contracts import Contract, PinnedInput
from orchestrator.errors import BadGoal

COMMIT_LIMIT = 2_000
"""Commits of history that are looked at."""
BULK_FILES = 1_000
"""A commit that touches more files than this is an import; its changes say nothing of the work."""
_EXTENSION = re.compile(r"\.[a-z0-9+]{1,12}\Z")


class SnapshotFile(Contract):
    """A text file of the snapshot; `path` is relative, with slashes."""

    path: str
    size: int
    lines: int
    touched: tuple[tuple[int, int], ...] | None = None
    """First and last line of each range in scope; None: the whole file."""


class Unread(Contract):
    """A file that is in scope and was not read."""

    path: str
    reason: str


class Change(Contract):
    """Lines that one commit added to and deleted from a file."""

    path: str
    added: int
    deleted: int


class Commit(Contract):
    """One commit of the history, `time` in seconds since the epoch."""

    id: str
    time: int
    author: str
    changes: tuple[Change, ...] = ()


class Manifest(Contract):
    """What a snapshot holds. Without a base the whole tree is in scope, otherwise what differs
    from it.
    """

    archive: str
    """Digest of the tar archive with the files."""
    files: tuple[SnapshotFile, ...] = ()
    unread: tuple[Unread, ...] = ()
    head: str = ""
    base: str = ""
    commits: tuple[Commit, ...] = ()
    """Newest first."""
    commits_cut: bool = False
    """Whether there are more commits than were looked at."""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


async def take(name: str, repository: Path, base: str, store: Store) -> PinnedInput:
    """Pin a repository: its files, and those in scope against `base` (a revision; empty: the whole
    tree), into the store. BadGoal for what is no repository or no revision.
    """
    async with git.opened(repository) as view:
        try:
            manifest, archive = await _read(view, base)
        except GitFailed as error:
            raise BadGoal(f"{str(repository)!r} cannot be read: {error}") from error
    stored = manifest.model_copy(update={"archive": await store.put(archive)})
    return PinnedInput(
        name=name,
        kind="repository",
        size=stored.size,
        digest=await store.put(stored.model_dump_json().encode()),
        preview=_preview(stored),
    )


async def _read(view: Git, base: str) -> tuple[Manifest, bytes]:
    head = await view.head()
    base_commit = await view.commit(base) if base else ""
    notes: list[str] = []
    collected, touched = await _scope(view, base_commit, notes)
    commits = await _commits(view, head, notes)
    manifest = Manifest(
        archive="",
        files=tuple(_file(path, content, touched) for path, content in collected.files.items()),
        unread=tuple(Unread(path=_shown(path), reason=why) for path, why in collected.unread),
        head=head,
        base=base_commit,
        commits=tuple(_commit(entry) for entry in commits[:COMMIT_LIMIT]),
        commits_cut=len(commits) > COMMIT_LIMIT,
        notes=tuple(notes),
    )
    return manifest, await anyio.to_thread.run_sync(_archive, collected.files)


Touched = Mapping[bytes, tuple[tuple[int, int], ...]]


async def _scope(view: Git, base: str, notes: list[str]) -> tuple[Collected, Touched | None]:
    """The files in scope, and with a base their touched lines."""
    index = await view.index()
    tree = await view.tree(base) if base else None
    paths = index.keys() | set(await _untracked(view, notes))
    comparison = Comparison(index, tree, view.layout.hash_letters)
    collected = await anyio.to_thread.run_sync(collect, view.layout.tree, paths, comparison)
    if tree is None:
        return collected, None
    files = collected.files
    # What vanished may have been renamed, so it takes part in the comparison.
    old = [(path, entry) for path, entry in tree.items() if path in files or path not in paths]
    blobs = [(path, entry.hash) for path, entry in old if _is_file(entry)]
    touched = await view.touched(blobs, list(files.items()))
    for path in [path for path in files if path not in tree and not touched[path]]:
        # Renamed and otherwise as it was.
        del files[path]
    return collected, touched


def _is_file(entry: TreeEntry) -> bool:
    return entry.mode.startswith("100")


async def _untracked(view: Git, notes: list[str]) -> list[bytes]:
    try:
        return await view.untracked()
    except GitFailed as error:
        notes.append(f"untracked files were not looked at: {error}")
        return []


async def _commits(view: Git, head: str, notes: list[str]) -> list[LogEntry]:
    if not head:
        notes.append("the repository has no commit yet")
        return []
    try:
        commits = await view.history(head, COMMIT_LIMIT + 1)
    except GitFailed as error:
        notes.append(f"the history was not looked at: {error}")
        return []
    if len(commits) > COMMIT_LIMIT:
        notes.append(f"of the history, the last {COMMIT_LIMIT} commits were looked at")
    return commits


def _commit(entry: LogEntry) -> Commit:
    bulk = len(entry.changes) > BULK_FILES
    changes = () if bulk else entry.changes
    return Commit(
        id=entry.hash,
        time=entry.time,
        author=entry.author,
        changes=tuple(
            Change(path=_shown(path), added=added, deleted=deleted)
            for added, deleted, path in changes
        ),
    )


def _file(path: bytes, content: bytes, touched: Touched | None) -> SnapshotFile:
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    ranges = None if touched is None else touched[path]
    return SnapshotFile(path=path.decode(), size=len(content), lines=lines, touched=ranges)


def _shown(path: bytes) -> str:
    """A raw path as text that JSON can carry, whatever its bytes."""
    return path.decode("utf-8", "backslashreplace")


def _archive(files: Mapping[bytes, bytes]) -> bytes:
    """A tar archive that depends on names and contents only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path.decode())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _preview(manifest: Manifest) -> str:
    """A few lines for a planner: counts only, nothing that the repository could have written."""
    kinds = Counter(PurePosixPath(file.path).suffix.lower() for file in manifest.files)
    common = [f"{n} {kind}" for kind, n in kinds.most_common() if _EXTENSION.match(kind)][:8]
    scope = f"what differs from {manifest.base[:12]}" if manifest.base else "the whole tree"
    more = "more than " if manifest.commits_cut else ""
    return (
        f"Git repository, {scope}: {len(manifest.files)} text files, {manifest.size} bytes"
        f" ({', '.join(common) or 'no known kinds'}), {len(manifest.unread)} not read,"
        f" {more}{min(len(manifest.commits), COMMIT_LIMIT)} commits"
    )
