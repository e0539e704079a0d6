"""The code of a remark as it is and as it was, for a model that writes a proof of it. Blocking, and
for a thread, but for what parses it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.contracts.policies import PROOF_BYTES
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import Redactor, without_keys

MOST_LINES = 120
"""Lines shown of a function, those nearest to the remark's."""
LONGEST_LINE = 300
LOOKED_AT = 2_000
"""Characters of a line in which secrets are looked for; nothing behind them is shown."""
SHARE = PROOF_BYTES * 2 // 5
"""Bytes of the function as it is, and again as it was; the rest is for names."""
MOST_TESTS = 5


@dataclass(frozen=True)
class Versions:
    """The text of one file in the head, and in the base if that has it."""

    head: str
    base: str | None
    was: str = ""
    """Its path in the base."""


def read_versions(snapshot: Snapshot, file: str) -> Versions:
    """Return both texts. KeyError if the head has no such file."""
    known = {each.path for each in (*snapshot.manifest.files, *snapshot.manifest.around)}
    if file not in known:
        raise KeyError(file)
    was = next((each.path for each in snapshot.manifest.before if each.now == file), None)
    base = None if was is None else _read(snapshot.before / was)
    return Versions(_read(snapshot.path(file)), base, was or "")


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig", "replace")


def show_lines(
    text: str,
    lines: tuple[int, int],
    near: int,
    redactor: Redactor,
    file: str,
    withheld: Collection[int] = (),
) -> str:
    """Return the numbered lines of a function, those nearest to one of them if they are too many;
    empty if the file's code may not be shown.
    """
    if not redactor.quotes(file):
        return ""
    found = without_keys(text).split("\n")
    first, last = max(lines[0], 1), min(lines[1], len(found))
    order = sorted(range(first, last + 1), key=lambda number: abs(number - near))
    shown: dict[int, str] = {}
    left = SHARE
    for number in order[:MOST_LINES]:
        line = found[number - 1][:LOOKED_AT].rstrip("\r")
        said = REDACTED if number in withheld else redactor.message(line, LONGEST_LINE, file)
        shown[number] = f"{number:>5}  {said}"
        left -= len(shown[number].encode()) + 1
        if left < 0:
            del shown[number]
            break
    return "\n".join(shown[number] for number in sorted(shown))


def find_tests(snapshot: Snapshot, file: str) -> list[str]:
    """Return tests that are named like a file, or after it."""
    stem = PurePosixPath(file).stem.lower()
    found = [
        each.path
        for each in (*snapshot.manifest.files, *snapshot.manifest.around)
        if _is_test(each) and stem in PurePosixPath(each.path).stem.lower()
    ]
    return found[:MOST_TESTS]


def _is_test(file: SnapshotFile) -> bool:
    return file.kind == "tests"
