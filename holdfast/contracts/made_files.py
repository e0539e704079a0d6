"""Files that agents make: their names, their number, their place beside a report. Names and content
come from a model and are untrusted. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.contracts import Finding, MadeFile, Report
from holdfast.text import PLAIN_ID, visible

MOST_FILES = 20
"""Per subtask."""
FILE_BYTES = 4 * 1024 * 1024
ALL_BYTES = 16 * 1024 * 1024
"""Per subtask."""
ENDINGS = (
    "csv", "diff", "json", "jsonl", "log", "md", "patch", "py", "sql", "toml", "tsv", "txt", "yaml",
    "yml",
)  # fmt: skip
"""Endings of files that a browser or desktop shows, and does not run on a click."""
STEM = 80
"""Characters of a name before its first dot."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}(?:\.[A-Za-z0-9_-]{1,20}){1,3}\Z")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z", re.IGNORECASE)
"""Names of devices on some systems, whatever their ending."""


def check_name(name: str) -> str:
    """Return why a file may not have this name; empty if it may."""
    shown = visible(name[:80])
    if not _NAME.match(name) or _DEVICES.match(name.partition(".")[0]):
        return f"{shown!r} is no name of a file here; use letters, digits, - and _, as notes-1.csv"
    if name.rpartition(".")[2].lower() not in ENDINGS:
        return f"{shown!r}: only these are taken: {', '.join(f'.{each}' for each in ENDINGS)}"
    return ""


def check_room(made: Iterable[MadeFile], name: str, size: int) -> str:
    """Return why a subtask that has made these files may not make this one; empty if it may."""
    others = [each for each in made if not same_name(each.name, name)]
    if size > FILE_BYTES:
        return f"{name} has {size:,} bytes; a file has at most {FILE_BYTES:,}"
    if len(others) >= MOST_FILES:
        return f"you have made {MOST_FILES} files; one subtask makes no more"
    if sum(each.size for each in others) + size > ALL_BYTES:
        return f"your files have more than {ALL_BYTES:,} bytes together with {name}"
    return ""


def same_name(one: str, other: str) -> bool:
    """True if two names may be one file: some disks ignore case."""
    return one.lower() == other.lower()


def merge_files(made: tuple[MadeFile, ...], more: Iterable[MadeFile]) -> tuple[MadeFile, ...]:
    """Add files to those made before; a later one of the same name replaces the earlier."""
    for new in more:
        made = (*(each for each in made if not same_name(each.name, new.name)), new)
    return made


def collect_team_files(report: Report) -> tuple[tuple[MadeFile, ...], int]:
    """Return a team's files, named after their subtasks, and how many more there were."""
    found: list[MadeFile] = []
    for finding in report.findings:
        for file in finding.files:
            name = _unique_name(finding.subtask_id, file.name, [each.name for each in found])
            found.append(file.model_copy(update={"name": name}))
    return tuple(found[:MOST_FILES]), max(len(found) - MOST_FILES, 0)


def _unique_name(subtask_id: str, name: str, taken: list[str]) -> str:
    """Prefix a name with that of its subtask, with a number where another file has that name."""
    if check_name(name):
        return name
    before = f"{subtask_id.replace('.', '_')}-" if PLAIN_ID.fullmatch(subtask_id) else ""
    stem, _, endings = name.partition(".")
    for number in range(1, len(taken) + 2):
        after = f"-{number}" if number > 1 else ""
        tried = f"{f'{before}{stem}'[: STEM - len(after)]}{after}.{endings}"
        if not any(same_name(tried, each) for each in taken):
            return tried
    raise AssertionError("of one name more than are taken, one is free")


def place_files(report: Report) -> Iterator[tuple[Finding, MadeFile, str]]:
    """Yield each file of a report's findings with its path below the folder of its files; the path
    is empty for a file that must not be written.
    """
    for finding in report.findings:
        taken = list[str]()
        for file in finding.files:
            good = PLAIN_ID.fullmatch(finding.subtask_id) and not check_name(file.name)
            clear = good and not any(same_name(file.name, each) for each in taken)
            taken.append(file.name)
            yield finding, file, f"{finding.subtask_id}/{file.name}" if clear else ""
