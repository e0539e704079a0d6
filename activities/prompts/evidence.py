"""What verifiers and provers are shown of a remark: the function around its place with what the
change did to it, the lines, rule files and commits that the remark names, and who uses that
function. What looks like a secret, and every line in which a lens saw one, stays on this machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import anyio.to_thread

from holdfast.activities.prompts.functions import Function, find_function, name_of
from holdfast.activities.repositories.manifest import BaseFile, Commit, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.analysing.languages import OTHER, is_code, language_of
from holdfast.activities.review.lenses import SCANS
from holdfast.calls.verify import Shown
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Remark
from holdfast.contracts.policies import EVIDENCE_BYTES
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import Redactor, without_keys

SCAN_SECONDS = 60.0
"""How long the search for secrets may take, if no lens has made it in this process."""
AROUND = 15
"""Lines shown before and after a place that is in no function."""
BEGINNING = 3
"""Lines at the beginning of a function that are shown however long it is."""
CUT = "…"
ROOM_FOR_HEAD = 200
LONGEST_LINE = 300
"""Characters shown of a line."""
LOOKED_AT = 2_000
"""Characters of a line in which secrets are looked for; nothing behind them is shown."""
MESSAGE_LETTERS = 2_000
OF_FUNCTION, OF_CITED, OF_FILES, OF_COMMITS, OF_CALLS, OF_USES = (
    *(3_000, 1_200, 1_600),
    *(1_800, 1_600, 1_600),
)
"""Bytes of each part, of EVIDENCE_BYTES together."""
MOST_CITED, MOST_FILES, MOST_COMMITS, MOST_CALLS, MOST_USES = 4, 2, 2, 3, 5
ABOVE_USE, BELOW_USE = 6, 2
"""Lines shown around a use of a function."""
SEARCHED_BYTES = 32_000_000
"""Text in which uses are looked for: in the file itself first, then in scope, then around."""
SHORTEST_NAME = 3
CITED = re.compile(r"(?<![\w/.-])([\w./+@-]{1,300}\.[A-Za-z0-9]{1,12}):(\d{1,7})\b")
"""A place as tools show it and remarks cite it."""
NAMED = re.compile(r"(?<![\w/])[\w./+@-]{3,300}(?![\w/:])")
"""What may be the name of a file, such as AGENTS.md, .editorconfig or CONTRIBUTING."""
WORD = re.compile(r"[^\W\d_]{4,}")
COMMIT = re.compile(r"(?<![\w./-])([0-9a-f]{7,40})(?![\w/-])")
CALLED = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*)\s*\(|`([A-Za-z_$][\w$]*)`")
"""A name that is called, or that a remark quotes."""
CLASS = re.compile(r"(?<![\w$])[A-Z][\w$]*")
IMPORT = re.compile(
    r"(?:import|from|use|using|require|require_relative|include|#\s*include|export .* from)\b"
    r"|(?:const|let|var) .*\brequire\("
)
"""Matches the beginning of an import at the left edge, in most languages."""
Numbered = tuple[float, str]
COMMON = frozenset({"main", "run", "get", "set", "new", "init", "setup", "test", "constructor"})
"""Names of which a search would find anything but the function itself."""


@dataclass(frozen=True)
class Evidence:
    """Gathers what stored snapshots hold on remarks."""

    snapshots: Snapshots

    async def on(self, material: WorkMaterial) -> tuple[Shown, ...]:
        """Return what is shown of each remark, in their order. Raise BlobLost if the store has lost
        the snapshot.
        """
        pinned = next(each for each in material.inputs if each.kind == "repository")
        snapshot = await self.snapshots.open(pinned.digest)
        redactor = await SCANS.redactor(snapshot, time.monotonic() + SCAN_SECONDS)
        return await anyio.to_thread.run_sync(_show_all, snapshot, material, redactor, pinned.name)


def _show_all(
    snapshot: Snapshot, material: WorkMaterial, redactor: Redactor, name: str
) -> tuple[Shown, ...]:
    withheld = frozenset((each.file, each.line) for each in material.withheld)
    code = Code(snapshot, redactor, withheld, name)
    return tuple(_show(code, remark, n) for n, remark in enumerate(material.remarks, 1))


def _show(code: Code, remark: Remark, number: int) -> Shown:
    file = code.redactor.path(remark.file)
    place = f"{file} line {remark.line}" if remark.line else file
    place += ", where the change deleted the line" * remark.deleted
    # Of a file that was not searched for secrets the lines are shown below, too, without what looks
    # like one.
    said = code.redactor.message(remark.message, MESSAGE_LETTERS, "")
    absent = code.explain_absent(remark)
    if absent or not remark.file:
        return Shown(place, said, "", absent)
    text = remark.message
    code.begin(number)
    parts = [
        (OF_FUNCTION, code.function(remark)),
        (OF_CITED, code.cited(remark, text)),
        (OF_FILES, code.named_files(remark, text)),
        (OF_COMMITS, code.commits(remark, text)),
        (OF_CALLS, code.calls(remark, text)),
        (OF_USES, code.uses(remark)),
    ]
    return Shown(place, said, join_parts(parts, EVIDENCE_BYTES))


def join_parts(parts: Iterable[tuple[int, Iterable[str]]], left: int) -> str:
    """Join parts, each with the bytes that it may have, to a text of at most so many bytes."""
    shown = list[str]()
    for most, lines in parts:
        part = _cut(lines, min(most, left))
        if part:
            shown.append(part)
            left -= len(part.encode()) + 2
    return "\n\n".join(shown)


def _find_imports(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines at the top of a file's scope that import, whatever their
    language, with the lines of one in brackets.
    """
    open_until = ""
    for number, line in enumerate(lines, 1):
        if open_until:
            yield number
            open_until = "" if open_until in line else open_until
        elif IMPORT.match(line):
            yield number
            bracket = next((each for each in "({" if each in line), "")
            close = {"(": ")", "{": "}"}.get(bracket, "")
            open_until = close if close not in line else ""


def _find_classes(lines: Sequence[str]) -> set[str]:
    """Return what may be names of classes in the head of a function."""
    end = next((n for n, line in enumerate(lines, 1) if line.rstrip().endswith((":", "{"))), 1)
    return set(CLASS.findall("\n".join(lines[:end])))


def _may_have_rules(path: str) -> bool:
    return not is_code(path) or language_of(path) == OTHER


def _keep_near(numbered: Sequence[Numbered], most: int, *places: int) -> list[Numbered]:
    """Return as many of the numbered lines as fit: the first ones, which name a function, and those
    nearest to some places.
    """
    first = [number for number, _ in numbered if number == int(number)][:BEGINNING]
    near = sorted(
        numbered,
        key=lambda each: (each[0] not in first, min(abs(each[0] - place) for place in places)),
    )
    kept = list[Numbered]()
    for number, text in near:
        most -= len(text.encode()) + 1
        if most < 0:
            break
        kept.append((number, text))
    return sorted(kept, key=lambda each: each[0])


def _with_gaps(kept: Sequence[Numbered]) -> Iterator[str]:
    """Yield the lines, with a mark where some are left out."""
    last = kept[0][0] if kept else 0.0
    for number, text in kept:
        if number - last > 1:
            yield CUT
        yield text
        last = number


def _cut(lines: Iterable[str], most: int) -> str:
    """Return as many of the lines as fit; nothing if only a heading would."""
    kept, size = list[str](), 0
    for line in lines:
        size += len(line.encode()) + 1
        if size + 2 > most:
            kept.append(CUT)
            break
        kept.append(line)
    return "\n".join(kept) if len([each for each in kept if each != CUT]) > 1 else ""


@dataclass
class Code:
    """Reads the code of one snapshot, each file once."""

    snapshot: Snapshot
    redactor: Redactor
    withheld: frozenset[tuple[str, int]]
    name: str
    """The input's name, below which tools show the files."""
    texts: dict[tuple[bool, str], list[str]] = field(default_factory=dict)
    number: int = 0
    """Number of the remark that is being shown."""
    shown: set[tuple[str, float]] = field(default_factory=set)
    """Lines of the head that stand beside it."""
    told: dict[object, int] = field(default_factory=dict)
    """Number of the remark beside which a function stands."""

    def __post_init__(self) -> None:
        manifest = self.snapshot.manifest
        self.files: dict[str, SnapshotFile] = {
            each.path: each for each in (*manifest.files, *manifest.around)
        }
        self.by_name: dict[str, list[str]] = {}
        for path in map(PurePosixPath, filter(_may_have_rules, self.files)):
            for name in {path.name, path.stem if path.stem.isupper() else path.name}:
                self.by_name.setdefault(name, []).append(str(path))
        self.gone: dict[str, BaseFile] = {each.path: each for each in manifest.deleted}

    def begin(self, number: int) -> None:
        """Begin with the next remark."""
        self.number = number
        self.shown = set()

    # ------------------------------------------------------------ lines

    def lines(self, path: str, *, before: bool = False) -> list[str]:
        """Return the lines of a file of the head, or of the base; none if there is no such file."""
        if (before, path) not in self.texts:
            self.texts[before, path] = self._read(path, before=before)
        return self.texts[before, path]

    def _read(self, path: str, *, before: bool) -> list[str]:
        manifest = self.snapshot.manifest
        known = {each.path for each in manifest.before} if before else self.files
        if path not in known:
            return []
        folder = self.snapshot.before if before else self.snapshot.root
        try:
            text = (folder / path).read_bytes().decode("utf-8-sig", "replace")
        except OSError:
            return []
        text = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        return without_keys(text).split("\n") if text else []

    def line(self, path: str, number: int, mark: str = " ") -> str:
        """Return a line of the head with its number, without secrets."""
        text = self.lines(path)[number - 1][:LOOKED_AT]
        hidden = (path, number) in self.withheld
        shown = REDACTED if hidden else self.redactor.line(text.rstrip(), path, number)
        return f"{number:>5} {mark} {shown[:LONGEST_LINE]}"

    def line_before(self, path: str, number: int) -> str:
        """Return a line of the base that the head does not have, without secrets."""
        text = self.lines(path, before=True)[number - 1][:LOOKED_AT]
        # Its number would be mistaken for one of the head.
        return f"      - {self.redactor.line(text.rstrip(), path, 0)[:LONGEST_LINE]}"

    def show(self, path: str, kept: Sequence[Numbered]) -> list[str]:
        """Return lines of a file with marks where some are left out, and note them as shown."""
        self.shown |= {(path, number) for number, _ in kept}
        return [*_with_gaps(kept)]

    def numbered(self, path: str, first: int, last: int) -> Iterator[Numbered]:
        """Yield lines of the head with their numbers, those that the change added with +, and
        between them those that it deleted, with -, half a line behind the one before.
        """
        file = self.files[path]
        end = len(self.lines(path))
        last = min(last, end)
        added = {
            number
            for _, _, start, count in file.hunks
            for number in range(max(start, first), min(start + count - 1, last) + 1)
        }
        deleted: dict[int, list[str]] = {}
        for was, gone, start, count in file.hunks:
            behind = start - 1 if count else start
            if gone and first - 1 <= behind <= last:
                deleted.setdefault(behind, []).extend(self._deleted(file, was, gone))
        yield from ((first - 0.5, text) for text in deleted.get(first - 1, ()))
        for number in range(max(first, 1), last + 1):
            yield float(number), self.line(path, number, "+" if number in added else " ")
            yield from ((number + 0.5, text) for text in deleted.get(number, ()))

    def _deleted(self, file: SnapshotFile, first: int, count: int) -> Iterator[str]:
        was = file.was or file.path
        end = len(self.lines(was, before=True))
        for number in range(first, min(first + count - 1, end) + 1):
            yield self.line_before(was, number)

    # ------------------------------------------------------------ what is shown

    def explain_absent(self, remark: Remark) -> str:
        """Return why there is no such place; empty if there is. Analysers look at what is there; an
        agent may name anything.
        """
        if not remark.by_agent:
            return ""
        if remark.file in self.gone:
            count = len(self.lines(remark.file, before=True))
        elif remark.file in self.files:
            file = self.files[remark.file]
            # A deleted line is named by its number in the base.
            old = len(self.lines(file.was, before=True)) if file.was else 0
            count = max(len(self.lines(remark.file)), old)
        else:
            return "There is no such file in the repository."
        return "" if 0 <= remark.line <= count + 1 else "The file has no such line."

    def function(self, remark: Remark, most: int = OF_FUNCTION) -> list[str]:
        """Return the function around the place, or the lines around it, with what the change did to
        them. Of a long one, its beginning and what is near.
        """
        path = remark.file
        if path in self.gone:
            return self._gone(remark)
        lines = self.lines(path)
        if not lines:
            return []
        line = min(max(remark.line, 1), len(lines))
        found = find_function(lines, line)
        first, last = (found.first, found.last) if found else (line - AROUND, line + AROUND)
        what = "function or class" if found else "lines"
        head = self._head(f"The {what} around it", "+ added and - deleted")
        numbered = [*self.numbered(path, max(first, 1), last)]
        if (before := self.told.get((path, first, last))) is not None:
            self.shown |= {(path, number) for number, _ in numbered}
            return [head, f"the one that stands beside remark {before}."]
        kept = _keep_near(numbered, most - ROOM_FOR_HEAD, line)
        if len(kept) == len(numbered):
            self.told[path, first, last] = self.number
        return [head, *self.show(path, kept)]

    def _head(self, title: str, marks: str) -> str:
        return f"{title} ({marks} by the change):" if self.snapshot.manifest.base else f"{title}:"

    def _gone(self, remark: Remark) -> list[str]:
        lines = self.lines(remark.file, before=True)
        line = min(max(remark.line, 1), len(lines)) if lines else 0
        found = find_function(lines, line) or Function(max(line - AROUND, 1), line + AROUND)
        numbers = range(found.first, min(found.last, len(lines)) + 1)
        gone = [(float(each), self.line_before(remark.file, each)) for each in numbers]
        end = self.gone[remark.file].end
        head = f"In the change this file was {end}; this stood around the place:"
        return [head, *_with_gaps(_keep_near(gone, OF_FUNCTION - ROOM_FOR_HEAD, line))]

    def imports(self, path: str) -> list[str]:
        """Return what a file of the head imports, and the imports that the change deleted."""
        shown = [self._head("What its file imports", "+ added")]
        for number in _find_imports(self.lines(path)):
            shown += [self.line(path, number, "+" if self._is_added(path, number) else " ")]
        file = self.files.get(path)
        before = self.lines(file.was, before=True) if file and file.was else []
        hunks = file.hunks if file else ()
        gone = [
            number
            for number in _find_imports(before)
            if any(first <= number < first + count for first, count, _, _ in hunks)
        ]
        if file and gone:
            shown.append("Imports that the change deleted or replaced:")
            shown += [self.line_before(file.was, number) for number in gone]
        return shown if len(shown) > 1 else []

    def _is_added(self, path: str, number: int) -> bool:
        hunks = self.files[path].hunks
        return any(first <= number < first + count for _, _, first, count in hunks)

    def cited(self, remark: Remark, text: str) -> list[str]:
        """Return the lines that a remark names as `path:line`, with those around them; not of the
        files with rules, which are shown by themselves.
        """
        shown, left = ["Places that the remark names:"], OF_CITED - ROOM_FOR_HEAD
        others = {*self._named(remark, text)}
        for path, line in self._places(text)[:MOST_CITED]:
            if path in others or (path, line) in self.shown:
                continue
            near = self._near(path, line, left)
            left -= sum(len(each.encode()) + 1 for each in near)
            shown += [f"{self.redactor.path(path)}:", *near] if near else []
        return shown if len(shown) > 1 else []

    def _places(self, text: str) -> list[tuple[str, int]]:
        """Return the places that there are of those that a text names."""
        named = ((self._find(path), int(line)) for path, line in CITED.findall(text))
        there = ((path, line) for path, line in named if 1 <= line <= len(self.lines(path)))
        return [*dict.fromkeys(there)]

    def named_files(self, remark: Remark, text: str) -> list[str]:
        """Return the files with rules, settings or words that the remark names: whole, or what is
        around the places that it names in them, else around the line with most of its words.
        """
        paths, places = self._named(remark, text), self._places(text)
        said = {each.lower() for each in WORD.findall(text)}
        shown = ["Rules and settings that the remark names:"]
        for path in paths:
            lines = self.lines(path)
            alike = [len(said & {each.lower() for each in WORD.findall(line)}) for line in lines]
            best = alike.index(max(alike)) + 1 if lines else 1
            near = [line for known, line in places if known == path] or [best]
            numbered = [*self.numbered(path, 1, len(lines))]
            kept = _keep_near(numbered, OF_FILES // len(paths) - ROOM_FOR_HEAD, *near)
            shown += [f"{self.redactor.path(path)}:", *self.show(path, kept)]
        return shown if len(shown) > 1 else []

    def _named(self, remark: Remark, text: str) -> list[str]:
        """Return the first files with rules, settings or words that a text names."""
        names = dict.fromkeys(each.rstrip(".") for each in NAMED.findall(text))
        paths = dict.fromkeys(filter(None, (self._find_named(each, remark) for each in names)))
        return [*paths][:MOST_FILES]

    def _find_named(self, name: str, remark: Remark) -> str:
        """Return the file of the head that a name means, beside the remark's own: by its path, else
        by its own name, the nearest one above the remark's file.
        """
        if found := self._find(name):
            return found if found != remark.file and _may_have_rules(found) else ""
        above = (
            path
            for path in self.by_name.get(name, ())
            if path != remark.file
            and remark.file.startswith(path.removesuffix(PurePosixPath(path).name))
        )
        return max(above, key=len, default="")

    def _find(self, path: str) -> str:
        """Return the file of the head that is meant, as a tool or a person names it."""
        short = path.removeprefix("./").removeprefix(f"{self.name}/")
        return next((each for each in (path, short) if each in self.files), "")

    def _near(self, path: str, line: int, most: int = OF_USES) -> list[str]:
        """Return the lines around one, as far as they are in its function, of which the first line
        is always shown, and as they fit.
        """
        found = find_function(self.lines(path), line)
        first = max(line - ABOVE_USE, found.first if found else 1, 1)
        last = min(line + BELOW_USE, found.last if found else line + BELOW_USE)
        numbered = [*self.numbered(path, first, last)]
        if found and found.first < first:
            head = self.numbered(path, found.first, found.first)
            numbered = [*(each for each in head if each[0] == found.first), *numbered]
        return self.show(path, _keep_near(numbered, most, line))

    def commits(self, remark: Remark, text: str) -> list[str]:
        """Return the commits that a remark names: what they say, and what they did to its file."""
        shown = ["Commits that the remark names:"]
        for name in [*dict.fromkeys(COMMIT.findall(text))][:MOST_COMMITS]:
            known = [each for each in self.snapshot.manifest.commits if each.id.startswith(name)]
            for commit in known[:1]:
                shown += self._commit(commit, remark.file)
        return shown if len(shown) > 1 else []

    def _commit(self, commit: Commit, path: str) -> Iterator[str]:
        yield f"{commit.id[:12]}: {self.redactor.message(commit.message, MESSAGE_LETTERS, '')}"
        if not commit.patch_bytes:
            return
        try:
            patch = (self.snapshot.patches / f"{commit.id}.diff").read_text("utf-8", "replace")
        except OSError:
            return
        for part in re.split(r"(?m)^(?=diff --git )", patch):
            if f"/{path}" in part.partition("\n")[0] or "diff --git" not in part:
                for line in part.rstrip("\n").split("\n"):
                    yield self.redactor.line(line[:LOOKED_AT], path, 0)[:LONGEST_LINE]

    def calls(self, remark: Remark, text: str, *, whole: bool = False) -> list[str]:
        """Return the functions that the place calls, or its whole function, or the remark names,
        with what the change did to them; of a whole function, the classes of its parameters, too.
        """
        lines, own = self.lines(remark.file), self.around(remark)
        first, last = max(remark.line - 2, 0), remark.line + 1
        classes = set[str]()
        if whole and own:
            first, last = own.first - 1, own.last
            classes = _find_classes(lines[first:last])
        near = "\n".join(lines[first:last])
        names = {one or other for one, other in CALLED.findall(f"{near}\n{text}")} - COMMON
        names |= classes
        word = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
        shown = ["What it calls or names:"]
        found = 0
        for path in self._search_order(remark.file) if names else ():
            for number, line in enumerate(self.lines(path), 1):
                if not word.search(line) or name_of(line) not in names:
                    continue
                function = find_function(self.lines(path), number)
                if function is None or (path == remark.file and function == own):
                    continue
                last = min(function.last, function.first + 2 * AROUND)
                numbered = [*self.numbered(path, function.first, last)]
                if all((path, each) in self.shown for each, _ in numbered):
                    continue
                found += 1
                kept = [
                    each
                    for each in numbered
                    if each[0] <= function.first or (path, each[0]) not in self.shown
                ]
                shown += [f"{self.redactor.path(path)}:", *self.show(path, kept)]
                if found == MOST_CALLS + len(classes):
                    return shown
        return shown if found else []

    def around(self, remark: Remark) -> Function | None:
        """Return the function or class around the place in the head."""
        lines = self.lines(remark.file)
        return find_function(lines, min(max(remark.line, 1), len(lines))) if lines else None

    def nearest_test(self, remark: Remark) -> list[str]:
        """Return the existing test that is nearest: the first that uses the function around the
        place, else the beginning of the file that is named like the remark's.
        """
        tests = [each.path for each in self.files.values() if each.kind == "tests"]
        found, named = self.around(remark), PurePosixPath(remark.file).stem.lower()
        tests.sort(key=lambda path: named not in PurePosixPath(path).stem.lower())
        if found and len(found.name) >= SHORTEST_NAME:
            word = re.compile(rf"(?<![\w$]){re.escape(found.name)}(?![\w$])")
            for path in tests:
                for number, text in enumerate(self.lines(path), 1):
                    test = find_function(self.lines(path), number) if word.search(text) else None
                    if test and (path, test) != (remark.file, found):
                        return self._test(path, test.first, test.last)
        if tests and named in PurePosixPath(tests[0]).stem.lower():
            return self._test(tests[0], 1, 2 * AROUND)
        return []

    def _test(self, path: str, first: int, last: int) -> list[str]:
        lines = self.show(path, [*self.numbered(path, first, last)])
        return [f"The nearest test, in {self.redactor.path(path)}:", *lines]

    def uses(self, remark: Remark) -> list[str]:
        """Return where the function around the place is used by name, tests last."""
        found = self.around(remark)
        if found is None or len(found.name) < SHORTEST_NAME or found.name in COMMON:
            return []
        word = re.compile(rf"(?<![\w$]){re.escape(found.name)}(?![\w$])")
        shown = [f"Where else `{found.name}` stands, beside what is shown already:"]
        uses, places = 0, list[tuple[str, int]]()
        for path in self._search_order(remark.file):
            for number, text in enumerate(self.lines(path), 1):
                here = path == remark.file and found.first <= number <= found.last
                if here or found.name not in text or not word.search(text):
                    continue
                if (path, number) in self.shown:
                    continue
                uses += 1
                inside = find_function(self.lines(path), number)
                # Of a function that uses it often, once is enough.
                place = (path, inside.first if inside else number)
                if len(places) < MOST_USES and place not in places:
                    places.append(place)
                    near = self._near(path, number) if inside else [self.line(path, number)]
                    shown += [f"{self.redactor.path(path)}:", *near]
        if uses > len(places):
            shown.append(f"and {uses - len(places)} more: search_files finds them")
        if not uses:
            shown.append("nowhere else in what was searched")
        return shown

    def _search_order(self, path: str) -> Iterator[str]:
        """Yield the files to search: the file itself, then production code, in scope first."""
        scope = {each.path for each in self.snapshot.manifest.files}
        others = sorted(
            (each for each in self.files.values() if each.path != path),
            key=lambda each: (each.kind != "production", each.path not in scope),
        )
        left = SEARCHED_BYTES
        own = [self.files[path]] if path in self.files else []
        for each in (*own, *others):
            left -= each.size
            if left < 0:
                return
            yield each.path
