"""Finds what a deployment keeps on disk and nobody needs any more, and removes it.

    store      what no history that the server has names, once nobody has used it for long
    journal    entries older than the retention of histories
    reports    copies of reports, as old
    edits      plans that somebody changed and never sent, as old
    inputs     content that programs gave instead of paths, as old
    snapshots  repositories on disk for the analysers, after a day; the store has them

Above the bound of the settings, all but the store lose their oldest as well, and the store what
nobody has used for a day. What a run that the server still has can need, open or closed, stays,
whatever the bound says. Blocking, all of it: for a thread.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from holdfast.deployment.settings import Settings
from holdfast.embedded.server import RETENTION
from holdfast.embedded.state import StateDir
from holdfast.storage import DirectoryStore
from holdfast.temporal.connection import Target

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
PARTIAL = "partial-"
"""How the name of a snapshot begins that is being written, or removed."""

BY_RULE = "the bucket's own rule lets what is in it expire"
"""Why no blob of a bucket goes here, and no history is read to find out."""

Needed = frozenset[str] | str
"""Digests of the blobs that kept histories need, or why that cannot be known."""


@dataclass(frozen=True)
class Item:
    """Something on disk that may go, or stay."""

    path: Path
    size: int
    """How many bytes it has, with all that is in it."""
    used: float
    """Last use, in seconds since the epoch."""
    digest: str = ""
    """SHA-256 of a blob; else empty."""


@dataclass(frozen=True)
class Kind:
    """One kind of thing that is kept: what of it may go now, and what stays."""

    name: str
    going: tuple[Item, ...] = ()
    staying: tuple[Item, ...] = ()
    remove: Callable[[Item], bool] = lambda _: False
    why: str = ""
    """Why something stays that could go; empty: nothing does."""

    def remove_all(self) -> tuple[Item, ...]:
        """Remove what may go, and return what went. What was used meanwhile stays."""
        return tuple(item for item in self.going if self.remove(item))


def list_kinds(
    settings: Settings, target: Target, needed: Needed, unused: timedelta, now: float
) -> tuple[Kind, ...]:
    """Return all that a deployment keeps. A store beside a server of one's own may have other
    users, of whom nothing is known: there only time counts, never the bound.
    """
    state, bound = StateDir.of(settings), settings.keep_megabytes * 1_000_000
    place = target.store
    most = bound if target.embedded else math.inf
    journals = [state.journal]
    if isinstance(place, DirectoryStore):
        journals.append(place.root / state.journal.name)
    return (
        inspect_store(place, needed, unused, most, now)
        if isinstance(place, DirectoryStore)
        else Kind("store", why=BY_RULE),
        inspect_journal(journals, bound, now),
        inspect_reports(state.reports, bound, now),
        inspect_edits(state.edits, bound, now),
        inspect_inputs(state.inputs, bound, now),
        inspect_snapshots(state.snapshots, bound, now),
    )


def total_size(items: Iterable[Item]) -> int:
    """Return the bytes of all."""
    return sum(item.size for item in items)


def inspect_store(
    place: DirectoryStore, needed: Needed, unused: timedelta, bound: float, now: float
) -> Kind:
    """Return the store's blobs.

    `needed`: those that a kept history names, or why nobody can tell: then none goes. The others go
    when nobody has put them for as long as `unused`, or above the bound for a day: their run may be
    about to start, or belong to another server that shares the store.
    """
    if isinstance(needed, str):
        return Kind("store", (), tuple(_blobs(place)), why=needed)
    files = _blobs(place)
    free = [each for each in files if each.digest not in needed]
    if total_size(files) > bound:
        unused = min(unused, DAY)
    # What a killed process left half-written is nobody's.
    going = [each for each in free if now - each.used > _patience(each, unused)]
    young = len(free) - len(going)
    why = f"{young} that no run names were used within {_words(unused)}" if young else ""

    def remove(item: Item) -> bool:
        return place.remove(item.path, item.used)

    return _kind("store", files, going, remove, why)


def _blobs(place: DirectoryStore) -> list[Item]:
    return [Item(each.path, each.size, each.used, each.digest) for each in place.files()]


def _patience(item: Item, unused: timedelta) -> float:
    return (unused if item.digest else HOUR).total_seconds()


def inspect_journal(folders: Iterable[Path], bound: int, now: float) -> Kind:
    """Return the entries of journals, the machine's and the one in a store: one is needed as long
    as its call may be tried again, never for a day.
    """
    files = [each for folder in folders for each in _files(folder, ".sent", ".answer", ".draft")]
    return _aged("journal", files, bound, DAY, now)


def inspect_reports(folder: Path, bound: int, now: float) -> Kind:
    """Return copies of reports and of files that agents made; `show` prints what the server has."""
    items = _files(folder, ".md", ".json", ".html", ".csv")
    made = [each for each in _folders(folder) if each.name.endswith(".files")]
    items += [Item(path, _weight(path), _newest(path)) for path in made]
    return _aged("reports", items, bound, HOUR, now)


def inspect_edits(folder: Path, bound: int, now: float) -> Kind:
    """Return changed plans that were not sent, each in a folder of its run; nobody has a copy."""
    items = [Item(path, _weight(path), _newest(path)) for path in _folders(folder)]
    return _aged("edits", items, bound, DAY, now)


def inspect_inputs(folder: Path, bound: int, now: float) -> Kind:
    """Return content that programs gave as inputs, each in a folder of its own: a run that has
    begun has it in the store.
    """
    items = [Item(path, _weight(path), _newest(path)) for path in _folders(folder)]
    return _aged("inputs", items, bound, DAY, now)


def inspect_snapshots(folder: Path, bound: int, now: float) -> Kind:
    """Return repositories on disk. One that a lens opened within the hour stays."""
    items = [Item(path, _weight(path), _used(path)) for path in _folders(folder)]
    going = [each for each in items if now - each.used > _life(each.path).total_seconds()]
    going += _oldest(items, going, bound, now - HOUR.total_seconds())
    return _kind("snapshots", items, going, lambda item: remove_snapshot(item.path))


def find_old_snapshots(folder: Path, now: float | None = None) -> tuple[Path, ...]:
    """Return snapshots that nobody opened for a day, and those that a killed worker left
    half-written.
    """
    now = time.time() if now is None else now
    found = _folders(folder)
    return tuple(path for path in found if now - _used(path) > _life(path).total_seconds())


def _life(path: Path) -> timedelta:
    return HOUR if path.name.startswith(PARTIAL) else DAY


def _aged(name: str, items: list[Item], bound: int, fresh: timedelta, now: float) -> Kind:
    going = [each for each in items if now - each.used > RETENTION.total_seconds()]
    going += _oldest(items, going, bound, now - fresh.total_seconds())
    return _kind(name, items, going, lambda item: _remove(item.path))


def _oldest(items: list[Item], going: list[Item], bound: int, before: float) -> list[Item]:
    """Return what must go besides, the oldest first, for the rest to stay below the bound."""
    rest = sorted(set(items) - set(going), key=lambda each: each.used)
    over = total_size(rest) - bound
    more = []
    for item in rest:
        if over <= 0 or item.used > before:
            break
        more.append(item)
        over -= item.size
    return more


def _kind(
    name: str, items: list[Item], going: list[Item], remove: Callable[[Item], bool], why: str = ""
) -> Kind:
    gone = set(going)
    staying = tuple(each for each in items if each not in gone)
    return Kind(name, tuple(going), staying, remove, why)


def _files(folder: Path, *suffixes: str) -> list[Item]:
    items = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.name.endswith(suffixes) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    items.append(Item(Path(entry.path), status.st_size, status.st_mtime))
    return items


def _folders(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _used(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return time.time()


def _newest(folder: Path) -> float:
    """Return when something in a folder was last changed: a changed file does not change its
    folder.
    """
    with suppress(OSError):
        return max([_used(folder), *(_used(each) for each in folder.iterdir())])
    return time.time()


def _weight(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _remove(path: Path) -> bool:
    with suppress(OSError):
        # A link to a folder is not a folder of ours: rmtree refuses it.
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return True
    return False


def remove_snapshot(path: Path) -> bool:
    """Remove a snapshot, read-only as it is, in one step for whoever looks; True if it went."""
    # Another worker may be removing it, or about to look: it is there whole, or not at all.
    apart = path.with_name(f"{PARTIAL}{secrets.token_hex(8)}")
    try:
        os.rename(path, apart)
    except OSError:
        return False
    for place, _, _ in os.walk(apart):
        os.chmod(place, 0o700)
    shutil.rmtree(apart, ignore_errors=True)
    return True


def _words(span: timedelta) -> str:
    days = span.days
    return f"{days} days" if days > 1 else "a day"
