"""What an analyser is, as data: a program of ours or of others, how to read what it prints, and how
far each kind of sighting is to be believed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.review.analysing.languages import language, language_of
from holdfast.contracts import ChangedDefinition, FileKind, Severity
from holdfast.deployment.extras import has_module, needs, program

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PYTHON = (sys.executable, "-I", "-X", "utf8")
"""Isolated: no variables, no user packages, and neither the working directory nor a script's folder
to import from.
"""


@dataclass(frozen=True)
class Grade:
    """Severity of a kind of sighting, and its confidence (0–100)."""

    severity: Severity
    confidence: int
    change: Grade | None = None
    """Grade of what a change has just brought, where labelled changes say another one: what was
    released has lost its worst defects.
    """


Beyond = tuple[str, str, int]
SYNTAX = "invalid-syntax"
UNKNOWN = Grade("warning", 30)
"""Grade of a rule that no table knows: it is counted, and not shown by default."""


@dataclass(frozen=True)
class Sighting:
    """One thing that a tool reports. `grade` is its row of the analyser's table; `file` is a path
    as the tool was given it.
    """

    file: str
    line: int
    rule: str
    message: str
    grade: str
    suggestion: str = ""
    column: int = 0
    """1-based, in characters; 0: not known."""
    first_line: int = 0
    last_line: int = 0
    """Beginning and end of what it is about, if that is more than one line."""
    weight: int = 0
    """Amount, if the tool measures one."""
    name: str = ""
    """The function that the tool measures; empty: it is about the code at its place."""
    suppressed: bool = False
    in_comment: bool = False
    """True if it stands in a comment, as far as the tool tells."""
    anywhere: bool = False
    """True if it counts in a file in scope even on a line that was not touched."""
    base_line: int = 0
    """The first line of the base that it is about, if the change deleted that one."""
    kind: FileKind | None = None
    """Kind of code that it is about; None: that of its file."""


@dataclass(frozen=True)
class Parsed:
    """Result of one run of a tool. `read`: how many files it tried, including `not_parsed`; None:
    all it was given.
    """

    sightings: tuple[Sighting, ...] = ()
    not_parsed: tuple[str, ...] = ()
    read: int | None = None
    notes: tuple[str, ...] = ()
    beyond: tuple[Beyond, ...] = ()
    """File, row of the table, and how many sightings of it are not among the sightings."""
    withheld: tuple[str, ...] = ()
    """Values of secrets, for the redactor of every lens: they stay in this process."""
    whole: bool = True
    """True if these are all the values there are."""
    not_reached: tuple[str, ...] = ()
    """Files that were not looked at before the time limit; not among those `read`."""
    not_quotable: tuple[str, ...] = ()
    """Files in which a secret may be that was not seen: in lines that are too long for all
    detectors.
    """
    changed: tuple[ChangedDefinition, ...] = ()
    """Of a lens that looks for who uses what; without the code at the uses."""
    changed_in_all: int = 0
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The tests of changed files, by path."""


@dataclass(frozen=True)
class CommandLine:
    """The command to run; `stdin` is fed to it."""

    arguments: tuple[str, ...]
    stdin: bytes = b""


@dataclass(frozen=True)
class Analyser:
    """A lens as data: `command` and `parse` (a tool over files), `explore` and `parse` (a program
    over both trees of a change), or `survey` (of the manifest).
    """

    name: str
    looks_for: str
    """Completes the sentence "nothing to look at: no …"."""
    grades: Mapping[str, Grade]
    languages: tuple[str, ...] | None = None
    """Languages whose files are for this tool, by their names in `languages.yaml`; None: every
    file.
    """
    by_ending: bool = False
    """True if the tool itself goes by a file's name, and takes no script without an ending."""
    command: Callable[[Sequence[str], bool], CommandLine] | None = None
    """Return the command over absolute paths; the flag says whether suppressions are honoured."""
    parse: Callable[[bytes], Parsed] | None = None
    """Read stdout. Raise ValueError if it is not what the tool prints."""
    survey: Callable[[Manifest], Parsed] | None = None
    explore: Callable[[Snapshot, float], CommandLine] | None = None
    """Return the command over both trees of a change, which has this many seconds."""
    program: str = ""
    """The program of this environment that it runs; empty: Python alone."""
    module: str = ""
    """The module of a library that it runs by Python; empty: it needs none."""
    extra: str = "review"
    """The extra of this package that brings either, or somebody else's package."""
    marker: re.Pattern[bytes] | None = None
    """Files that hold it are looked at a second time without honouring suppressions, to count what
    is suppressed. None: the tool reports suppressed sightings itself.
    """
    settings: frozenset[str] = frozenset()
    """Files at the top of a repository without one of which it has nothing to look at."""
    summed: bool = False
    """True if what it sees is told in a paragraph, and not remark by remark."""
    reads_all: bool = False
    """True if what its parser cannot read is an error in the language as it is today: other tools
    are stricter, or older, than the language.
    """
    rules: tuple[str, ...] = ()
    """The names of its rules, if its table's rows do not begin with them."""

    @property
    def lacking(self) -> str:
        """Return why it cannot look at anything here; empty: it can."""
        runs = not self.program or Path(program(self.program)).is_file()
        loads = not self.module or has_module(self.module)
        return "" if runs and loads else f"it {needs(self.extra)}"

    def reads(self, file: SnapshotFile) -> bool:
        """True if a file is one for this tool."""
        if self.languages is None:
            return True
        told_by = language_of(file.path) if self.by_ending else language(file)
        return told_by in self.languages

    def grade(self, key: str, *, change: bool = False) -> Grade:
        """Return the row for a key, or for the longest beginning of it that the table has;
        `change`: of what is new since a base.
        """
        for length in range(len(key), 0, -1):
            if key[:length] in self.grades:
                row = self.grades[key[:length]]
                return (row.change if change else None) or row
        return UNKNOWN


def script(name: str, files: Sequence[str], *first: str) -> CommandLine:
    """Return the command of our own script over files, which it reads from stdin, separated by NUL,
    after `first`.
    """
    stdin = "\0".join((*first, *files)).encode("utf-8", "surrogateescape")
    return CommandLine((*PYTHON, str(SCRIPTS / name)), stdin)


def sift_command(kind: str, *command: str) -> CommandLine:
    """Return the command of a tool below the script that cuts what it says, by the tool's kind."""
    return CommandLine((*PYTHON, str(SCRIPTS / "sift.py"), kind, *command))


def parse_beyond(printed: dict[str, Any], key: Callable[[str], str] = str) -> tuple[Beyond, ...]:
    """Read what the script counted and did not hand on; `key` makes a row of the table of a
    rule.
    """
    return tuple((str(file), key(str(rule)), int(count)) for file, rule, count in printed["beyond"])


def parse_items(stdout: bytes) -> Parsed:
    """Read what a script prints: `items`, `errors`, `beyond` and, if it does not read every file,
    how many it `read`. An item's rule, or its `scale`, is a row of the table. The search for
    secrets adds their `values`, and whether these are the `whole` of them.
    """
    printed = decode(stdout, dict)
    sightings = tuple(
        Sighting(
            file=str(item["file"]),
            line=int(item["line"]),
            first_line=int(item.get("first_line") or 0),
            last_line=int(item.get("last_line") or 0),
            rule=str(item["rule"]),
            message=str(item["message"]),
            column=int(item.get("column") or 0),
            grade=str(item.get("scale") or item["rule"]),
            suggestion=str(item.get("suggestion") or ""),
            weight=int(item.get("weight") or 0),
            name=str(item.get("name") or ""),
            suppressed=bool(item.get("suppressed")),
            in_comment=bool(item.get("in_comment")),
            anywhere=item["rule"] == SYNTAX,
        )
        for item in printed["items"]
    )
    return Parsed(
        sightings,
        tuple(map(str, printed["errors"])),
        printed.get("read"),
        beyond=parse_beyond(printed),
        withheld=tuple(map(str, printed.get("values", ()))),
        whole=bool(printed.get("whole", True)),
        not_quotable=tuple(map(str, printed.get("not_quotable", ()))),
    )


def decode(stdout: bytes, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """Return the JSON that a tool printed. Raise ValueError if it is something else."""
    value = json.loads(stdout)
    if not isinstance(value, kind):
        raise ValueError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value
