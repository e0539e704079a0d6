"""The lenses as tools: every analyser of this package over the snapshot of the run."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import anyio.to_thread

import holdfast.activities.review.analysers
from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.analysing.languages import count_languages, language_of
from holdfast.activities.review.analysing.lens import Analyser, Parsed
from holdfast.activities.review.examination import Examination
from holdfast.activities.review.findings import Findings
from holdfast.activities.review.scope import marks
from holdfast.activities.review.surroundings import CodeAround
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft
from holdfast.contracts.errors import LensFailed
from holdfast.deployment import importing
from holdfast.deployment.packages import of_group
from holdfast.deployment.project import BadSettings
from holdfast.ports import Lens, Store
from holdfast.untrusted.redact import Redactor

SECRETS = "secrets"
KEPT_SCANS = 4
"""Snapshots whose secrets are remembered."""
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
        if each.languages and not each.lacking
    }


async def find_idle(store: Store, digest: str) -> dict[str, str]:
    """Return the lenses that could look at nothing of a snapshot, each with what it lacks here;
    empty: no file of it is in a language of theirs, read or not.
    """
    content = await store.get(digest)
    manifest = await anyio.to_thread.run_sync(Manifest.model_validate_json, content)
    found = analysers().values()
    needed = {
        each.name: each.languages is None or any(_finds_files(each, manifest)) for each in found
    }
    return {
        each.name: each.lacking if needed[each.name] else ""
        for each in found
        if each.lacking or not needed[each.name]
    }


def _finds_files(analyser: Analyser, manifest: Manifest) -> Iterator[bool]:
    """Yield for each file, and for each ending of files that were not read, whether it is for the
    lens.
    """
    yield from (analyser.reads(file) for file in manifest.files)
    reads = analyser.languages or ()
    yield from (language_of(f"file{ending}") in reads for ending in manifest.unread_endings)


def lenses_of(snapshots: Snapshots) -> dict[str, Lens]:
    """Return a lens per analyser, under the analyser's name."""
    return {
        name: partial(_look, analyser, snapshots) for name, analyser in sorted(analysers().items())
    }


class Scans:
    """Searches for secrets once a snapshot for all lenses: what one withholds, none prints."""

    def __init__(self) -> None:
        self._scans: OrderedDict[str, asyncio.Task[Parsed]] = OrderedDict()

    async def of(self, snapshot: Snapshot, deadline: float) -> Parsed:
        """Return what the search found. It goes on for the others if one of them is cancelled."""
        key = str(snapshot.root)
        scan = self._scans.get(key)
        if scan is None or _is_useless(scan):
            examined = _examine(analysers()[SECRETS], snapshot, deadline)
            scan = self._scans[key] = asyncio.create_task(examined)
        self._scans.move_to_end(key)
        while len(self._scans) > KEPT_SCANS:
            self._scans.popitem(last=False)
        return await asyncio.shield(scan)

    async def redactor(self, snapshot: Snapshot, deadline: float) -> Redactor:
        """Return the redactor of every lens here. If the search failed or has a gap, nothing is
        quoted.
        """
        try:
            parsed = await self.of(snapshot, deadline)
        except LensFailed:
            return Redactor(whole=False)
        return await anyio.to_thread.run_sync(_redactor, parsed)


def _redactor(parsed: Parsed) -> Redactor:
    lines: dict[str, set[int]] = {}
    for each in parsed.sightings:
        lines.setdefault(each.file, set()).add(each.line)
    # Of what was counted and not named nobody knows the lines.
    unread = (*parsed.not_parsed, *(file for file, _, _ in parsed.beyond))
    return Redactor(parsed.withheld, whole=parsed.whole, unread=unread, lines=lines)


def _is_useless(scan: asyncio.Task[Parsed]) -> bool:
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
        parsed = await anyio.to_thread.run_sync(analyser.survey, snapshot.manifest)
    elif analyser.name == SECRETS:
        parsed = await SCANS.of(snapshot, deadline)
    else:
        parsed = await _examine(analyser, snapshot, deadline)
    redactor = await SCANS.redactor(snapshot, deadline)
    files = _files(analyser, snapshot)
    code = CodeAround(snapshot, redactor)
    languages = count_languages(snapshot.manifest, readers())
    findings = Findings(analyser, snapshot.manifest, files, parsed, redactor, code, languages)
    return await anyio.to_thread.run_sync(findings.draft)


async def _examine(analyser: Analyser, snapshot: Snapshot, deadline: float) -> Parsed:
    if analyser.lacking:
        raise LensFailed(f"{analyser.name}: {analyser.lacking}")
    files = _files(analyser, snapshot)
    with tempfile.TemporaryDirectory(prefix="unmarked-") as folder:
        roots = await anyio.to_thread.run_sync(_roots, snapshot, files, Path(folder))
        paths = [f"{root}/{file.path}" for root, file in zip(roots, files, strict=True)]
        parsed = await Examination(analyser, deadline).look_at(paths)
        for root in (folder, str(snapshot.root)):
            parsed = await anyio.to_thread.run_sync(_make_relative, parsed, f"{root}/")
    return parsed


def _roots(snapshot: Snapshot, files: Sequence[SnapshotFile], folder: Path) -> list[str]:
    """Return where each file is read: in the snapshot, or in a folder without the marks that the
    change itself has brought.
    """
    roots = []
    for file in files:
        content = snapshot.path(file.path).read_bytes() if file.touched else b""
        plain, ignored = marks.strip_marks(content, file.touched or ())
        if ignored:
            place = folder / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(plain)
        roots.append(str(folder if ignored else snapshot.root))
    return roots


def _files(analyser: Analyser, snapshot: Snapshot) -> list[SnapshotFile]:
    return [file for file in snapshot.manifest.files if analyser.reads(file)]


def _make_relative(parsed: Parsed, root: str) -> Parsed:
    return replace(
        parsed,
        sightings=tuple(
            replace(each, file=each.file.removeprefix(root)) for each in parsed.sightings
        ),
        not_parsed=tuple(path.removeprefix(root) for path in parsed.not_parsed),
    )
