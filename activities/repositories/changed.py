"""List what of a repository differs from its base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.activities.repositories.manifest import BaseFile, Hunk, Manifest, SnapshotFile


@dataclass(frozen=True)
class Changed:
    """A text file that differs: its versions in the base and in the head, one of which may be
    missing.
    """

    was: BaseFile | None
    now: SnapshotFile | None

    @property
    def shown(self) -> SnapshotFile:
        """Its version in the head, or if it was deleted in the base."""
        file = self.now or self.was
        assert file is not None
        return file

    @property
    def path(self) -> str:
        """Its path in the head, or if it was deleted in the base."""
        return self.shown.path

    @property
    def old_path(self) -> str:
        """Its path in the base; empty: it is new."""
        return self.now.was if self.now else self.path

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Where it differs; a deleted file is one hunk."""
        if self.now:
            return self.now.hunks
        return ((1, self.shown.lines, 0, 0),) if self.shown.lines else ()

    @property
    def added(self) -> int:
        """Lines that the head has and the base has not."""
        return sum(hunk[3] for hunk in self.hunks)

    @property
    def deleted(self) -> int:
        """Lines that the base has and the head has not."""
        return sum(hunk[1] for hunk in self.hunks)

    @property
    def mark(self) -> str:
        """How it differs, in a word or two."""
        if self.now is None:
            assert self.was is not None
            return self.was.end
        if not self.now.was:
            return "new"
        renamed = f"renamed from {self.now.was}" if self.now.was != self.now.path else ""
        return renamed or "changed"


def list_changed(manifest: Manifest) -> Iterator[Changed]:
    """Yield the text files that differ from the base, those that were only renamed included."""
    if not manifest.base:
        return
    before = {file.path: file for file in manifest.before}
    renamed = {file.now for file in manifest.before}
    for file in (*manifest.files, *(each for each in manifest.around if each.path in renamed)):
        yield Changed(before.get(file.was), file)
    for gone in manifest.deleted:
        yield Changed(gone, None)
