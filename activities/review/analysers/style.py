"""What a change wrote otherwise than the repository's own settings have it."""

from __future__ import annotations

import json
from itertools import islice

from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.review.analysing.lens import (
    PYTHON,
    SCRIPTS,
    Analyser,
    CommandLine,
    Grade,
    parse_items,
)
from holdfast.activities.review.scope.kinds import is_written

SETTINGS = (
    ".editorconfig", "pyproject.toml", "ruff.toml", ".ruff.toml", "setup.cfg", "tox.ini", ".flake8",
)  # fmt: skip
"""Files at the top of a repository; those of the base count."""
MOST_FILES = 400
"""Files of the change that are compared."""
SAMPLE = 60
"""Files of the base that show whether it follows its settings."""
SAMPLE_BYTES = 200_000
GRADES = {"style": Grade("info", 60)}
RULES = (
    "format", "trailing-whitespace", "indent-style", "line-length", "line-end", "final-newline",
)  # fmt: skip


def explore(snapshot: Snapshot, seconds: float) -> CommandLine:
    """Return the command that compares the change with the base's settings."""
    del seconds
    manifest = snapshot.manifest
    before = {file.path for file in manifest.before}
    around = [file for file in manifest.around if _is_small(file)]
    told = {
        "settings": {
            **{f.path: str(snapshot.root / f.path) for f in manifest.around if f.path in SETTINGS},
            **{name: str(snapshot.before / name) for name in SETTINGS if name in before},
        },
        "files": [
            {
                "path": file.path,
                "place": str(snapshot.root / file.path),
                "before": str(snapshot.before / file.was) if file.was in before else "",
                "touched": file.touched,
            }
            for file in islice(filter(_is_small, manifest.files), MOST_FILES)
        ],
        "sample": {f.path: str(snapshot.root / f.path) for f in islice(around, SAMPLE)},
        "ruff": [*PYTHON, "-m", "ruff"],
    }
    return CommandLine((*PYTHON, str(SCRIPTS / "check_style.py")), json.dumps(told).encode())


def _is_small(file: SnapshotFile) -> bool:
    return is_written(file.kind) and file.size <= SAMPLE_BYTES


ANALYSER = Analyser(
    name="style",
    looks_for="files",
    grades=GRADES,
    explore=explore,
    parse=parse_items,
    module="ruff",
    settings=frozenset(SETTINGS),
    summed=True,
    rules=RULES,
)
