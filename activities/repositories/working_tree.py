"""Read an untrusted working tree: no link is followed, no FIFO waited on, nothing written."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.activities.repositories.output import TreeEntry
from holdfast.activities.repositories.texts import HEAD, is_binary, to_utf8
from holdfast.untrusted.folders import FOLDER, Folder, open_regular

FILE_LIMIT = 1024 * 1024
TOTAL_LIMIT = 200 * 1024 * 1024
MOST_FILES = 100_000
NAMES_LIMIT = 16 * 1024 * 1024
"""Bytes of all names together: each may have 4,095, and every reader of a snapshot has them all."""
MOST_UNREAD = 1_000
"""Files that were not read and are named; the others are counted."""
DOCUMENTS = (
    b".pdf", b".docx", b".xlsx", b".pptx", b".csv", b".parquet", b".sqlite", b".sqlite3", b".db",
)  # fmt: skip
"""Ends of the names of files that tools read although they are not text, or are larger than text
may be.
"""
ENDING = re.compile(rb"\.[a-z0-9+]{1,12}")
TEXT_WINDOW = 8000
"""Bytes; a NUL byte among the first of a file makes it binary, as git decides it."""
CHUNK = 1024 * 1024
SUBMODULE = "160000"
PATH_BYTES = 700
"""Bytes of a path below the working tree: its snapshot has to fit below the state directory, and
macOS takes 1,024 bytes in all.
"""
PATH_FOLDERS = 100
"""Folders of a path: each is a handle while the file is read."""
SPECIALS = 1_000
"""FIFOs, sockets and devices that are listed."""
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a nested repository",
}


Claims = Callable[[bytes], bool]
"""True if a file's name says that it is text, as a program's does."""
Gaps = Callable[[bytes, bytes], str]
"""Why nobody knows what a link, by its path and target, leads to; empty: it is read, or nothing."""


class NotRead(Exception):
    """Why a file is not part of the snapshot, in a few words. `missed`: a reviewer would have read
    it, as nobody would a picture or a FIFO. `path`: how it is named, if not as it is. `target`: of
    a link.
    """

    def __init__(
        self, why: str, *, missed: bool = False, path: bytes = b"", target: bytes = b""
    ) -> None:
        super().__init__(why)
        self.missed = missed
        self.path = path
        self.target = target


class Unchanged(Exception):
    """The file is the base revision's: out of scope."""


@dataclass
class Collected:
    """Files that were read, and those that were not with the reason; raw paths."""

    files: dict[bytes, bytes] = field(default_factory=dict)
    unread: list[tuple[bytes, str]] = field(default_factory=list)
    """The first files that were not read; all are counted below."""
    missed: list[tuple[bytes, str]] = field(default_factory=list)
    """All files that were not read and are text, as far as anybody can tell."""
    reasons: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    links: dict[bytes, bytes] = field(default_factory=dict)
    """Targets of the links among those that were not read."""
    same: list[bytes] = field(default_factory=list)
    """Files that are as the base has them."""
    gone: list[bytes] = field(default_factory=list)
    """Paths at which there is no file that could be read: nothing, or another kind of thing."""
    size: int = 0
    names: int = 0
    """Bytes of the names of the files."""
    limit: int = TOTAL_LIMIT

    def add(self, path: bytes, content: bytes) -> None:
        """Keep a file. Raise NotRead if it no longer fits."""
        if self.size + len(content) > self.limit:
            raise NotRead(f"beyond {self.limit >> 20} MiB in all", missed=True)
        if len(self.files) >= MOST_FILES:
            raise NotRead(f"beyond {MOST_FILES:,} files in all", missed=True)
        if self.names + len(path) > NAMES_LIMIT:
            raise NotRead(f"beyond {NAMES_LIMIT >> 20} MiB of names in all", missed=True)
        self.files[path] = content
        self.size += len(content)
        self.names += len(path)

    def leave_out(self, path: bytes, reason: str, *, missed: bool = False) -> None:
        """Count a file that was not read, and name it if it is one of the first."""
        if missed:
            self.missed.append((path, reason))
        self.reasons[reason] += 1
        ending = os.path.splitext(path)[1].lower()
        shown = ending.decode() if ENDING.fullmatch(ending) else ""
        # Whoever makes up endings without end gets none of them counted apart.
        self.endings[shown if shown in self.endings or len(self.endings) < 1_000 else ""] += 1
        if len(self.unread) < MOST_UNREAD:
            self.unread.append((path, reason))


@dataclass(frozen=True)
class Comparison:
    """The index, and the base revision's tree if only what differs from it is in scope."""

    index: Mapping[bytes, TreeEntry]
    base: Mapping[bytes, TreeEntry] | None
    hash_letters: int = 40

    def before(self, path: bytes) -> TreeEntry | None:
        """Return what the base revision holds under this path."""
        return None if self.base is None else self.base.get(path)

    def blob(self, size: int) -> hashlib._Hash:
        """Begin git's hash of content of this size."""
        name = "sha1" if self.hash_letters == 40 else "sha256"
        return hashlib.new(name, b"blob %d\0" % size, usedforsecurity=False)

    def check(self, path: bytes, content: bytes) -> None:
        """Raise Unchanged if this is the base's content, whatever its line ends."""
        if (entry := self.before(path)) is None:
            return
        for form in (content, content.replace(b"\r\n", b"\n")):
            digest = self.blob(len(form))
            digest.update(form)
            if digest.hexdigest() == entry.hash:
                raise Unchanged


def collect(
    root: Folder,
    paths: Iterable[bytes],
    comparison: Comparison,
    limit: int = TOTAL_LIMIT,
    documents: int = 0,
    claims: Claims | None = None,
    gaps: Gaps | None = None,
) -> Collected:
    """Read the regular text files among `paths`, up to `limit` bytes in all; with a base, those
    that differ from it; and documents of at most `documents` bytes each. With `claims`, a file with
    a NUL byte is text, too, if its name claims so or nothing says that it is binary. `gaps` judges
    links.
    """
    collected = Collected(limit=limit)
    folders = Folders(root)
    try:
        for path in sorted(paths):
            try:
                collected.add(path, _read(folders, path, comparison, documents, claims, gaps))
            except Unchanged:
                collected.same.append(path)
            except FileNotFoundError:
                # A tracked file that is not there was deleted.
                collected.gone.append(path)
            except NotRead as reason:
                if reason.target:
                    collected.links[path] = reason.target
                missed = reason.missed and not _is_binary(path, b"", claims)
                collected.leave_out(reason.path or path, str(reason), missed=missed)
                collected.gone.append(path)
            except NotADirectoryError:
                collected.leave_out(path, "behind a link")
                collected.gone.append(path)
            except OSError as error:
                missed = not _is_binary(path, b"", claims)
                collected.leave_out(path, f"unreadable ({error.strerror})", missed=missed)
    finally:
        folders.close()
    return collected


def _read(
    folders: Folders,
    path: bytes,
    comparison: Comparison,
    documents: int,
    claims: Claims | None,
    gaps: Gaps | None,
) -> bytes:
    entry = comparison.index.get(path)
    if entry is not None and entry.mode == SUBMODULE:
        if comparison.before(path) == entry:
            raise Unchanged
        raise NotRead("a submodule", missed=True, path=path + b"/")
    if path.endswith(b"/"):
        raise NotRead(_KINDS[stat.S_IFDIR])
    check_name(path)
    *parents, name = path.split(b"/")
    folder = folders.enter(parents)
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=folder)
        comparison.check(path, target)
        why = gaps(path, target) if gaps else ""
        raise NotRead(why or _KINDS[stat.S_IFLNK], missed=bool(why), target=target)
    if not stat.S_ISREG(found.st_mode):
        raise NotRead(_KINDS.get(stat.S_IFMT(found.st_mode), "no regular file"))
    limit = documents if documents and path.lower().endswith(DOCUMENTS) else FILE_LIMIT
    handle = open_regular(os.fsdecode(name), folder)
    content = _read_regular(handle, path, comparison, limit, claims)
    comparison.check(path, content)
    return content if limit > FILE_LIMIT else read_text(path, content, claims)


def read_text(path: bytes, content: bytes, claims: Claims | None) -> bytes:
    """Return the content of a text file, with `claims` as UTF-8. Raise NotRead if it is binary, or
    too large as UTF-8.
    """
    odd = b"\0" in content[:TEXT_WINDOW]
    if odd and (claims is None or _is_binary(path, content[:HEAD], claims)):
        raise NotRead("binary")
    if claims is None:
        return content
    text = to_utf8(content)
    if len(text) > FILE_LIMIT:
        raise NotRead(f"larger than {FILE_LIMIT >> 20} MiB", missed=True)
    return text


def _is_binary(path: bytes, head: bytes, claims: Claims | None) -> bool:
    return not (claims is not None and claims(path)) and is_binary(path, head)


def check_name(path: bytes) -> None:
    """Raise NotRead for a path that leaves its folder, or that fits below no other."""
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
        raise NotRead("a path that leaves the working tree", missed=True)
    if len(path) > PATH_BYTES:
        raise NotRead(f"its path is longer than {PATH_BYTES} bytes", missed=True)
    if len(parts) > PATH_FOLDERS:
        raise NotRead(f"below more than {PATH_FOLDERS} folders", missed=True)
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        raise NotRead("its name is not UTF-8", missed=True) from None


def _read_regular(
    handle: int, path: bytes, comparison: Comparison, limit: int, claims: Claims | None
) -> bytes:
    with os.fdopen(handle, "rb", buffering=0) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise NotRead("no regular file")
        if found.st_size > limit:
            entry = comparison.before(path)
            if entry is not None and found.st_size <= TOTAL_LIMIT:
                digest = comparison.blob(found.st_size)
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                if digest.hexdigest() == entry.hash:
                    raise Unchanged
            binary = _is_binary(path, os.pread(handle, HEAD, 0), claims)
            raise NotRead(f"larger than {limit >> 20} MiB", missed=not binary)
        content = b""
        while len(content) <= limit and (chunk := file.read(CHUNK)):
            content += chunk
    if len(content) > limit:
        raise NotRead("growing while it was read", missed=True)
    return content


class Folders:
    """The folders on the way to a file, opened one by one without following links, and kept open
    for the next file.
    """

    def __init__(self, root: Folder) -> None:
        self._open = [(b"", os.dup(root.handle))]

    def enter(self, parts: list[bytes]) -> int:
        """Return the handle of the folder below the root. Raise NotADirectoryError if a link is on
        the way.
        """
        common = 1
        for part, (name, _) in zip(parts, self._open[1:], strict=False):
            if part != name:
                break
            common += 1
        self._leave(common)
        for part in parts[common - 1 :]:
            self._open.append((part, os.open(part, FOLDER, dir_fd=self._open[-1][1])))
        return self._open[-1][1]

    def close(self) -> None:
        self._leave(0)

    def _leave(self, keep: int) -> None:
        while len(self._open) > keep:
            os.close(self._open.pop()[1])


@dataclass
class Specials:
    """A walk for what is not a file, folder or link, which git does not name if it is not tracked.
    Raw paths; `whole` is False if the walk was cut.
    """

    until: float
    """When the walk must end, on the monotonic clock."""
    paths: list[bytes] = field(default_factory=list)
    whole: bool = True

    def walk(self, folder: Folder, prefix: bytes = b"", depth: int = 0) -> None:
        """Walk a folder and those below it, except repositories of their own."""
        below, found = [], []
        try:
            with folder.entries() as entries:
                for entry in entries:
                    if time.monotonic() > self.until:
                        self.whole = False
                        return
                    if entry.name.lower() == ".git":
                        if prefix:
                            return
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        found.append(prefix + os.fsencode(entry.name))
        except OSError:
            self.whole = False
            return
        self.paths += found
        if below and (depth == PATH_FOLDERS or len(self.paths) >= SPECIALS):
            self.whole = False
            return
        for name in below:
            self._enter(folder, name, prefix, depth)

    def _enter(self, folder: Folder, name: str, prefix: bytes, depth: int) -> None:
        try:
            with folder.enter(name) as found:
                self.walk(found, prefix + os.fsencode(name) + b"/", depth + 1)
        except OSError:
            self.whole = False
