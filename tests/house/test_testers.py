"""What several testers find is what one would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import testers

FIRST = """
import os

def test_passes():
    print("printed")

def test_fails():
    print("seen", "here")
    assert os.getpid() == 0, "that" + " is wrong"
"""
SECOND = """
import os

def test_ends_its_process():
    os._exit(0)
"""


def run(folder: Path, *files: str, testers_at_once: int = 1) -> subprocess.CompletedProcess[str]:
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    options = ("-p", "testers", "-p", "no:cacheprovider", "--testers", str(testers_at_once))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={folder}", str(folder)],
        env={"PYTHONPATH": str(Path(testers.__file__).parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_failure_is_told_with_what_its_test_printed_and_a_tester_that_is_gone_is_one(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, FIRST, SECOND)
    assert done.returncode == 1
    assert "that is wrong" in done.stdout and "seen here" in done.stdout
    assert "printed" not in done.stdout
    assert "a tester ended by itself in or after test_1.py::test_ends" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_each_file_is_run_once_by_several_testers(tmp_path: Path) -> None:
    done = run(tmp_path, *["def test_passes():\n    pass\n"] * 5, testers_at_once=3)
    assert done.returncode == 0
    assert "5 passed" in done.stdout
