"""Every Python of ours that is on this machine runs the program: all that is locked is installed
for it, the demonstration reviews its example, and tests pass: recorded histories replay, and of the
newest those of what it does otherwise (processes, event loops, types, syntax).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import registries
from ending import end_all_of
from holdfast.deployment.settings import HOME

OURS = ("3.11", "3.12", "3.13", "3.14")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
"""It runs all tests already."""
REPLAYED = ("tests/workflows/test_replay.py",)
"""All that a run's rules do; what is otherwise on one Python and neither on an older nor on a newer
one is hardly in the rest.
"""
USES = "tests/activities/code_review/test_uses.py::test_"
PART = (
    *REPLAYED,
    "tests/activities/asking",
    # What reads Python by the Python that it runs in.
    *(
        f"{USES}{name}"
        for name in (
            "a_name_that_is_gone_is_told_where_another_file_imports_it",
            "a_use_that_may_be_none_is_no_remark",
            "a_call_is_told_if_it_fitted_and_does_not_any_more",
            "a_text_that_python_does_not_know_has_no_syntax",
        )
    ),
    "tests/activities/proofs/test_contained.py",
    "tests/activities/tools",
    "tests/activities/toolset",
    "tests/cli/test_cli.py",
    "tests/cli/test_invocation.py",
    "tests/deployment",
    "tests/intake",
)
"""The rest runs programs of others, or code that runs here as well."""
SECONDS = 1_500
"""For the tests of one Python, which take a tenth of that where nothing else runs."""
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(2 * SECONDS),
]


def find_python(version: str) -> Path | None:
    """Return a Python of this version that the shell, uv or pyenv has."""
    uv = Path(sys.executable).parent / "uv"
    find = (uv, "python", "find", "--no-python-downloads", "--no-project", "--system", version)
    found = [shutil.which(f"python{version}")]
    found += subprocess.run(find, capture_output=True, text=True, check=False).stdout.split()
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found += map(str, sorted(root.glob(f"versions/{version}.*/bin/python")))
    asks = "import sys, venv; print('{}.{}'.format(*sys.version_info))"
    for each in filter(None, found):
        # What the shell has may be a stand-in for one that is not installed.
        done = subprocess.run([each, "-c", asks], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return Path(each)
    return None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, because it becomes part of those of sockets."""
    with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as made:
        yield Path(made)
        end_all_of(Path(made))


@pytest.mark.parametrize("version", [each for each in OURS if each != HERE])
def test_every_python_that_is_here_runs_the_program(version: str, folder: Path) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    programs = folder / "environment" / "bin"
    environment = registries.variables(
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        XDG_STATE_HOME=folder / "state",
    )

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return registries.run(*command, folder=HOME, environment=environment)

    made = run("uv", "venv", "--python", found, folder / "environment")
    assert made.returncode == 0, made.stderr
    install = ("uv", "pip", "install", "--python", programs / "python")
    registries.skip_unless(*install, "typer", folder=folder, environment=environment)
    lock = ("--require-hashes", "--requirements", HOME / "requirements.lock")
    installed = run(*install, *lock)
    assert installed.returncode == 0, installed.stderr

    environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    starter = (programs / "python", HOME / "starter.py")
    try:
        demo = run(*starter, "demo")
        assert demo.returncode == 0, demo.stderr
        assert "`security:B602`" in demo.stdout and "`bugs:F821`" in demo.stdout
    finally:
        run(*starter, "down")

    newer = OURS[OURS.index(version) + 1 :]
    part = REPLAYED if version > HERE and any(map(find_python, newer)) else PART
    options = ("-m", "not long", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider")
    tests = subprocess.Popen(
        [programs / "python", "-m", "pytest", *options, f"--basetemp={folder / 't'}", *part],
        cwd=HOME,
        env={name: each for name, each in os.environ.items() if "PYTEST" not in name} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = tests.communicate(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(tests.pid, signal.SIGKILL)
    assert tests.returncode == 0, f"Python {version}:\n{said[-20_000:]}"
