"""A test that fails leaves nothing running that was started for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ending import end_all_of
from holdfast.deployment.settings import HOME

pytestmark = pytest.mark.long

FAILING = """
import subprocess, sys

def test_it_fails_with_a_server_running(tmp_path):
    server = [sys.executable, "-c", "import time; time.sleep(600)", f"--db={tmp_path / 'db'}"]
    started = subprocess.Popen(server, start_new_session=True)
    raise AssertionError(f"pid {started.pid}.")
"""


def test_a_server_of_a_test_that_failed_is_ended_by_its_pid(tmp_path: Path) -> None:
    failing = tmp_path / "test_failing.py"
    failing.write_text(FAILING)
    paths = (HOME, HOME / "tests", HOME / "tests" / "support")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "conftest",
            f"--rootdir={tmp_path}",
            f"--basetemp={tmp_path / 'base'}",
            str(failing),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    pid = int(done.stdout.partition("AssertionError: pid ")[2].partition(".")[0])
    assert done.returncode == 1, done.stdout
    # What is killed is still there until init has taken it.
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(20)


def test_what_belongs_to_another_folder_goes_on(tmp_path: Path) -> None:
    own, beside = tmp_path / "test_0", tmp_path / "test_01"
    program = [sys.executable, "-c", "import time; time.sleep(600)"]
    stays = subprocess.Popen([*program, f"--db={beside / 'db'}"])
    goes = subprocess.Popen([*program, str(own / "db")])
    try:
        assert end_all_of(own) == [goes.pid]
        assert goes.wait(20) and stays.poll() is None
    finally:
        stays.kill()
        stays.wait()
