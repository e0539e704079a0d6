"""Files that agents make: what they may be called, how many there may be, and where they stand
beside a report. Their names and their content are a model's, and so nobody's to trust. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.contracts import Finding, MadeFile, Report
from holdfast.text import PLAIN_ID, visible

MOST_FILES = 20
"""Of one subtask."""
FILE_BYTES = 4 * 1024 * 1024
ALL_BYTES = 16 * 1024 * 1024
"""Of one subtask."""
ENDINGS = (
    "csv", "diff", "json", "jsonl", "log", "md", "patch", "py", "sql", "toml", "tsv", "txt", "yaml",
    "yml",
)  # fmt: skip
"""Of files that a browser or a desktop shows, and does not run when somebody clicks on them."""
STEM = 80
"""Letters of a name before its first dot."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}(?:\.[A-Za-z0-9_-]{1,20}){1,3}\Z")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z", re.IGNORECASE)
"""Names that mean no file on some systems, whatever their ending is."""


def check_name(name: str) -> str:
    """Why a file may not be called so; empty: it may."""
    shown = visible(name[:80])
    if not _NAME.match(name) or _DEVICES.match(name.partition(".")[0]):
        return f"{shown!r} is no name of a file here; use letters, digits, - and _, as notes-1.csv"
    if name.rpartition(".")[2].lower() not in ENDINGS:
        return f"{shown!r}: only these are taken: {', '.join(f'.{each}' for each in ENDINGS)}"
    return ""


def check_room(made: Iterable[MadeFile], name: str, size: int) -> str:
    """Why a subtask that has made these files makes no other one; empty: it may."""
    others = [each for each in made if not same_name(each.name, name)]
    if size > FILE_BYTES:
        return f"{name} has {size:,} bytes; a file has at most {FILE_BYTES:,}"
    if len(others) >= MOST_FILES:
        return f"you have made {MOST_FILES} files; one subtask makes no more"
    if sum(each.size for each in others) + size > ALL_BYTES:
        return f"your files have more than {ALL_BYTES:,} bytes together with {name}"
    return ""


def same_name(one: str, other: str) -> bool:
    """Whether two names may be one file: some disks do not tell capitals apart."""
    return one.lower() == other.lower()


def merge_files(made: tuple[MadeFile, ...], more: Iterable[MadeFile]) -> tuple[MadeFile, ...]:
    """The files with what was made after them; a later one of a name takes the place of it."""
    for new in more:
        made = (*(each for each in made if not same_name(each.name, new.name)), new)
    return made


def collect_team_files(report: Report) -> tuple[tuple[MadeFile, ...], int]:
    """What the agents of a team made, each named after its subtask there; and how many more."""
    found: list[MadeFile] = []
    for finding in report.findings:
        for file in finding.files:
            name = _unique_name(finding.subtask_id, file.name, [each.name for each in found])
            found.append(file.model_copy(update={"name": name}))
    return tuple(found[:MOST_FILES]), max(len(found) - MOST_FILES, 0)


def _unique_name(subtask_id: str, name: str, taken: list[str]) -> str:
    """The name below that of its subtask, with a number where another file is called so."""
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
    """Each file of a report's findings with its path below the folder of its files; an empty path
    is that of one which must not be written.
    """
    for finding in report.findings:
        taken = list[str]()
        for file in finding.files:
            good = PLAIN_ID.fullmatch(finding.subtask_id) and not check_name(file.name)
            clear = good and not any(same_name(file.name, each) for each in taken)
            taken.append(file.name)
            yield finding, file, f"{finding.subtask_id}/{file.name}" if clear else ""
