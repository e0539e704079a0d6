"""Read what differs between a base and the working tree: head and base versions of each file, and
where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from holdfast.activities.repositories.git import Git
from holdfast.activities.repositories.links import Links
from holdfast.activities.repositories.output import Hunk, TreeEntry, few_hunks
from holdfast.activities.repositories.working_tree import (
    Collected,
    Comparison,
    NotRead,
    check_name,
    collect,
    read_text,
)
from holdfast.activities.review.analysing.languages import OTHER, language_of
from holdfast.contracts import PinnedChange

BEFORE_BYTES = 64 * 1024 * 1024
"""Bytes of the base versions together."""
BEFORE_FILES = 20_000


@dataclass
class Changes:
    """The files in scope; with a base only those that differ from it, and how. Raw paths."""

    collected: Collected
    before: dict[bytes, bytes] = field(default_factory=dict)
    """Texts of the base that were changed, renamed or deleted, by their path there."""
    was: dict[bytes, bytes] = field(default_factory=dict)
    """Path in the base of each head file that was there."""
    hunks: dict[bytes, tuple[Hunk, ...]] = field(default_factory=dict)
    """Where each file differs, by its path in the head, or in the base if it was deleted."""
    renamed: dict[bytes, bytes] = field(default_factory=dict)
    """Texts of the head that were renamed and are otherwise as they were."""
    before_cut: int = 0
    """Files of the base that are no text, or beyond a bound."""
    added: int = 0
    deleted: int = 0
    """Lines."""

    @property
    def now(self) -> dict[bytes, bytes]:
        """Path in the head of each file of the base that is still there."""
        return {old: new for new, old in self.was.items()}

    @property
    def pinned(self) -> PinnedChange:
        """Return what a run is told of its size."""
        gone = self.before.keys() - self.was.values()
        files = len(self.collected.files) + len(self.renamed) + len(gone)
        unread = bool(self.collected.reasons or self.before_cut)
        nothing = not (files or unread)
        return PinnedChange(files=files, added=self.added, deleted=self.deleted, nothing=nothing)


async def read_changes(
    view: Git,
    index: Mapping[bytes, TreeEntry],
    paths: Mapping[bytes, None],
    tree: Mapping[bytes, TreeEntry] | None,
) -> Changes:
    """Return the files in scope: all among `paths`, or what differs from the tree of a base."""
    comparison = Comparison(index, tree, view.layout.hash_letters)
    links = Links(view.layout.tree, paths, index, claims)
    read = partial(collect, view.layout.tree, paths, comparison, claims=claims, gaps=links.find_gap)
    changes = Changes(await anyio.to_thread.run_sync(read))
    if tree is None:
        return changes
    files = changes.collected.files
    gone = {path for path in changes.collected.gone if path in tree}
    ids = {
        path: tree[path].hash
        for path in (*files, *sorted(gone), *(path for path in tree if path not in paths))
        if path in tree and is_file(tree[path])
    }
    contents = await view.blobs(ids.values(), BEFORE_BYTES)
    old = await anyio.to_thread.run_sync(_read_before, changes, ids, contents)
    for was, now, diff in await view.compare(old, files):
        place = now if now in files else was
        changes.hunks[place] = few_hunks(diff.hunks)
        changes.added += sum(hunk[3] for hunk in diff.hunks)
        changes.deleted += sum(hunk[1] for hunk in diff.hunks)
        if now in files and was in old:
            changes.was[now] = was
    # Of what differs in the ends of its lines alone, git says nothing.
    known = changes.was.values()
    changes.was |= {path: path for path in files if path in old and path not in {*known}}
    for path in [path for path in files if changes.was.get(path, path) != path]:
        if not changes.hunks[path]:
            changes.renamed[path] = files.pop(path)
    return changes


def _read_before(
    changes: Changes, ids: Mapping[bytes, str], contents: Mapping[str, bytes]
) -> dict[bytes, str | bytes]:
    """Keep the texts of the base, and return what to compare with, by path: a blob's id, or the
    text that was made of it.
    """
    old: dict[bytes, str | bytes] = {}
    for path, blob in ids.items():
        content = contents.get(blob)
        if content is None or len(changes.before) >= BEFORE_FILES:
            changes.before_cut += 1
            old[path] = blob
            continue
        try:
            check_name(path)
            text = read_text(path, content, claims)
        except NotRead:
            changes.before_cut += 1
            continue
        changes.before[path] = text
        old[path] = blob if text == content else text
    return old


def is_file(entry: TreeEntry) -> bool:
    """True for a regular file, which is neither a link nor a submodule."""
    return entry.mode.startswith("100")


def claims(path: bytes) -> bool:
    """True if the name of a file says that it is text."""
    return language_of(path.decode("utf-8", "backslashreplace")) != OTHER
