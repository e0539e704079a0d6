"""The snapshot of a repository: what every lens reads, and nothing else.

`take` reads the working tree and the history once, at the start of a run, and stores them by
content: one archive of the files, one manifest. `Snapshots` puts a stored snapshot on disk, once.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import anyio.to_thread
from pydantic import Field

from activities.code_review.redact import redact
from activities.repositories import git
from activities.repositories.git import Git, GitFailed
from activities.repositories.output import LogEntry, TreeEntry
from activities.repositories.working_tree import Collected, Comparison, Specials, collect
from activities.seam import Store
from deployment.roots import Roots
from orchestrator.contracts import Contract, PinnedInput
from orchestrator.errors import BadGoal
from orchestrator.text import for_terminal

COMMIT_LIMIT = 2_000
"""Commits of history that are looked at."""
BULK_FILES = 1_000
"""A commit that touches more files than this is an import; its changes say nothing of the work."""
SPECIALS_SECONDS = 20.0
"""How long the walk for FIFOs, sockets and devices may take."""
READ_BY_GIT = (b".gitignore", b".gitattributes")
"""What git itself reads of a working tree; it waits where one of them is a FIFO."""
CHANGES_LIMIT, CHANGES_LETTERS = 100_000, 4_000_000
"""Changes of files in all commits together, and characters of their names."""
AUTHOR_LETTERS = 200
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
    """What a snapshot holds: in scope is what differs from the base, without one the whole tree."""

    archive: str
    """Digest of the tar archive with the files."""
    files: tuple[SnapshotFile, ...] = ()
    unread: tuple[Unread, ...] = ()
    """The first of them; all are counted below."""
    unread_reasons: dict[str, int] = Field(default_factory=dict)
    unread_endings: dict[str, int] = Field(default_factory=dict)
    """By the end of the name, as `.py`; empty for what has none or a long one."""
    head: str = ""
    base: str = ""
    commits: tuple[Commit, ...] = ()
    """Newest first."""
    commits_cut: bool = False
    """Whether there are more commits than were looked at."""
    notes: tuple[str, ...] = ()

    @property
    def unread_in_all(self) -> int:
        """How many files were not read."""
        return sum(self.unread_reasons.values())

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


async def take(name: str, repository: Path, roots: Roots, base: str, store: Store) -> PinnedInput:
    """Pin a repository below the roots: its files, and those in scope against `base` (a revision;
    empty: the whole tree), into the store. BadGoal for what is not a repository or a revision.
    """
    async with git.opened(repository, roots) as view:
        try:
            manifest, archive, changed = await _read(view, base)
        except GitFailed as error:
            raise BadGoal(f"{str(repository)!r} cannot be read: {error}") from error
    stored = manifest.model_copy(update={"archive": await store.put(archive)})
    document = await anyio.to_thread.run_sync(_document, stored)
    return PinnedInput(
        name=name,
        kind="repository",
        size=stored.size,
        digest=await store.put(document),
        preview=_preview(stored),
        path=redact(str(repository)),
        commit=stored.head,
        base=stored.base,
        base_name=redact(for_terminal(base)),
        changed=changed,
    )


async def _read(view: Git, base: str) -> tuple[Manifest, bytes, int | None]:
    """The manifest, the archive, and how many files are not as the commit has them."""
    notes = [*view.notes]
    head = await _head(view, notes)
    base_commit = await view.commit(base) if base else ""
    index = await view.index()
    specials = await _specials(view, notes)
    untracked = await _untracked(view, specials, notes)
    if untracked is not None:
        specials = await _not_ignored(view, specials)
    new = [*(untracked or ()), *specials]
    collected, touched = await _scope(view, index, new, base_commit)
    log, cut = await _commits(view, head, notes)
    manifest, archive = await anyio.to_thread.run_sync(
        _written, collected, touched, log, cut, head, base_commit, notes
    )
    return manifest, archive, await _changed(view, head, index, untracked)


def _written(
    collected: Collected, touched: Touched | None, log: Sequence[LogEntry], cut: bool,
    head: str, base: str, notes: list[str],
) -> tuple[Manifest, bytes]:  # fmt: skip
    commits = tuple(_bounded(log))
    cut |= len(commits) < len(log)
    if cut:
        notes.append(f"of the history, the last {len(commits)} commits were looked at")
    manifest = Manifest(
        archive="",
        files=tuple(_file(path, content, touched) for path, content in collected.files.items()),
        unread=tuple(Unread(path=_shown(path), reason=why) for path, why in collected.unread),
        unread_reasons=dict(collected.reasons),
        unread_endings=dict(collected.endings),
        head=head,
        base=base,
        commits=commits,
        commits_cut=cut,
        notes=tuple(notes),
    )
    return manifest, _archive(collected.files)


async def _changed(
    view: Git, head: str, index: Mapping[bytes, TreeEntry], untracked: list[bytes] | None
) -> int | None:
    """How many files are not as the commit has them: staged, edited, deleted or new. None: git did
    not tell, or there is no commit.
    """
    if not head or untracked is None:
        return None
    try:
        committed, edited = await view.tree(head), await view.modified()
    except GitFailed:
        return None
    return await anyio.to_thread.run_sync(_differing, committed, index, edited, untracked)


def _differing(
    committed: Mapping[bytes, TreeEntry], index: Mapping[bytes, TreeEntry],
    edited: Sequence[bytes], untracked: Sequence[bytes],
) -> int:  # fmt: skip
    staged = {
        path for path in committed.keys() | index.keys() if committed.get(path) != index.get(path)
    }
    return len(staged | {*edited, *untracked})


Touched = Mapping[bytes, tuple[tuple[int, int], ...]]


async def _scope(
    view: Git, index: Mapping[bytes, TreeEntry], new: list[bytes], base: str
) -> tuple[Collected, Touched | None]:
    """The files in scope, and with a base their touched lines."""
    tree = await view.tree(base) if base else None
    # In the order of the index, which is nearly sorted: sorting then takes no time.
    paths = await anyio.to_thread.run_sync(dict.fromkeys, [*index, *new])
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


async def _untracked(view: Git, specials: list[bytes], notes: list[str]) -> list[bytes] | None:
    """Paths that git does not track; None, and a note, where it did not tell."""
    waited_on = [path for path in specials if path.rpartition(b"/")[2] in READ_BY_GIT]
    if waited_on:
        notes.append(
            f"untracked files were not looked at: {_shown(waited_on[0])[:200]} is no regular file"
        )
        return None
    try:
        return await view.untracked()
    except GitFailed as error:
        notes.append(f"untracked files were not looked at: {error}")
        return None


async def _specials(view: Git, notes: list[str]) -> list[bytes]:
    """Raw paths of FIFOs, sockets and devices, which git does not name."""
    found = Specials(time.monotonic() + SPECIALS_SECONDS)
    await anyio.to_thread.run_sync(found.walk, view.layout.tree)
    if not found.whole:
        notes.append("not all folders were looked through for FIFOs, sockets and devices")
    return found.paths


async def _not_ignored(view: Git, specials: list[bytes]) -> list[bytes]:
    try:
        return await view.not_ignored(specials)
    except GitFailed:
        return specials


async def _head(view: Git, notes: list[str]) -> str:
    """The commit that is checked out; empty, with a note why, when there is none to look at."""
    try:
        head = await view.head()
    except GitFailed as error:
        notes.append(f"the history was not looked at: {error}")
        return ""
    if not head:
        notes.append("the repository has no commit yet")
    return head


async def _commits(view: Git, head: str, notes: list[str]) -> tuple[list[LogEntry], bool]:
    """The newest commits, and whether there are more."""
    if not head:
        return [], False
    try:
        commits, cut = await view.history(head, COMMIT_LIMIT + 1)
    except GitFailed as error:
        notes.append(f"the history was not looked at: {error}")
        return [], False
    return commits[:COMMIT_LIMIT], cut or len(commits) > COMMIT_LIMIT


def _bounded(log: Sequence[LogEntry]) -> Iterator[Commit]:
    """The newest commits whose changes fit: names are long when a stranger wants them to be."""
    changes = letters = 0
    for entry in log:
        commit = _commit(entry)
        changes += len(commit.changes)
        letters += sum(len(change.path) for change in commit.changes)
        if changes > CHANGES_LIMIT or letters > CHANGES_LETTERS:
            return
        yield commit


def _commit(entry: LogEntry) -> Commit:
    bulk = len(entry.changes) > BULK_FILES
    changes = () if bulk else entry.changes
    return Commit(
        id=entry.hash,
        time=entry.time,
        author=entry.author[:AUTHOR_LETTERS],
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


def _document(manifest: Manifest) -> bytes:
    return manifest.model_dump_json().encode()


def _preview(manifest: Manifest) -> str:
    """A few lines for a planner: counts only, nothing that the repository could have written."""
    kinds = Counter(PurePosixPath(file.path).suffix.lower() for file in manifest.files)
    common = [f"{n} {kind}" for kind, n in kinds.most_common() if _EXTENSION.match(kind)][:8]
    scope = f"what differs from {manifest.base[:12]}" if manifest.base else "the whole tree"
    more = "more than " if manifest.commits_cut else ""
    return (
        f"Git repository, {scope}: {len(manifest.files)} text files, {manifest.size} bytes"
        f" ({', '.join(common) or 'no known kinds'}), {manifest.unread_in_all} not read,"
        f" {more}{min(len(manifest.commits), COMMIT_LIMIT)} commits"
    )
