"""A test that hangs fails alone: it keeps neither its fixtures nor the tests after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.deployment.settings import HOME


@pytest.mark.long
def test_a_test_that_hangs_fails_and_the_next_one_is_run(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "tests/support/hanging.py", "--timeout=2", "-rA"),
            *("-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tmp_path / 't'}"),
        ],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout
    assert "FAILED tests/support/hanging.py::test_a - Failed: Timeout" in ended.stdout
