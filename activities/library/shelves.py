"""Where templates are kept: a file each, in the project's folder, in the state directory, and in
packages.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

from holdfast.activities.catalogue.sources import OWN
from holdfast.activities.library.digests import digest_text
from holdfast.activities.library.matching import Index, Pattern
from holdfast.activities.library.template import (
    FILE_BYTES,
    NAME,
    BadTemplate,
    Template,
    read_template,
    write_template,
)
from holdfast.deployment.packages import of_group
from holdfast.errors import Refused
from holdfast.storage import files
from holdfast.untrusted.folders import read_regular, resolve_path

FOLDER = "templates"
RETIRED = "retired"
"""Folder of those that a person has taken out of use."""
GROUP = "holdfast.templates"
MOST = 10_000
"""Templates of one folder that are read."""
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Shelf:
    """A folder of templates."""

    folder: Path
    source: str = ""
    """Source, to end a sentence with; empty: the state directory."""
    ours: bool = True
    """False of a package's, which nothing here changes."""

    def paths(self) -> list[Path]:
        """Return the files of templates, sorted by name, however many there are."""
        found = (each for each in self.folder.glob("*.yaml") if not each.name.startswith("."))
        return sorted(found)


@dataclass(frozen=True)
class Kept:
    """A template with its place, or the reason why it cannot be used."""

    name: str
    path: Path
    shelf: Shelf
    template: Template | None = None
    digest: str = ""
    """Digest of its file: how runs went with another text says nothing of this one."""
    flaw: str = ""
    pattern: Pattern | None = field(default=None, compare=False, repr=False)

    @property
    def version(self) -> str:
        """What runs are found by that had their plan from it."""
        return f"template {self.name} {self.digest}"


def shelves_for(project: Path | None, state: Path) -> tuple[Shelf, ...]:
    """Return all shelves, the nearest first: the first is the one that is written to."""
    own = (Shelf(project / FOLDER, OWN),) if project else ()
    brought = (
        Shelf(folder, f"from package {each.package}", ours=False)
        for each in of_group(GROUP)
        if (folder := each.folder()) is not None
    )
    return (*own, Shelf(state / FOLDER), *brought)


def read_file(path: Path, shelf: Shelf) -> Kept:
    """Return the template of a file, or why it cannot be used."""
    kept = Kept(path.stem, path, shelf)
    if not re.fullmatch(NAME, kept.name):
        return Kept(kept.name, path, shelf, flaw="a name is 1 to 60 of a-z, 0-9 and '-'")
    try:
        text = read_regular(resolve_path(path), FILE_BYTES).decode("utf-8-sig")
        template = read_template(text)
    except UnicodeDecodeError:
        return Kept(kept.name, path, shelf, flaw="not UTF-8 text")
    except OSError as error:
        return Kept(kept.name, path, shelf, flaw=f"cannot be read: {error.strerror}")
    except BadTemplate as error:
        return Kept(kept.name, path, shelf, flaw=str(error))
    return Kept(kept.name, path, shelf, template, digest_text(text), pattern=Pattern.of(template))


@dataclass
class Shelves:
    """The templates of a deployment, read again where a file is another one than before."""

    shelves: Sequence[Shelf]
    _read: dict[Path, tuple[Stamp, Kept]] = field(default_factory=dict)
    _index: Index[Kept] = field(default_factory=Index)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kept(self) -> tuple[Kept, ...]:
        """Return all templates, the nearest first; of one name the nearest alone. Blocking."""
        with self._lock:
            return self._refresh()

    def index(self) -> Index[Kept]:
        """Return the usable ones, to be searched. Blocking; the index is never changed later."""
        with self._lock:
            self._refresh()
            return self._index

    def find(self, name: str) -> Kept | None:
        """Return the template of a name, usable or not, and read no other; None: there is none."""
        for shelf in self.shelves:
            path = shelf.folder / f"{name}.yaml"
            if re.fullmatch(NAME, name) and os.path.lexists(path):
                return read_file(path, shelf)
        return None

    def names(self) -> list[str]:
        """Return the names of all, read or not."""
        return [path.stem for shelf in self.shelves for path in shelf.paths()]

    def mentions(self, word: str) -> bool:
        """True if a template's file has this word, read as it stands."""
        for shelf in self.shelves:
            for path in islice(shelf.paths(), MOST):
                with suppress(OSError):
                    if word.encode() in read_regular(resolve_path(path), FILE_BYTES):
                        return True
        return False

    def _refresh(self) -> tuple[Kept, ...]:
        now = {path: (stamp, shelf) for path, stamp, shelf in self._stamps()}
        if {path: stamp for path, (stamp, _) in now.items()} != {
            path: stamp for path, (stamp, _) in self._read.items()
        }:
            before = self._read
            self._read = {
                path: before[path]
                if path in before and before[path][0] == stamp
                else (stamp, read_file(path, shelf))
                for path, (stamp, shelf) in now.items()
            }
            self._index = Index()
            for each in _nearest(kept for _, kept in self._read.values()):
                if each.pattern is not None:
                    self._index.add(each.pattern, each)
        return tuple(_nearest(kept for _, kept in self._read.values()))

    def _stamps(self) -> Iterator[tuple[Path, Stamp, Shelf]]:
        for shelf in self.shelves:
            for path in islice(shelf.paths(), MOST):
                try:
                    found = path.stat()
                except OSError:
                    # It is gone, or leads nowhere: reading it says which.
                    yield path, (0, 0, 0), shelf
                    continue
                yield path, (found.st_mtime_ns, found.st_size, found.st_ino), shelf


def _nearest(every: Iterator[Kept]) -> Iterator[Kept]:
    seen = set[str]()
    for each in every:
        if each.name not in seen:
            seen.add(each.name)
            yield each


# ---------------------------------------------------------------- writing


def save(shelf: Shelf, name: str, template: Template) -> Path:
    """Write a new template. Refused if its name is taken, or the shelf is full: of two writers at
    once one wins, and the other is told.
    """
    there = len(shelf.paths())
    if there >= MOST:
        raise Refused(f"{shelf.folder} has {there:,} templates, and no more are read; delete some")
    shelf.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = shelf.folder / f"{name}.yaml"
    content = write_template(template).encode()
    if len(content) > FILE_BYTES:
        raise Refused(f"template {name}: its plan is larger than {FILE_BYTES // 1024} KiB")
    try:
        # Whole under another name first: a reader never sees half of it, and `link` never replaces.
        with files.drafted(path, content) as draft:
            path.hardlink_to(draft)
    except FileExistsError:
        raise Refused(f"there is a template {name} already; give this one another --name") from None
    files.to_disk(shelf.folder)
    return path


def retire(kept: Kept) -> Path:
    """Take a template out of use and keep its file. Refused if it is a package's, or gone."""
    _check_ours(kept)
    folder = kept.path.parent / RETIRED
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in count(1):
        place = folder / (f"{kept.name}-{number}.yaml" if number > 1 else kept.path.name)
        try:
            place.hardlink_to(kept.path)
            kept.path.unlink()
        except FileExistsError:
            continue
        except FileNotFoundError:
            raise _gone(kept) from None
        return place
    raise AssertionError("there is always another number")


def delete(kept: Kept) -> None:
    """Remove a template's file. Refused if it is a package's, or gone."""
    _check_ours(kept)
    try:
        kept.path.unlink()
    except FileNotFoundError:
        raise _gone(kept) from None


def _gone(kept: Kept) -> Refused:
    return Refused(f"template {kept.name} is gone: somebody else retired or deleted it just now")


def _check_ours(kept: Kept) -> None:
    if not kept.shelf.ours:
        raise Refused(
            f"template {kept.name} is {kept.shelf.source}; one of yours by its name hides it"
        )
