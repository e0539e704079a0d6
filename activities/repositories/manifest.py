"""Describe the content of a snapshot of a repository, as it is stored and shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from pydantic import Field

from holdfast.activities.repositories.output import Hunk as Hunk
from holdfast.activities.repositories.output import LogEntry, ranges_of
from holdfast.contracts import Contract, FileKind, Narrowing, Unread
from holdfast.text import for_terminal
from holdfast.untrusted.redact import redact

COMMIT_LIMIT = 2_000
"""Commits of the history that are read."""
BULK_FILES = 1_000
"""A commit that touches more files than this is an import; its changes say nothing of the work."""
CHANGES_LIMIT, CHANGES_LETTERS = 100_000, 4_000_000
"""Changes of files in all commits together, and characters of their names."""
AUTHOR_LETTERS = 200
LINK_LETTERS = 200
_FIRST_LINE = re.compile(
    rb"#![ \t]*(?:[\w./-]{0,200}/)?"
    rb"(?:env[ \t]+(?:-S[ \t]+)?(?:[\w./-]{0,200}/)?)?([A-Za-z][\w.+-]{0,30})(?=\s|\Z)"
)
_EXTENSION = re.compile(r"\.[a-z0-9+]{1,12}\Z")

NO_HISTORY = "the history was not looked at: "


class SnapshotFile(Contract):
    """A text file of the snapshot; `path` is relative, with slashes."""

    path: str
    size: int
    lines: int
    touched: tuple[tuple[int, int], ...] | None = None
    """First and last line of each range in scope; None: the whole file."""
    kind: FileKind = "production"
    program: str = ""
    """The program that its first line names, without folders; empty: none."""
    was: str = ""
    """Its path in the base; empty: it is new, or there is no base."""
    hunks: tuple[Hunk, ...] = ()
    """Where it differs from the base, in order."""


class BaseFile(SnapshotFile):
    """A text file of the base that was changed, renamed or deleted. `touched` are its lines that
    the head no longer has.
    """

    now: str = ""
    """Its path in the head; empty: it was deleted."""
    link: str = ""
    """What a link that replaced it leads to, for anybody to see; empty: none did."""

    @property
    def end(self) -> str:
        """What became of its path, in words."""
        return f"replaced by a link to {self.link}" if self.link else "deleted"


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
    message: str = ""
    """Without secrets, and cut to a bound; empty: not kept."""
    of_change: bool = False
    """True if the head has it and the base does not."""
    patch_bytes: int = 0
    """Size of its kept diff of the files in scope, `<id>.diff` among the patches; 0: none is."""


class Manifest(Contract):
    """Content of a snapshot. In scope is what differs from the base, or without one the whole
    tree.
    """

    archive: str
    """Digest of the tar archive with the files."""
    files: tuple[SnapshotFile, ...] = ()
    around: tuple[SnapshotFile, ...] = ()
    """Files of the head that do not differ from the base, for whoever reads what is around a
    change. Empty without a base: all files are in scope.
    """
    around_archive: str = ""
    """Digest of the tar archive with these; empty: there are none."""
    around_cut: int = 0
    """Files that would be among them and are beyond a bound."""
    before: tuple[BaseFile, ...] = ()
    """What the base has of the files in scope, and the files that were deleted."""
    before_archive: str = ""
    before_cut: int = 0
    """Files that differ and whose base version is not kept: it is no text, or beyond a bound."""
    patches_archive: str = ""
    """Digest of the tar archive with the diffs of old commits."""
    unread: tuple[Unread, ...] = ()
    """The first of the files that were not read; all are counted below."""
    missed: tuple[Unread, ...] = ()
    """The first of the unread files that seem to be text which somebody wrote."""
    missed_in_all: int = 0
    unread_why: dict[str, int] = Field(default_factory=dict)
    unread_endings: dict[str, int] = Field(default_factory=dict)
    """Unread files by ending, such as `.py`; an ending that is absent or long is ""."""
    head: str = ""
    base: str = ""
    scope: str = ""
    """The part that was taken and why, in words; empty: there was no choice."""
    narrowing: Narrowing = Narrowing()
    known: tuple[str, ...] = ()
    """Fingerprints of remarks that a baseline has."""
    commits: tuple[Commit, ...] = ()
    """Newest first."""
    commits_cut: bool = False
    """True if there are more commits than were read."""
    notes: tuple[str, ...] = ()

    @property
    def no_history(self) -> str:
        """The note that says why the commits could not be read; empty: they were."""
        return next((each for each in self.notes if each.startswith(NO_HISTORY)), "")

    @property
    def unread_in_all(self) -> int:
        """Files that were not read."""
        return sum(self.unread_why.values())

    @property
    def deleted(self) -> tuple[BaseFile, ...]:
        """Text files of the base that the head does not have."""
        return tuple(file for file in self.before if not file.now)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


def bound_history(log: Sequence[LogEntry]) -> Iterator[Commit]:
    """Yield the newest commits whose changes fit: names are long if a stranger wants them to be."""
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
            Change(path=display_path(path), added=added, deleted=deleted)
            for added, deleted, path in changes
        ),
    )


def file_of(
    path: bytes,
    content: bytes,
    kind: FileKind = "production",
    hunks: Sequence[Hunk] | None = None,
    was: bytes = b"",
) -> SnapshotFile:
    """Describe a file of the head. `hunks` and `was` say how it differs from the base, if there is
    one.
    """
    return SnapshotFile(
        path=path.decode(),
        size=len(content),
        lines=_count_lines(content),
        touched=None if hunks is None else ranges_of(hunk[2:] for hunk in hunks),
        kind=kind,
        program=_program(content),
        was=was.decode(),
        hunks=tuple(hunks or ()),
    )


def base_file_of(
    path: bytes,
    content: bytes,
    kind: FileKind,
    hunks: Sequence[Hunk],
    now: bytes,
    link: bytes = b"",
) -> BaseFile:
    """Describe a file of the base. `link`: the target of a link that stands in its place."""
    return BaseFile(
        path=path.decode(),
        size=len(content),
        lines=_count_lines(content),
        touched=ranges_of(hunk[:2] for hunk in hunks),
        kind=kind,
        program=_program(content),
        now=now.decode(),
        link=redact(for_terminal(display_path(link)))[:LINK_LETTERS],
    )


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def _program(content: bytes) -> str:
    found = _FIRST_LINE.match(content)
    return found[1].decode() if found else ""


def display_path(path: bytes) -> str:
    """Return a raw path as text that JSON can carry, whatever its bytes."""
    return path.decode("utf-8", "backslashreplace")


def dump_manifest(manifest: Manifest) -> bytes:
    return manifest.model_dump_json().encode()


def preview(manifest: Manifest) -> str:
    """Return a few lines for a planner: counts only, nothing that the repository could have
    written.
    """
    kinds = Counter(PurePosixPath(file.path).suffix.lower() for file in manifest.files)
    common = [f"{n} {kind}" for kind, n in kinds.most_common() if _EXTENSION.match(kind)][:8]
    scope = f"what differs from {manifest.base[:12]}" if manifest.base else "the whole tree"
    more = "more than " if manifest.commits_cut else ""
    gone = f" and {len(manifest.deleted)} that are none any more" if manifest.deleted else ""
    return (
        f"Git repository, {scope}: {len(manifest.files)} text files{gone}, {manifest.size} bytes"
        f" ({', '.join(common) or 'no known kinds'}), {manifest.unread_in_all} not read,"
        f" {more}{min(len(manifest.commits), COMMIT_LIMIT)} commits"
    )
