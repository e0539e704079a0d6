"""The measurement of what the engine adds runs, and prints a row for each load and engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.overhead import COLUMNS
from bench.overhead.loads import SMALL
from bench.overhead.rows import ENGINES
from holdfast.deployment.settings import HOME

pytestmark = pytest.mark.long


def test_each_load_is_done_by_each_engine_and_has_its_rows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.overhead", "--small"],
        cwd=HOME,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in done.stdout.splitlines()
        if line.startswith("| ")
    ]
    times = [row for row in rows if len(row) == len(COLUMNS[0])]
    used = [row for row in rows if len(row) == len(COLUMNS[1])]
    assert times[0] == COLUMNS[0] and used[0] == COLUMNS[1]
    assert [row[0] for row in times[1:]] == [f"{load.name}, {load.shown}" for load in SMALL]
    assert [row[:2] for row in used[1:]] == [
        (load.name, each) for load in SMALL for each in ENGINES
    ]
    assert all(float(cell) > 0 for row in times[1:] for cell in row[2:])
    asked = [row[-1] for row in used[1:]]
    assert asked == [f"{load.size + 2}" for load in SMALL for _ in ENGINES]
