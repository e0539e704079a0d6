"""Seeded breakages: a change to a small project of ours that breaks a line which it does not touch,
deletes a check or weakens a test; and clean changes, which break nothing. Each is reviewed as a
change of its own.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from bench.instruments.tables import head, row
from bench.review import SEEDED
from bench.review.believed import SHOWN
from bench.review.labels import HERE
from bench.review.looking import committed, remarks_of
from holdfast.contracts import Remark

FOLDER = HERE / "seeded"
KINDS = SEEDED[1:6]
NEAR = 1
"""Lines between a place and a remark on it: a deletion stands between two."""
AT_ONCE = max(1, (os.cpu_count() or 1) // 2)


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Edit(_Data):
    """A text that stands once in a file, and what stands there then."""

    file: str
    old: str
    new: str


class Seed(_Data):
    """A change. `finds`: by file, how a line begins that is to be remarked; any of them counts."""

    name: str
    kind: str = ""
    moves: dict[str, str] = {}
    adds: dict[str, str] = {}
    edits: tuple[Edit, ...] = ()
    finds: dict[str, str] = {}

    @property
    def files(self) -> set[str]:
        """Those that it changes, and those in which it is to be found."""
        edited = {each.file for each in self.edits}
        return edited.union(self.adds, self.moves, self.moves.values(), self.finds)


class Project(_Data):
    """A small project in one language, and its changes."""

    language: str
    base: dict[str, str]
    breakages: tuple[Seed, ...]
    clean: tuple[Seed, ...]


@dataclass(frozen=True)
class Reviewed:
    """What a review showed of one change."""

    project: Project
    seed: Seed
    found: bool
    """True if a remark is at one of the places."""
    others: tuple[Remark, ...]
    """Those that are shown and at none of the places."""

    @property
    def is_clean(self) -> bool:
        return not self.seed.kind


def projects() -> list[Project]:
    return [
        Project.model_validate(yaml.safe_load(path.read_text("utf-8")))
        for path in sorted(FOLDER.glob("*.yaml"))
    ]


def changed(project: Project, *seeds: Seed) -> dict[str, str]:
    """Return the files after these changes. Raise ValueError if an edit does not fit."""
    files = dict(project.base)
    for seed in seeds:
        files = {seed.moves.get(path, path): text for path, text in files.items()} | seed.adds
        for edit in seed.edits:
            if files[edit.file].count(edit.old) != 1:
                raise ValueError(f"{project.language}, {seed.name}: {edit.old!r} is not there once")
            files[edit.file] = files[edit.file].replace(edit.old, edit.new)
    return files


async def reviewed(project: Project, seed: Seed, lenses: Sequence[str] = ()) -> Reviewed:
    """Review a change by all lenses, or by these."""
    (only,) = await reviewed_together(project, (seed,), lenses)
    return only


async def reviewed_together(
    project: Project, seeds: Sequence[Seed], lenses: Sequence[str] = ()
) -> list[Reviewed]:
    """Review changes of different files as one. Others are remarks at no place of any of them."""
    files = changed(project, *seeds)
    with tempfile.TemporaryDirectory(prefix="bench-seeded-") as folder:
        tree = Path(folder) / "tree"
        _write(tree, project.base)
        committed(tree)
        for path in project.base.keys() - files.keys():
            (tree / path).unlink()
        _write(tree, files)
        remarks = await remarks_of(tree, "HEAD", lenses)
    shown = [each for each in remarks if each.confidence >= SHOWN and not each.summed]
    hits = [[each for each in shown if _is_at(each, _places(files, seed))] for seed in seeds]
    others = tuple(each for each in shown if not any(each in of_one for of_one in hits))
    return [
        Reviewed(project, seed, bool(of_one), others)
        for seed, of_one in zip(seeds, hits, strict=True)
    ]


def together(seeds: Iterable[Seed]) -> list[list[Seed]]:
    """Return changes in groups of which no two concern the same file."""
    groups: list[list[Seed]] = []
    for seed in seeds:
        free = (group for group in groups if not any(each.files & seed.files for each in group))
        group = next(free, None)
        if group is None:
            groups.append(group := [])
        group.append(seed)
    return groups


def _places(files: dict[str, str], seed: Seed) -> dict[str, int]:
    return {path: _line(files[path], begins) for path, begins in seed.finds.items()}


def _write(tree: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _line(text: str, begins: str) -> int:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith(begins):
            return number
    raise ValueError(f"no line begins with {begins!r}")


def _is_at(remark: Remark, places: dict[str, int]) -> bool:
    line = places.get(remark.file)
    return line is not None and abs(remark.line - line) <= NEAR


async def all_reviewed(lenses: Sequence[str] = ()) -> list[Reviewed]:
    """Review every change."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(project: Project, seed: Seed) -> Reviewed:
        async with slots:
            return await reviewed(project, seed, lenses)

    return await asyncio.gather(
        *(one(each, seed) for each in projects() for seed in (*each.breakages, *each.clean))
    )


def table(found: Sequence[Reviewed]) -> str:
    """Return what was found of how many, by language and kind, and the names of the others."""
    languages = list(dict.fromkeys(each.project.language for each in found))
    text = head(SEEDED)
    for language in [*languages, "all"]:
        of = [each for each in found if language in (each.project.language, "all")]
        cells = [_share(each for each in of if each.seed.kind == kind) for kind in KINDS]
        clean = [each for each in of if each.is_clean]
        text += row((language, *cells, len(clean), sum(len(each.others) for each in clean)))
    lines = [f"* missed: {_name(each)}" for each in found if not each.is_clean and not each.found]
    lines += [
        f"* false alarm: {_name(each)}: {remark.file}:{remark.line} {remark.rule}"
        for each in found
        if each.is_clean
        for remark in each.others
    ]
    return "\n".join([text, *lines])


def _share(found: Iterable[Reviewed]) -> str:
    listed = list(found)
    return f"{sum(each.found for each in listed)} of {len(listed)}"


def _name(each: Reviewed) -> str:
    return f"{each.project.language}, {each.seed.kind or 'clean'}: {each.seed.name}"
