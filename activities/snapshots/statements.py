"""Read what a repository says of its own files: attributes, settings of a review, known remarks. If
only what differs from a base is taken, the base's word counts: a change cannot say of itself what
is to be overlooked in it. If a clone does not tell what changed, nothing counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import anyio.to_thread

from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.main_line import display_name
from holdfast.activities.repositories.output import TreeEntry
from holdfast.activities.repositories.working_tree import Comparison, collect
from holdfast.activities.review.scope import attributes, baseline, settings
from holdfast.contracts import Narrowing
from holdfast.text import pluralize

MOST_BYTES = 3 * 1024 * 1024
"""Bytes of all these files together."""
MOST_ATTRIBUTES = 20
"""Files of attributes that are read, those nearest to the top."""
KINDS = b"linguist-"
"""Words of an attributes line that says the kind of a file."""
TOP = (settings.NAME.encode(), baseline.NAME.encode())


@dataclass(frozen=True)
class Stated:
    """The contents that count, by path; `changed`: what else the working tree would say."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Files that were not read, each with the reason."""


async def read_stated(
    view: Git,
    paths: Iterable[bytes],
    index: Mapping[bytes, TreeEntry],
    base: Mapping[bytes, TreeEntry] | None,
    *,
    cut: bool = False,
) -> Stated:
    """Return what is stated in the working tree, whose files are `paths`, or in the base's tree;
    `cut`: there is no base because the clone is partial.
    """
    here, beyond = _select_stating(paths)
    comparison = Comparison(index, None)
    found = await anyio.to_thread.run_sync(collect, view.layout.tree, here, comparison, MOST_BYTES)
    now = {path.decode(): content for path, content in found.files.items()}
    if base is None:
        if cut:
            return Stated(unread=tuple(_doubtful(now)))
        unread = (
            f"{display_name(os.fsdecode(path))}, because it is {why}" for path, why in found.unread
        )
        return Stated(now, (), (*unread, *_too_many(beyond)))
    there, beyond = _select_stating(base)
    before, lost = await _blobs(view, there, base)
    changed = sorted(path for path in now.keys() | before if _differs(path, now, before))
    return Stated(before, tuple(changed), (*lost, *_too_many(beyond)))


def _doubtful(now: Mapping[str, bytes]) -> Iterator[str]:
    for path in sorted(path for path in now if _differs(path, now, {})):
        why = "the clone lacks its main line and nobody named a base: it may be part of the change"
        yield f"{display_name(path)}, because {why}"


def _too_many(beyond: int) -> Iterator[str]:
    if beyond:
        yield f"{pluralize(beyond, 'file')} of attributes beyond the first {MOST_ATTRIBUTES}"


def _differs(path: str, now: Mapping[str, bytes], before: Mapping[str, bytes]) -> bool:
    one, other = now.get(path, b""), before.get(path, b"")
    if path in (settings.NAME, baseline.NAME):
        return one != other
    return one != other and (KINDS in one or KINDS in other)


def read_narrowing(
    stated: Stated, base: str, known_here: bytes | None
) -> tuple[Narrowing, tuple[str, ...]]:
    """Return what a review does not list by the repository's settings, and the fingerprints that
    are known by its baseline and by one that is kept here. `base` names what counts; empty: the
    working tree.
    """
    of = f" of {display_name(base)}" if base else ""
    content = stated.files.get(settings.NAME)
    narrowing = (
        Narrowing() if content is None else settings.parse_settings(content, settings.NAME + of)
    )
    known: set[str] = set()
    where, wrong = [], [*narrowing.not_obeyed, *stated.unread]
    for place, listed in (
        (baseline.NAME + of, stated.files.get(baseline.NAME)),
        ("the baseline in the state directory", known_here),
    ):
        if listed is None:
            continue
        try:
            known |= baseline.read_fingerprints(listed)
            where.append(place)
        except baseline.NoBaseline as error:
            wrong.append(f"{place}, because {error}")
    update = {
        "not_obeyed": tuple(wrong),
        "baselines": tuple(where),
        "changed": tuple(
            _explain_changed(path, path in stated.files, of) for path in stated.changed
        ),
    }
    return narrowing.model_copy(update=update), tuple(sorted(known))


def _explain_changed(path: str, there: bool, of: str) -> str:
    main = of.removeprefix(" of ")
    instead = f"that of {main} counts" if there else f"{main} has none, so none counts"
    return f"{display_name(path)} is itself part of what changed: {instead}"


def _select_stating(paths: Iterable[bytes]) -> tuple[list[bytes], int]:
    """Return those of some paths that state something, and how many of them were too many."""
    name = attributes.NAME.encode()
    found = [path for path in paths if path in TOP or path.rpartition(b"/")[2] == name]
    found.sort(key=lambda path: (path not in TOP, path.count(b"/"), path))
    most = MOST_ATTRIBUTES + len(TOP)
    return found[:most], max(len(found) - most, 0)


async def _blobs(
    view: Git, paths: Iterable[bytes], tree: Mapping[bytes, TreeEntry]
) -> tuple[dict[str, bytes], list[str]]:
    found: dict[str, bytes] = {}
    lost = []
    for path in paths:
        entry = tree[path]
        name = os.fsdecode(path)
        try:
            if not entry.mode.startswith("100"):
                raise GitFailed("it is not a regular file")
            content = await view.blob(entry.hash)
            if sum(map(len, found.values())) + len(content) > MOST_BYTES:
                raise GitFailed(f"it is beyond {MOST_BYTES >> 20} MiB in all")
            found[name] = content
        except GitFailed as error:
            lost.append(f"{display_name(name)}, because {error}")
    return found, lost
