"""Real fixes of public repositories, undone on top of a release and reviewed as changes: what the
lenses show without a model, and what the agents of a review would have in sight of each.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict

from bench.instruments.tables import head, row
from bench.review import UNDONE
from bench.review.believed import SHOWN
from bench.review.labels import HERE
from bench.review.looking import GIT, git, remarks_of
from holdfast.contracts import Remark
from holdfast.contracts.errors import BadGoal

T = TypeVar("T")
NEAR = 5
"""Lines between a remark and what was undone, at most."""
_SCRIPT = (
    r"^\s*(?:async |get |set |static |private |export |function )*"
    r"(?!if|for|while|switch)(\w+) ?\(.*\{$"
)
DEFINITIONS = {
    "Python": r"^\s*(?:async )?def (\w+)",
    "Ruby": r"^\s*def (?:self\.)?(\w+[?!]?)",
    "Go": r"^func (?:\([^)]*\) )?(\w+)",
    "Java": r"^\s+(?:(?:public|protected|private|static|final) )+[\w<>\[\], ?.]+ (\w+)\(",
    "JavaScript": _SCRIPT,
    "TypeScript": _SCRIPT,
}


class Fix(BaseModel):
    """A commit that mended a defect in these files, and the tests that came with it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    kind: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


class Repository(BaseModel):
    """A public repository, a release of it, and fixes that are part of that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: str
    language: str
    tag: str
    fixes: tuple[Fix, ...]


@dataclass(frozen=True)
class Case:
    """One fix, undone in a working tree that is compared with the release."""

    repository: Repository
    fix: Fix
    tree: Path
    name: str
    """Stands in the message of the commit that undoes it, and nowhere else."""
    ranges: Mapping[str, tuple[tuple[int, int], ...]]
    """First and last line of each place that was undone, by file."""
    lines: tuple[str, ...]
    """Lines that the change adds or deletes, without their indentation."""
    message: str
    """Subject of the commit that had mended it."""
    within: str
    """Function or method in which it is; empty: in none."""
    callers: tuple[str, ...]
    """Lines that name it, in files of its language that the change did not touch."""

    def is_at(self, remark: Remark) -> bool:
        """True if a remark is about what was undone, by its place."""
        near = self.ranges.get(remark.file, ())
        return any(a - NEAR <= remark.line <= b + NEAR for a, b in near)


@dataclass(frozen=True)
class Looked:
    """What a review without a model said of a case."""

    case: Case
    remarks: Sequence[Remark]
    seconds: float

    @property
    def found(self) -> bool:
        """True if a remark is at the place, however little it is believed."""
        return any(map(self.case.is_at, self.remarks))

    @property
    def shown(self) -> list[Remark]:
        """The remarks that a review lists, wherever they are."""
        return [each for each in self.remarks if each.confidence >= SHOWN and not each.summed]


def listed() -> list[Repository]:
    """Every repository of the measure."""
    content = yaml.safe_load((HERE / "undone.yaml").read_text())
    return [Repository.model_validate(each) for each in content]


def repositories(folder: Path) -> list[Repository]:
    """The repositories of the measure that a folder has. Raise BadGoal if it has none."""
    known = listed()
    there = [each for each in known if _clone(folder, each) is not None]
    if not there:
        names = ", ".join(each.repository for each in known)
        raise BadGoal(f"no clone in {folder}; clone some of them there, as OWNER/NAME: {names}")
    return there


def _clone(folder: Path, repository: Repository) -> Path | None:
    owner, _, name = repository.repository.partition("/")
    places = (
        folder / owner / name,
        folder / f"{owner}+{name}",
        folder / f"{owner}+{name}" / "repo",
    )
    return next((each for each in places if _is_repository(each)), None)


def _is_repository(place: Path) -> bool:
    return (place / ".git").exists() or (place / "objects").is_dir()


def cases(folder: Path, scratch: Path, *, keep: bool = False) -> Iterator[Case]:
    """Each fix of the repositories in a folder, undone in a tree of its own below `scratch`, which
    is taken away before the next one unless all are to `keep`. Blocking.
    """
    number = 0
    for repository in repositories(folder):
        source = _clone(folder, repository)
        assert source is not None
        for fix in repository.fixes:
            number += 1
            tree = scratch / f"undone-{number:03d}"
            yield undo(source, repository, fix, tree)
            if not keep:
                shutil.rmtree(tree)


def undo(source: Path, repository: Repository, fix: Fix, tree: Path) -> Case:
    """Return a fix undone in a new working tree on top of the release of its repository."""
    git(source.parent, "clone", "-q", "--no-checkout", str(source), str(tree))
    git(tree, "checkout", "-q", "-B", "review", repository.tag)
    patch = said(tree, "diff", "--no-renames", fix.commit, f"{fix.commit}^", "--", *fix.files)
    subprocess.run([GIT, "apply", "-"], cwd=tree, input=patch.encode(), check=True)
    git(tree, "commit", "-q", "-a", "-m", f"Tidy up a little ({tree.name})")
    diff = said(tree, "diff", "-U0", "--no-renames", repository.tag, "HEAD")
    ranges, lines = _read_diff(diff)
    within = _enclosing(tree, repository.language, ranges)
    return Case(
        repository=repository,
        fix=fix,
        tree=tree,
        name=tree.name,
        ranges=ranges,
        lines=lines,
        message=said(tree, "log", "-1", "--format=%s", fix.commit).strip(),
        within=within,
        callers=tuple(_callers(tree, within, ranges)) if within else (),
    )


def said(tree: Path, *arguments: str, check: bool = True) -> str:
    """Return what git prints in a folder."""
    done = subprocess.run([GIT, *arguments], cwd=tree, check=check, capture_output=True)
    return done.stdout.decode("utf-8", "replace")


def _read_diff(diff: str) -> tuple[dict[str, tuple[tuple[int, int], ...]], tuple[str, ...]]:
    ranges: dict[str, tuple[tuple[int, int], ...]] = {}
    lines: list[str] = []
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            file = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            ranges[file] = (*ranges.get(file, ()), (first, first + max(count - 1, 0)))
        elif line[:1] in "+-" and not line.startswith("--- ") and len(line[1:].strip()) > 3:
            lines.append(line[1:].strip())
    return ranges, tuple(lines)


def _enclosing(tree: Path, language: str, ranges: Mapping[str, tuple[tuple[int, int], ...]]) -> str:
    pattern = re.compile(DEFINITIONS[language])
    for file, places in ranges.items():
        above = (tree / file).read_text("utf-8", "replace").splitlines()[: places[0][0]]
        found = (match for line in reversed(above) if (match := pattern.match(line)))
        if match := next(found, None):
            return match[1]
    return ""


def _callers(tree: Path, name: str, changed: Collection[str]) -> Iterator[str]:
    endings = {Path(each).suffix for each in changed}
    listed = said(tree, "grep", "-n", "-w", "-F", "-I", name, "HEAD", check=False)
    for line in listed.splitlines():
        _, file, _, text = line.split(":", 3)
        if Path(file).suffix in endings and file not in changed:
            yield text.strip()


async def looked(folder: Path) -> list[Looked]:
    """What a review without a model says of each case."""
    found: list[Looked] = []
    with tempfile.TemporaryDirectory(prefix="bench-undone-") as scratch:
        for case in cases(folder, Path(scratch)):
            began = time.monotonic()
            remarks = await remarks_of(case.tree, base=case.repository.tag)
            found.append(Looked(case, remarks, time.monotonic() - began))
    return found


def by_language(
    rows: Sequence[T],
    language: Callable[[T], str],
    cells: Callable[[Sequence[T]], Sequence[object]],
) -> Iterator[str]:
    """Yield a row of a table for each language, and one for all."""
    for name in (*dict.fromkeys(map(language, rows)), "all"):
        of = [each for each in rows if name in ("all", language(each))]
        yield row([name, len(of), *cells(of)])


def table(found: Sequence[Looked]) -> str:
    """What was found, by language, and each of the remarks."""
    rows = by_language(found, lambda each: each.case.repository.language, _cells)
    told = [f"* {_describe(each)}\n" for each in found if each.found or each.shown]
    return "".join([head(UNDONE), *rows, "\n", *told])


def _cells(listed: Sequence[Looked]) -> Sequence[object]:
    at = [each for each in listed if each.found]
    shown = [each for each in at if any(map(each.case.is_at, each.shown))]
    elsewhere = sum(not each.case.is_at(r) for each in listed for r in each.shown)
    seconds = sum(each.seconds for each in listed) / len(listed)
    return len(at), len(shown), elsewhere, f"{seconds:.1f}"


def _describe(looked: Looked) -> str:
    case = looked.case
    said = [*looked.shown, *(r for r in looked.remarks if case.is_at(r) and r not in looked.shown)]
    places = "; ".join(
        f"{r.file}:{r.line} {r.lens}:{r.rule} {r.severity} {r.confidence}" for r in said[:5]
    )
    return f"{case.repository.repository} {case.fix.commit[:10]} ({case.fix.kind}): {places}"
