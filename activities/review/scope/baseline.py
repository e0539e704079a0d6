"""Remarks that are known already: a baseline holds a fingerprint of each, and a review counts them
instead of listing them. One in the repository is a stranger's file: only its fingerprints are read,
so it can hide what it lists and nothing else, and the report says how much.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.activities.review.analysing.lens import Sighting
from holdfast.contracts import Finding, Remark
from holdfast.contracts.remarks import sightings_of
from holdfast.untrusted.folders import read_regular

NAME = ".holdfast-baseline.json"
MOST_BYTES = 1024 * 1024
VERSION = 1
LETTERS = 16
LINE_BYTES = 400
"""Bytes of a line of code that count."""
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


class NoBaseline(ValueError):
    """The file is not a baseline; the message says why, to end a sentence with."""


def read_fingerprints(content: bytes) -> frozenset[str]:
    """Return the fingerprints of a baseline. Raise NoBaseline if it is not one."""
    if len(content) > MOST_BYTES:
        raise NoBaseline(f"it is larger than {MOST_BYTES >> 20} MiB")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise NoBaseline("it is not JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise NoBaseline(f"it is not a baseline of version {VERSION}")
    known = found.get("known")
    if not isinstance(known, dict):
        raise NoBaseline("it lists nothing as known")
    return frozenset(key for key in known if _FINGERPRINT.fullmatch(key))


def path_of(folder: Path, repository: Path) -> Path:
    """Return where the baseline of a repository is kept below a folder."""
    name = hashlib.sha256(os.fsencode(repository.resolve())).hexdigest()[:32]
    return folder / f"{name}.json"


def read_kept(folder: Path | None, repository: Path) -> bytes | None:
    """Return the baseline of a repository that is kept below a folder; None if there is none to
    read. One that is too large is returned, so that its reader can say so.
    """
    if folder is None:
        return None
    with suppress(OSError, RuntimeError, ValueError):
        return read_regular(path_of(folder, repository), 2 * MOST_BYTES)
    return None


def write_baseline(findings: Iterable[Finding], commit: str) -> tuple[bytes, int]:
    """Return the baseline of a review, and how many remarks it knows. Beside each fingerprint stand
    a rule and a file, for people, unless they take too much room.
    """
    known: dict[str, str] = {}
    for finding in findings:
        for remark in sightings_of(finding).remarks:
            if remark.fingerprint:
                known[remark.fingerprint] = f"{remark.lens}:{remark.rule} {remark.file}".strip()
    listed = dict(sorted(known.items(), key=lambda item: (item[1], item[0])))
    document = {"version": VERSION, "commit": commit, "known": listed}
    content = json.dumps(document, indent=1).encode() + b"\n"
    if len(content) > MOST_BYTES:
        content = json.dumps({**document, "known": dict.fromkeys(listed, "")}).encode() + b"\n"
    return content, len(known)


def fingerprint(lens: str, remark: Remark, line: str, occurrence: int) -> str:
    """Return what stays the same when lines move: a hash of lens and rule, file, the line's code
    without its spaces, and which of several equal ones it is. `line` holds no secret.
    """
    parts = (lens, remark.rule or remark.message, remark.file, line, str(occurrence))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:LETTERS]


def locate_lines(root: Path, sightings: Sequence[Sighting]) -> Mapping[int, tuple[str, int]]:
    """Return for each sighting, by its place in the list, the code of its line, and how many equal
    ones of the same rule stand before it in the file. Blocking.
    """
    by_file: dict[str, list[int]] = {}
    for index, each in enumerate(sightings):
        by_file.setdefault(each.file, []).append(index)
    found: dict[int, tuple[str, int]] = {}
    for file, indexes in by_file.items():
        lines = read_lines(root, file)
        before: Counter[tuple[str, str]] = Counter()
        for index in sorted(indexes, key=lambda each: sightings[each].line):
            sighting = sightings[index]
            code = squeeze(lines[sighting.line - 1]) if 0 < sighting.line <= len(lines) else ""
            key = (sighting.rule or sighting.message, code)
            found[index] = (code, before[key])
            before[key] += 1
    return found


def read_lines(root: Path, file: str) -> list[bytes]:
    """Return the lines of a file, as tools count them; none if it cannot be read."""
    if not file:
        return []
    try:
        return (root / file).read_bytes().splitlines()
    except OSError:
        return []


def squeeze(line: bytes) -> str:
    """Return the code of a line without its spaces, cut to a bound."""
    return "".join(line[:LINE_BYTES].decode("utf-8", "replace").split())
