"""Who uses what a change has changed, across the whole tree: what breaks elsewhere, and checks that
were deleted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import holdfast
from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.review.analysing.languages import language
from holdfast.activities.review.analysing.lens import (
    PYTHON,
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    decode,
    parse_items,
)
from holdfast.contracts import ChangedDefinition, Use
from holdfast.deployment.extras import program
from holdfast.text import pluralize

LANGUAGES = ("Go", "Java", "JavaScript", "Python", "Ruby", "Rust", "TypeScript")
"""Of Rust only checks and tests are compared."""
GRADES = {
    "removed-module": Grade("critical", 85),
    "removed-name": Grade("critical", 85),
    "removed-import": Grade("critical", 85),
    "removed-member": Grade("critical", 85),
    "changed-signature": Grade("critical", 85),
    "changed-signature untyped": Grade("warning", 70),
    "broken-test": Grade("warning", 85),
    "deleted-check": Grade("warning", 70),
    "deleted-check input": Grade("warning", 70),
    "unguarded-handler": Grade("warning", 70),
    "deleted-test": Grade("warning", 70),
    "deleted-assertion": Grade("warning", 70),
    "weakened-assertion": Grade("warning", 70),
    "skipped-test": Grade("warning", 70),
}
# Behind all else on the path: nothing there stands for a module of the library.
START = (
    "import sys; sys.path.append(sys.argv[1]);"
    "from holdfast.activities.review.uses.program import main; main()"
)
PLACE = Path(holdfast.__file__).resolve().parents[1]


def explore(snapshot: Snapshot, seconds: float) -> CommandLine:
    """Return the command that compares the trees."""
    manifest = snapshot.manifest
    before = {file.path: file for file in manifest.before}
    pairs = [
        (file.was if file.was in before else "", file.path, language(file), file.kind, file.hunks)
        for file in (*manifest.files, *filter(_is_renamed, manifest.around))
        if language(file) in LANGUAGES
    ]
    pairs += [
        (file.path, "", language(file), file.kind, ())
        for file in manifest.deleted
        # By a link whoever imports it still finds something.
        if language(file) in LANGUAGES and not file.link
    ]
    told = {
        "root": str(snapshot.root),
        "before_root": str(snapshot.before),
        "head": [_described(file) for file in (*manifest.files, *manifest.around)],
        "before": [_described(file) for file in manifest.before],
        "pairs": pairs,
        "linked": [file.path for file in manifest.before if file.link],
        "seconds": seconds,
        "ast_grep": program("ast-grep"),
    }
    return CommandLine((*PYTHON, "-c", START, str(PLACE)), json.dumps(told).encode())


def _is_renamed(file: SnapshotFile) -> bool:
    return file.was not in ("", file.path)


def _described(file: SnapshotFile) -> tuple[str, str, str]:
    return file.path, language(file), file.kind


def parse(stdout: bytes) -> Parsed:
    printed = decode(stdout, dict)
    parsed = parse_items(stdout)
    return replace(
        parsed,
        sightings=tuple(
            replace(
                each,
                anywhere=True,
                base_line=int(item["base_line"]),
                # What a test no longer holds, or fails by, is production code.
                kind="production" if item["tests"] else None,
            )
            for each, item in zip(parsed.sightings, printed["items"], strict=True)
        ),
        notes=tuple(_notes(printed)),
        changed=tuple(_changed(each) for each in printed["changed"]),
        changed_in_all=int(printed["changed_in_all"]),
        tests={str(path): tuple(map(str, tests)) for path, tests in printed["tests"].items()},
    )


def _notes(printed: dict[str, Any]) -> list[str]:
    notes = []
    if printed["late"]:
        notes.append("the time limit was reached: not all uses of what changed were looked for")
    if printed["not_searched"]:
        many = pluralize(int(printed["not_searched"]), "file")
        notes.append(f"{many} more hold a name that changed, and were not read")
    return notes


def _changed(told: dict[str, Any]) -> ChangedDefinition:
    return ChangedDefinition(
        file=str(told["file"]),
        line=int(told["line"]),
        name=str(told["name"]),
        kind=str(told["kind"]),
        change=str(told["what"]),
        uses=tuple(
            Use(file=str(use["file"]), line=int(use["line"]), sure=bool(use["sure"]))
            for use in told["uses"]
        ),
        uses_in_all=int(told["uses_in_all"]),
    )


ANALYSER = Analyser(
    name="uses",
    looks_for="Go, Java, JavaScript, Python, Ruby, Rust or TypeScript files",
    grades=GRADES,
    languages=LANGUAGES,
    explore=explore,
    parse=parse,
    program="ast-grep",
)
