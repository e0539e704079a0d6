"""The lenses as tools: every analyser of this package over the snapshot of the run."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

import holdfast.activities.review.analysers
from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.analysing.languages import count_languages, language_of
from holdfast.activities.review.analysing.lens import Analyser, Parsed
from holdfast.activities.review.comparing import Base
from holdfast.activities.review.examination import Examination
from holdfast.activities.review.exploring import explore
from holdfast.activities.review.findings import Findings
from holdfast.activities.review.scope import elsewhere, marks
from holdfast.activities.review.surroundings import CodeAround
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft
from holdfast.contracts.errors import LensFailed
from holdfast.deployment import importing
from holdfast.deployment.packages import of_group
from holdfast.errors import BadSettings
from holdfast.ports import Lens, Store
from holdfast.untrusted.redact import Redactor

SECRETS = "secrets"
KEPT_SCANS = 8
"""Searches whose secrets are remembered: of snapshots, and of files around a change."""
IMPORTANT = ("production", *elsewhere.KINDS)
HEAD_SHARE = 0.7
"""Part of a lens's time for the files as they are; the rest is for what the base has of them."""
MARGIN_SECONDS = 15.0
"""Part of the subtask's time that is kept for reading and returning the result."""


@cache
def analysers() -> dict[str, Analyser]:
    """Return every analyser, by name: the modules of this package that define ANALYSER, and before
    them those that installed packages bring. Raise BadSettings for one of theirs that cannot be
    used.
    """
    found: dict[str, Analyser] = {}
    package = holdfast.activities.review.analysers
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        analyser = getattr(importlib.import_module(module.name), "ANALYSER", None)
        if isinstance(analyser, Analyser):
            found[analyser.name] = analyser
    theirs, flaws = brought_lenses()
    if flaws:
        raise BadSettings("; ".join(flaws))
    return {**found, **{each.name: each for each in theirs}}


@cache
def brought_lenses() -> tuple[tuple[Analyser, ...], tuple[str, ...]]:
    """Return the analysers that installed packages bring, and what is wrong with others."""
    found, flaws = [], []
    for each in of_group("holdfast.lenses"):
        try:
            module = importing.load(partial(importlib.import_module, each.module), each.shown)
        except importing.NotImported as error:
            flaws.append(str(error))
            continue
        analyser = getattr(module, "ANALYSER", None)
        if isinstance(analyser, Analyser):
            found.append(analyser)
        else:
            flaws.append(f"{each.shown}: there is no ANALYSER in it; mend it, or take it away")
    return tuple(found), tuple(flaws)


def check_brought() -> None:
    """Raise BadSettings for a lens of a package that cannot be used."""
    if of_group("holdfast.lenses"):
        analysers()


@cache
def readers() -> dict[str, tuple[str, ...]]:
    """Return the lenses that are for certain languages and can work here, each with its
    languages.
    """
    return {
        name: each.languages
        for name, each in analysers().items()
        if each.languages and not each.lacking and each.explore is None
    }


async def find_idle(store: Store, digest: str) -> dict[str, str]:
    """Return the lenses that could look at nothing of a snapshot, each with what it lacks here;
    empty: no file of it is in a language of theirs, read or not.
    """
    content = await store.get(digest)
    manifest = await anyio.to_thread.run_sync(Manifest.model_validate_json, content)
    found = analysers().values()
    tops = {file.path for file in (*manifest.files, *manifest.around) if "/" not in file.path}
    needed = {
        each.name: (each.languages is None and each.explore is None)
        or any(_finds_files(each, manifest))
        for each in found
        if not each.settings or each.settings & tops
    }
    return {
        each.name: each.lacking if needed.get(each.name) else ""
        for each in found
        if each.lacking or not needed.get(each.name)
    }


def _finds_files(analyser: Analyser, manifest: Manifest) -> Iterator[bool]:
    """Yield for each file, and for each ending of files that were not read, whether it is for the
    lens.
    """
    if analyser.explore is not None:
        files = (*manifest.files, *manifest.before) if manifest.base else ()
        yield from (analyser.reads(file) for file in files)
        return
    yield from (analyser.reads(file) for file in manifest.files)
    reads = analyser.languages or ()
    yield from (language_of(f"file{ending}") in reads for ending in manifest.unread_endings)


def lenses_of(snapshots: Snapshots) -> dict[str, Lens]:
    """Return a lens per analyser, under the analyser's name."""
    return {
        name: partial(_look, analyser, snapshots) for name, analyser in sorted(analysers().items())
    }


@dataclass(frozen=True)
class Seen:
    """What a lens said of the files of a snapshot, and of the base's versions of them."""

    head: Parsed
    base: Base | None = None


class Scans:
    """Searches for secrets once a snapshot for all lenses: what one withholds, none prints."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[str, ...], asyncio.Task[Seen]] = OrderedDict()

    async def of(self, snapshot: Snapshot, deadline: float) -> Seen:
        """Return what the search found in scope. It goes on for the others if one of them is
        cancelled.
        """
        return await self._shared(
            (str(snapshot.root),), partial(_examine, analysers()[SECRETS], snapshot, deadline)
        )

    async def redactor(
        self, snapshot: Snapshot, deadline: float, around: Collection[str] = ()
    ) -> Redactor:
        """Return the redactor of every lens here, which knows the secrets of the base, too. If the
        search failed or has a gap, nothing is quoted; nor of files around the change but those that
        are named here: only they are searched.
        """
        return (await self.redactors(snapshot, deadline, around))[0]

    async def redactors(
        self, snapshot: Snapshot, deadline: float, around: Collection[str] = ()
    ) -> tuple[Redactor, Redactor]:
        """Return the redactors of the head's lines and of the base's."""
        files = [file for file in snapshot.manifest.around if file.path in around]
        places = tuple(file.path for file in files)
        try:
            seen = await self.of(snapshot, deadline)
            search = partial(_search_around, snapshot, files, deadline)
            beside = (
                await self._shared((str(snapshot.root), *places), search)
                if files
                else Seen(Parsed())
            )
        except LensFailed:
            return Redactor(whole=False), Redactor(whole=False)
        base = seen.base.parsed if seen.base else Parsed()
        parts = (seen.head, base, beside.head)
        unread = {file.path for file in snapshot.manifest.around} - {*places}
        head = await anyio.to_thread.run_sync(_redactor, parts, (seen.head, beside.head), unread)
        return head, await anyio.to_thread.run_sync(_redactor, parts, (base,), unread)

    async def _shared(
        self, key: tuple[str, ...], search: Callable[[], Coroutine[None, None, Seen]]
    ) -> Seen:
        scan = self._scans.get(key)
        if scan is None or _is_useless(scan):
            scan = self._scans[key] = asyncio.create_task(search())
        self._scans.move_to_end(key)
        while len(self._scans) > KEPT_SCANS:
            self._scans.popitem(last=False)
        return await asyncio.shield(scan)


async def _search_around(
    snapshot: Snapshot, files: Sequence[SnapshotFile], deadline: float
) -> Seen:
    """Return the secrets of files around a change."""
    unmarked = [()] * len(files)
    return Seen(await _run(analysers()[SECRETS], snapshot.root, files, unmarked, deadline))


def _redactor(
    parts: Sequence[Parsed], shown: Sequence[Parsed], not_searched: Collection[str]
) -> Redactor:
    """Return a redactor of the lines in which `shown` saw secrets, that knows all values."""
    lines: dict[str, set[int]] = {}
    for each in (sighting for part in shown for sighting in part.sightings):
        lines.setdefault(each.file, set()).update(
            range(each.line, max(each.line, each.last_line) + 1)
        )
    # Of what was counted and not named nobody knows the lines.
    unread = [file for part in parts for file in _unsearched(part)]
    unread += [file for part in parts for file, _, _ in part.beyond]
    values = [value for part in parts for value in part.withheld]
    whole = all(part.whole for part in parts)
    return Redactor(values, whole=whole, unread={*unread, *not_searched}, lines=lines)


def _unsearched(part: Parsed) -> tuple[str, ...]:
    return (*part.not_parsed, *part.not_reached, *part.not_quotable)


def _is_useless(scan: asyncio.Task[Seen]) -> bool:
    if scan.done():
        return scan.cancelled() or scan.exception() is not None
    return scan.get_loop() is not asyncio.get_running_loop()


SCANS = Scans()
"""The searches of this process: values of secrets are kept nowhere else."""


async def _look(analyser: Analyser, snapshots: Snapshots, material: WorkMaterial) -> Draft:
    pinned = next((each for each in material.inputs if each.kind == "repository"), None)
    if pinned is None:
        raise LensFailed(f"{analyser.name}: its subtask names no input that is a repository")
    deadline = time.monotonic() + max(material.timeout_seconds - MARGIN_SECONDS, 1.0)
    snapshot = await snapshots.open(pinned.digest)
    if analyser.survey is not None:
        seen = Seen(await anyio.to_thread.run_sync(analyser.survey, snapshot.manifest))
    elif analyser.explore is not None:
        seen = Seen(await explore(analyser, snapshot, deadline))
    elif analyser.name == SECRETS:
        seen = await SCANS.of(snapshot, deadline)
    else:
        seen = await _examine(analyser, snapshot, deadline)
    sighted = {each.file for each in seen.head.sightings}
    sighted |= {use.file for each in seen.head.changed for use in each.uses}
    redactor = await SCANS.redactor(snapshot, deadline, sighted)
    files = _files(analyser, snapshot)
    code = CodeAround(snapshot, redactor)
    languages = count_languages(snapshot.manifest, readers())
    findings = Findings(
        analyser, snapshot.manifest, files, seen.head, redactor, code, languages, seen.base
    )
    return await anyio.to_thread.run_sync(findings.draft)


async def _examine(analyser: Analyser, snapshot: Snapshot, deadline: float) -> Seen:
    """Return what the analyser says of the files, and then of their base, if it saw anything in
    them: of the secrets of the base all values are withheld.
    """
    if analyser.lacking:
        raise LensFailed(f"{analyser.name}: {analyser.lacking}")
    files = _files(analyser, snapshot)
    touched = [file.touched or () for file in files]
    now = time.monotonic()
    share = HEAD_SHARE if snapshot.manifest.before else 1.0
    head = await _run(analyser, snapshot.root, files, touched, now + share * (deadline - now))
    seen = {each.file for each in head.sightings} | {file for file, _, _ in head.beyond}
    was = {file.was for file in files if file.path in seen}
    before = [
        file
        for file in snapshot.manifest.before
        if analyser.reads(file) and (file.path in was or analyser.name == SECRETS)
    ]
    if not before:
        return Seen(head)
    # Whatever its comments suppress was there.
    everywhere = [((1, file.lines),) for file in before]
    paths = tuple(file.path for file in before)
    try:
        base = await _run(analyser, snapshot.before, before, everywhere, deadline)
    except LensFailed:
        base = Parsed(not_parsed=paths, read=len(paths))
    return Seen(head, Base(base, snapshot.before, frozenset(paths)))


async def _run(
    analyser: Analyser,
    root: Path,
    files: Sequence[SnapshotFile],
    unmarked: Sequence[marks.Ranges],
    deadline: float,
) -> Parsed:
    """Return what the analyser says of files below `root`, without the marks in the lines of each
    that are `unmarked`.
    """
    with tempfile.TemporaryDirectory(prefix="unmarked-") as folder:
        roots = await anyio.to_thread.run_sync(_roots, root, files, unmarked, Path(folder))
        paths = [f"{each}/{file.path}" for each, file in zip(roots, files, strict=True)]
        parsed = await Examination(analyser, deadline).look_at(paths)
        for each in (folder, str(root)):
            parsed = await anyio.to_thread.run_sync(_make_relative, parsed, f"{each}/")
    return parsed


class SeenAlone(NamedTuple):
    """What an analyser sees in a file that it reads alone."""

    rule: str
    """As `lens:rule`."""
    what: str
    """The function that it measures, else its message."""
    weight: int = 0


async def look_alone(file: SnapshotFile, root: Path, deadline: float) -> list[SeenAlone]:
    """Return what each analyser that reads a file alone sees in it. Raise LensFailed if one cannot
    look.
    """
    found = []
    for each in analysers().values():
        alone = each.survey is None and each.explore is None
        if not alone or each.lacking or not each.reads(file):
            continue
        parsed = await _run(each, root, [file], [()], deadline)
        found += [
            SeenAlone(f"{each.name}:{seen.rule}", seen.name or seen.message, seen.weight)
            for seen in parsed.sightings
            if not seen.suppressed
        ]
        found += [SeenAlone(f"{each.name}:does not parse", "") for _ in parsed.not_parsed]
    return found


def _roots(
    root: Path, files: Sequence[SnapshotFile], unmarked: Sequence[marks.Ranges], folder: Path
) -> list[str]:
    """Return where each file is read: below `root`, or in a folder without the marks that do not
    count.
    """
    roots = []
    for file, ranges in zip(files, unmarked, strict=True):
        content = (root / file.path).read_bytes() if ranges else b""
        plain, ignored = marks.strip_marks(content, ranges)
        if ignored:
            place = folder / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(plain)
        roots.append(str(folder if ignored else root))
    return roots


def _files(analyser: Analyser, snapshot: Snapshot) -> list[SnapshotFile]:
    """Return the files that are for an analyser, production code first: its time may not suffice
    for all.
    """
    manifest = snapshot.manifest
    reads = (*manifest.files, *manifest.around) if analyser.explore else manifest.files
    files = [file for file in reads if analyser.reads(file)]
    return sorted(files, key=lambda file: IMPORTANT.index(file.kind))


def _make_relative(parsed: Parsed, root: str) -> Parsed:
    return replace(
        parsed,
        sightings=tuple(
            replace(each, file=each.file.removeprefix(root)) for each in parsed.sightings
        ),
        not_parsed=tuple(path.removeprefix(root) for path in parsed.not_parsed),
        not_reached=tuple(path.removeprefix(root) for path in parsed.not_reached),
        not_quotable=tuple(path.removeprefix(root) for path in parsed.not_quotable),
        beyond=tuple((path.removeprefix(root), row, n) for path, row, n in parsed.beyond),
    )
