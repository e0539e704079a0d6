"""The snapshot of a repository: what every lens reads, and nothing else.

`take` reads the working tree and the history once, at the start of a run, and stores them by
content: one archive of the files, one manifest. `Snapshots` puts a stored snapshot on disk, once.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from holdfast.activities.repositories import git, main_line
from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.main_line import Start
from holdfast.activities.repositories.main_line import display_name as shown_name
from holdfast.activities.repositories.manifest import (
    COMMIT_LIMIT,
    NO_HISTORY,
    Commit,
    Manifest,
    base_file_of,
    bound_history,
    display_path,
    dump_manifest,
    file_of,
    preview,
)
from holdfast.activities.repositories.output import LogEntry, TreeEntry, ranges_of
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.repositories.working_tree import MOST_UNREAD, Specials
from holdfast.activities.review.scope import baseline
from holdfast.activities.review.scope.attributes import Attributes
from holdfast.activities.review.scope.kinds import Base, is_written, kind_of
from holdfast.activities.review.scope.rule_files import find_rule_files
from holdfast.activities.snapshots import past, statements
from holdfast.activities.snapshots.around import Around, read_around
from holdfast.activities.snapshots.changes import Changes, read_changes
from holdfast.activities.snapshots.diff import add_diff
from holdfast.activities.snapshots.file_kinds import decide_kinds
from holdfast.activities.snapshots.statements import read_narrowing
from holdfast.contracts import PinnedInput, Unread
from holdfast.contracts.errors import BadGoal
from holdfast.ports import Store
from holdfast.text import for_terminal, pluralize
from holdfast.untrusted.redact import redact
from holdfast.untrusted.roots import Roots

MOST_LINKS = 5
"""Files that a link replaced and that are named in a note."""
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
    snapshots: Snapshots | None = None,
) -> PinnedInput:
    """Pin a repository below the roots: the files that are wanted of it, into the store. Below
    `baselines` may be what is known of it. For models its diff is written with `snapshots`. Raise
    BadGoal if it is not a repository, or the revision does not exist.
    """
    async with git.open_git(repository, roots) as view:
        try:
            known = await anyio.to_thread.run_sync(baseline.read_kept, baselines, repository)
            taken = await _read(view, wanted, known)
        except GitFailed as error:
            raise BadGoal(f"{str(repository)!r} cannot be read: {error}") from error
    archives = {
        name: await store.put(await anyio.to_thread.run_sync(archive_of, files))
        for name, files in taken.archives.items()
    }
    stored = taken.manifest.model_copy(update=archives)
    written = await anyio.to_thread.run_sync(dump_manifest, stored)
    pinned = PinnedInput(
        name=name,
        kind="repository",
        size=stored.size,
        digest=await store.put(written),
        preview=preview(stored),
        path=redact(str(repository)),
        commit=stored.head,
        base=stored.base,
        base_name=shown_name(taken.start.name),
        scope=stored.scope,
        changed=taken.uncommitted,
        change=taken.changes.pinned if stored.base else None,
        around=sum(each.size for each in stored.around),
        rule_files=tuple(map(redact, _rule_files(stored, taken))) if wanted.for_models else (),
    )
    if snapshots is None or not wanted.for_models:
        return pinned
    return await add_diff(pinned, snapshots, store)


def _rule_files(stored: Manifest, taken: _Taken) -> tuple[str, ...]:
    texts = {
        path.decode(): content
        for name in ("archive", "around_archive")
        for path, content in taken.archives.get(name, {}).items()
    }
    return find_rule_files(stored, lambda path: texts[path].decode("utf-8", "replace"))


@dataclass(frozen=True)
class _Taken:
    """What was read of a repository."""

    manifest: Manifest
    archives: Mapping[str, Mapping[bytes, bytes]]
    """Files by their raw path, under the field of the manifest that names their archive."""
    start: Start
    uncommitted: int | None
    """Files that are not as the commit has them."""
    changes: Changes


async def _read(view: Git, wanted: Wanted, known_here: bytes | None) -> _Taken:
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
    changes = await read_changes(view, index, paths, tree)
    attributes = Attributes(stated.files)
    around = await anyio.to_thread.run_sync(
        read_around,
        view.layout.tree,
        index,
        changes.collected.same,
        changes.renamed,
        attributes,
    )
    commits, patches, cut = await _history(view, head, start.commit, wanted, changes, notes)
    make = partial(_make_manifest, cut_off=start.cut)
    manifest = await anyio.to_thread.run_sync(
        make, changes, around, attributes, tree, commits, cut, head, notes
    )
    narrowing, known = await anyio.to_thread.run_sync(
        read_narrowing, stated, start.name, known_here
    )
    update = {
        "base": start.commit,
        "scope": start.describe(
            len(manifest.files),
            len(changes.renamed),
            sum(not each.link for each in manifest.deleted),
            changed,
            sum(bool(each.link) for each in manifest.deleted),
        ),
        "narrowing": narrowing,
        "known": known,
    }
    archives = {
        "archive": changes.collected.files,
        "around_archive": around.files,
        "before_archive": changes.before,
        "patches_archive": {f"{name}.diff".encode(): each for name, each in patches.items()},
    }
    return _Taken(
        manifest.model_copy(update=update),
        {name: each for name, each in archives.items() if each or name == "archive"},
        start,
        changed,
        changes,
    )


async def _history(
    view: Git, head: str, base: str, wanted: Wanted, changes: Changes, notes: list[str]
) -> tuple[tuple[Commit, ...], dict[str, bytes], bool]:
    """Return the newest commits, the diffs of those that models may want to see, and whether there
    are more commits.
    """
    log, cut = await _commits(view, head, notes)
    commits = tuple(await anyio.to_thread.run_sync(lambda: [*bound_history(log)]))
    cut |= len(commits) < len(log)
    if cut:
        notes.append(f"of the history, the last {len(commits)} commits were looked at")
    if base or wanted.for_models:
        commits, missing = await past.read_messages(
            view, commits, base, head, all_of_them=wanted.for_models
        )
        notes += missing
    if not (base and wanted.for_models):
        return commits, {}, cut
    files = {display_path(path) for path in (*changes.collected.files, *changes.before)}
    patches, missing = await past.read_patches(view, commits, files)
    notes += missing
    kept = (
        each.model_copy(update={"patch_bytes": len(patches[each.id])})
        if each.id in patches
        else each
        for each in commits
    )
    return tuple(kept), patches, cut


def _make_manifest(
    changes: Changes,
    around: Around,
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
    commits: tuple[Commit, ...],
    cut: bool,
    head: str,
    notes: list[str],
    *,
    cut_off: bool,
) -> Manifest:
    collected, hunks = changes.collected, changes.hunks
    touched = None
    if tree is not None:
        touched = {
            path: ranges_of(hunk[2:] for hunk in hunks.get(path, ())) for path in collected.files
        }
    decided = decide_kinds(collected.files, touched, attributes, tree, partial=cut_off)
    missed = _missed(collected.missed, attributes, tree)
    now = changes.now
    return Manifest(
        archive="",
        files=tuple(
            file_of(
                path,
                content,
                decided.kinds[path],
                None if tree is None else hunks.get(path, ()),
                changes.was.get(path, b""),
            )
            for path, content in collected.files.items()
        ),
        around=tuple(
            file_of(path, content, around.kinds[path], (), changes.was.get(path, path))
            for path, content in around.files.items()
        ),
        around_cut=around.cut,
        before=tuple(
            base_file_of(
                path,
                content,
                kind_of(path.decode(), content, attributes),
                hunks.get(now.get(path, path), ()),
                now.get(path, b""),
                collected.links.get(path, b""),
            )
            for path, content in changes.before.items()
        ),
        before_cut=changes.before_cut,
        unread=tuple(Unread(path=display_path(path), why=why) for path, why in collected.unread),
        missed=tuple(missed[:MOST_UNREAD]),
        missed_in_all=len(missed),
        unread_why=dict(collected.reasons),
        unread_endings=dict(collected.endings),
        head=head,
        commits=commits,
        commits_cut=cut,
        notes=(*notes, *_note_links(changes), *decided.notes),
    )


def _note_links(changes: Changes) -> Iterator[str]:
    """Yield a note for each of the first files that a link replaced."""
    linked = [path for path in changes.before if path in changes.collected.links]
    for path in linked[:MOST_LINKS]:
        names = (path, changes.collected.links[path])
        path_shown, target = (redact(for_terminal(display_path(each)))[:200] for each in names)
        yield f"{path_shown} was replaced by a link to {target}"
    if (more := len(linked) - MOST_LINKS) > 0:
        yield f"{pluralize(more, 'more file')} replaced by links"


def _missed(
    unread: Sequence[tuple[bytes, str]],
    attributes: Attributes,
    tree: Mapping[bytes, TreeEntry] | None,
) -> list[Unread]:
    """Return those that somebody wrote: nobody looks through what is vendored or generated."""
    base = None if tree is None else Base(os.fsdecode(path) for path in tree)

    def is_own(path: str) -> bool:
        # A submodule ends with a slash: a rule may mean the folder, or what is in it.
        names = {path, path.rstrip("/")}
        return all(is_written(kind_of(each, b"", attributes, base)) for each in names)

    named = (Unread(path=display_path(path), why=why) for path, why in unread)
    return [each for each in named if is_own(each.path)]


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
        notes.append(f"{NO_HISTORY}{error}")
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
        notes.append(f"{NO_HISTORY}{error}")
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
