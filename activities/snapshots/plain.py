"""Take the snapshot of a plain folder that is not a git repository: what its agents' tools read.

It is bounded as a repository's is. Documents are kept, too, because tools read them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import anyio.to_thread

from holdfast.activities.repositories.documents import DOCUMENT_BYTES
from holdfast.activities.repositories.manifest import Manifest, display_path, dump_manifest, file_of
from holdfast.activities.repositories.working_tree import (
    MOST_FILES,
    PATH_FOLDERS,
    Collected,
    Comparison,
    collect,
)
from holdfast.activities.snapshots.snapshot import archive_of
from holdfast.contracts import GoalInput, PinnedInput, Unread
from holdfast.contracts.errors import BadGoal
from holdfast.ports import Store
from holdfast.untrusted.folders import Folder
from holdfast.untrusted.redact import redact
from holdfast.untrusted.roots import Outside, Roots, open_folder

WALK_SECONDS = 20.0


async def take(given: GoalInput, roots: Roots, store: Store) -> PinnedInput:
    """Pin a folder below the roots: its files, into the store. Raise BadGoal if it is not one."""
    path = Path(given.value)
    try:
        manifest, archive = await anyio.to_thread.run_sync(_read, path, roots)
    except Outside as error:
        raise BadGoal(f"{str(path)!r} {error}") from None
    except (OSError, ValueError) as error:
        # ValueError: a NUL in it.
        why = getattr(error, "strerror", "") or "no such folder"
        raise BadGoal(f"{str(path)!r} cannot be read: {why}") from None
    stored = manifest.model_copy(update={"archive": await store.put(archive)})
    written = await anyio.to_thread.run_sync(dump_manifest, stored)
    return PinnedInput(
        name=given.name,
        kind="folder",
        size=stored.size,
        digest=await store.put(written),
        preview=_preview(stored),
        path=redact(given.value),
    )


def _read(path: Path, roots: Roots) -> tuple[Manifest, bytes]:
    """Return the manifest and the archive. Blocking."""
    with open_folder(path, roots) as folder:
        found = _Listing(time.monotonic() + WALK_SECONDS)
        found.walk(folder)
        collected = collect(folder, found.paths, Comparison({}, None), documents=DOCUMENT_BYTES)
    return _manifest(collected, whole=found.whole), archive_of(collected.files)


def _manifest(collected: Collected, *, whole: bool) -> Manifest:
    return Manifest(
        archive="",
        files=tuple(file_of(path, content) for path, content in collected.files.items()),
        unread=tuple(Unread(path=display_path(path), why=why) for path, why in collected.unread),
        unread_why=dict(collected.reasons),
        unread_endings=dict(collected.endings),
        notes=() if whole else ("not all of the folder was looked through",),
    )


@dataclass
class _Listing:
    """Raw paths below a folder; `whole` is False if the walk was cut."""

    until: float
    paths: list[bytes] = field(default_factory=list)
    whole: bool = True

    def walk(self, folder: Folder, prefix: bytes = b"", depth: int = 0) -> None:
        """Walk a folder and those below it, in the order of their names, without git's own and
        without following links.
        """
        try:
            with folder.entries() as entries:
                below = []
                for entry in sorted(entries, key=lambda each: each.name):
                    if time.monotonic() > self.until or len(self.paths) > MOST_FILES:
                        self.whole = False
                        return
                    if not entry.is_dir(follow_symlinks=False):
                        self.paths.append(prefix + os.fsencode(entry.name))
                    elif entry.name.lower() != ".git":
                        below.append(entry.name)
        except OSError:
            self.whole = False
            return
        for name in below:
            self._enter(folder, name, prefix, depth)

    def _enter(self, folder: Folder, name: str, prefix: bytes, depth: int) -> None:
        if depth == PATH_FOLDERS:
            self.whole = False
            return
        try:
            with folder.enter(name) as found:
                self.walk(found, prefix + os.fsencode(name) + b"/", depth + 1)
        except OSError:
            self.whole = False


def _preview(manifest: Manifest) -> str:
    """Return a line for a planner: counts only, nothing but endings that a stranger could have
    written.
    """
    kinds = Counter(PurePosixPath(file.path).suffix.lower() for file in manifest.files)
    common = [f"{n} {kind}" for kind, n in kinds.most_common() if _plain(kind)][:8]
    return (
        f"A folder: {len(manifest.files)} files, {manifest.size} bytes"
        f" ({', '.join(common) or 'no known kinds'}), {manifest.unread_in_all} not read"
    )


def _plain(kind: str) -> bool:
    return 1 < len(kind) <= 6 and kind[1:].isascii() and kind[1:].isalnum()
