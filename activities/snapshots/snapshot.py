"""The snapshot of a repository: what every lens reads, and nothing else.

`take` reads the working tree and the history once, at the start of a run, and stores them by
content: one archive of the files, one manifest. `Snapshots` puts a stored snapshot on disk, once.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories import git, main_line
from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.main_line import Start
from holdfast.activities.repositories.main_line import display_name as shown_name
from holdfast.activities.repositories.manifest import (
    COMMIT_LIMIT,
    Manifest,
    Touched,
    bound_history,
    display_path,
    dump_manifest,
    file_of,
    preview,
)
from holdfast.activities.repositories.output import LogEntry, TreeEntry
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.repositories.working_tree import (
    MOST_UNREAD,
    Collected,
    Comparison,
    Specials,
    collect,
)
from holdfast.activities.review.analysing.languages import OTHER, language_of
from holdfast.activities.review.scope import baseline, marks
from holdfast.activities.review.scope.attributes import Attributes
from holdfast.activities.review.scope.kinds import Base, is_written, kind_of
from holdfast.activities.snapshots import statements
from holdfast.activities.snapshots.statements import read_narrowing
from holdfast.contracts import FileKind, PinnedInput, Unread
from holdfast.contracts.errors import BadGoal
from holdfast.ports import Store
from holdfast.text import pluralize
from holdfast.untrusted.redact import redact
from holdfast.untrusted.roots import Roots

SPECIALS_SECONDS = 20.0
"""How long the walk for FIFOs, sockets and devices may take."""
READ_BY_GIT = (b".gitignore", b".gitattributes")
"""Files that git itself reads in a working tree; it would wait on a FIFO of such a name."""


async def take(
    name: str,
    repository: Path,
    roots: Roots,
    wanted: Wanted,
    store: Store,
    *,
    baselines: Path | None = None,
) -> PinnedInput:
    """Pin a repository below the roots: the files that are wanted of it, into the store. Below
    `baselines` may be what is known of it. Raise BadGoal if it is not a repository, or the revision
    does not exist.
    """
    async with git.open_git(repository, roots) as view:
        try:
            known = await anyio.to_thread.run_sync(baseline.read_kept, baselines, repository)
            manifest, archive, start, changed = await _read(view, wanted, known)
        except GitFailed as error:
            raise BadGoal(f"{str(repository)!r} cannot be read: {error}") from error
    stored = manifest.model_copy(update={"archive": await store.put(archive)})
    written = await anyio.to_thread.run_sync(dump_manifest, stored)
    return PinnedInput(
        name=name,
        kind="repository",
        size=stored.size,
        digest=await store.put(written),
        preview=preview(stored),
        path=redact(str(repository)),
        commit=stored.head,
        base=stored.base,
        base_name=shown_name(start.name),
        scope=stored.scope,
        changed=changed,
    )


async def _read(
    view: Git, wanted: Wanted, known_here: bytes | None
) -> tuple[Manifest, bytes, Start, int | None]:
    """Return the manifest, the archive, what was compared with, and how many files are
    uncommitted.
    """
    notes = [*view.notes]
    head = await _head(view, notes)
    index = await view.index()
    specials = await _specials(view, notes)
    untracked = await _untracked(view, specials, notes)
    if untracked is not None:
        specials = await _not_ignored(view, specials)
    new = [*(untracked or ()), *specials]
    changed = await _count_changed(view, head, index, untracked)
    start = await main_line.find_start(view, wanted, head, changed)
    # In the order of the index, which is nearly sorted: sorting then takes no time.
    paths = await anyio.to_thread.run_sync(dict.fromkeys, [*index, *new])
    tree = await view.tree(start.commit) if start.commit else None
    stated = await statements.read_stated(view, paths, index, tree, cut=start.cut)
    collected, touched = await _scope(view, index, paths, tree)
    log, cut = await _commits(view, head, notes)
    manifest, archive = await anyio.to_thread.run_sync(
        _make_manifest, collected, touched, Attributes(stated.files), tree, log, cut, head, notes
    )
    narrowing, known = await anyio.to_thread.run_sync(
        read_narrowing, stated, start.name, known_here
    )
    update = {
        "base": start.commit,
        "scope": start.describe(len(manifest.files), changed),
        "narrowing": narrowing,
        "known": known,
    }
    return manifest.model_copy(update=update), archive, start, changed


def _make_manifest(
    collected: Collected,
    touched: Touched | None,
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
    log: Sequence[LogEntry],
    cut: bool,
    head: str,
    notes: list[str],
) -> tuple[Manifest, bytes]:
    commits = tuple(bound_history(log))
    cut |= len(commits) < len(log)
    if cut:
        notes.append(f"of the history, the last {len(commits)} commits were looked at")
    kinds, ignored = _kinds(collected.files, touched, attributes, tree)
    if ignored:
        notes.append(
            f"{pluralize(ignored, 'mark')} in changed lines {'was' if ignored == 1 else 'were'} not"
            " honoured: what suppresses remarks, or says that nobody wrote a file, counts where the"
            " base has it"
        )
    missed = _missed(collected.missed, attributes, tree)
    manifest = Manifest(
        archive="",
        files=tuple(
            file_of(path, content, touched, kinds[path])
            for path, content in collected.files.items()
        ),
        unread=tuple(Unread(path=display_path(path), why=why) for path, why in collected.unread),
        missed=tuple(missed[:MOST_UNREAD]),
        missed_in_all=len(missed),
        unread_why=dict(collected.reasons),
        unread_endings=dict(collected.endings),
        head=head,
        commits=commits,
        commits_cut=cut,
        notes=tuple(notes),
    )
    return manifest, archive_of(collected.files)


def _kinds(
    files: Mapping[bytes, bytes],
    touched: Touched | None,
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
) -> tuple[dict[bytes, FileKind], int]:
    """Return the kind of each file, and how many marks in touched lines do not count."""
    stated = {path: kind_of(path.decode(), text, attributes) for path, text in files.items()}
    if touched is None or tree is None:
        return stated, 0
    base = Base(os.fsdecode(path) for path in tree)
    kinds, ignored = dict[bytes, FileKind](), 0
    for path, text in files.items():
        before = marks.drop_touched(text, touched[path])
        kinds[path] = kind_of(path.decode(), before, attributes, base)
        ignored += marks.strip_marks(text, touched[path])[1] + (kinds[path] != stated[path])
    return kinds, ignored


def _missed(
    unread: Sequence[tuple[bytes, str]],
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
) -> list[Unread]:
    """Return those that somebody wrote: nobody looks through what is vendored or generated."""
    base = None if tree is None else Base(os.fsdecode(path) for path in tree)
    return [
        Unread(path=display_path(path), why=why)
        for path, why in unread
        if is_written(kind_of(display_path(path), b"", attributes, base))
    ]


def _claims(path: bytes) -> bool:
    return language_of(display_path(path)) != OTHER


async def _count_changed(
    view: Git, head: str, index: Mapping[bytes, TreeEntry], untracked: list[bytes] | None
) -> int | None:
    """Return how many files differ from the commit: staged, edited, deleted or new. None if git did
    not tell, or there is no commit.
    """
    if not head or untracked is None:
        return None
    try:
        committed, edited = await view.tree(head), await view.modified()
    except GitFailed:
        return None
    return await anyio.to_thread.run_sync(_count_differing, committed, index, edited, untracked)


def _count_differing(
    committed: Mapping[bytes, TreeEntry],
    index: Mapping[bytes, TreeEntry],
    edited: Sequence[bytes],
    untracked: Sequence[bytes],
) -> int:
    staged = {
        path for path in committed.keys() | index.keys() if committed.get(path) != index.get(path)
    }
    return len(staged | {*edited, *untracked})


async def _scope(
    view: Git,
    index: Mapping[bytes, TreeEntry],
    paths: Mapping[bytes, None],
    tree: Mapping[bytes, TreeEntry] | None,
) -> tuple[Collected, Touched | None]:
    """Return the files in scope, and with the tree of a base their touched lines."""
    comparison = Comparison(index, tree, view.layout.hash_letters)
    read = partial(collect, view.layout.tree, paths, comparison, claims=_claims)
    collected = await anyio.to_thread.run_sync(read)
    if tree is None:
        return collected, None
    files = collected.files
    # What vanished may have been renamed, so it takes part in the comparison.
    old = [(path, entry) for path, entry in tree.items() if path in files or path not in paths]
    blobs = [(path, entry.hash) for path, entry in old if _is_file(entry)]
    touched = await view.changed_lines(blobs, list(files.items()))
    for path in [path for path in files if path not in tree and not touched[path]]:
        # Renamed and otherwise as it was.
        del files[path]
    return collected, touched


def _is_file(entry: TreeEntry) -> bool:
    return entry.mode.startswith("100")


async def _untracked(view: Git, specials: list[bytes], notes: list[str]) -> list[bytes] | None:
    """Return paths that git does not track; None, with a note, if it did not tell."""
    waited_on = [path for path in specials if path.rpartition(b"/")[2] in READ_BY_GIT]
    if waited_on:
        first = display_path(waited_on[0])[:200]
        notes.append(f"untracked files were not looked at: {first} is not a regular file")
        return None
    try:
        return await view.untracked()
    except GitFailed as error:
        notes.append(f"untracked files were not looked at: {error}")
        return None


async def _specials(view: Git, notes: list[str]) -> list[bytes]:
    """Return raw paths of FIFOs, sockets and devices, which git does not name."""
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
    """Return the commit that is checked out; empty, with a note why, if there is none to look
    at.
    """
    try:
        head = await view.head()
    except GitFailed as error:
        notes.append(f"the history was not looked at: {error}")
        return ""
    if not head:
        notes.append("the repository has no commit yet")
    return head


async def _commits(view: Git, head: str, notes: list[str]) -> tuple[list[LogEntry], bool]:
    """Return the newest commits, and whether there are more."""
    if not head:
        return [], False
    try:
        commits, cut = await view.history(head, COMMIT_LIMIT + 1)
    except GitFailed as error:
        notes.append(f"the history was not looked at: {error}")
        return [], False
    return commits[:COMMIT_LIMIT], cut or len(commits) > COMMIT_LIMIT


def archive_of(files: Mapping[bytes, bytes]) -> bytes:
    """Return a tar archive that depends on names and contents only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path.decode())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
