"""A user's commands that fetch packages: what they need of the environment, and what if none can
be had.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.deployment.settings import HOME

OURS = re.compile(r"PATH|HOME|LANG|(PIP|UV|SSL)_\w+|(HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)
"""Variables by which an installer finds its registry and what it has kept."""


def variables(**more: str | Path) -> dict[str, str]:
    """Return the environment of an installer, and what else it is given."""
    kept = {name: value for name, value in os.environ.items() if OURS.fullmatch(name)}
    return {**kept, "UV_PYTHON_DOWNLOADS": "never", **{name: str(more[name]) for name in more}}


def run(
    *command: str | Path, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def skip_unless(*command: str | Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Skip the test if a command that fetches a small package fails."""
    done = run(*command, folder=folder, environment=environment)
    if done.returncode:
        why = (done.stderr.strip() or "it says nothing").splitlines()[-1]
        pytest.skip(f"{Path(command[0]).name} can fetch no package here: {why}")


def write_constraints(file: Path) -> Path:
    """Write the versions of requirements.lock: what a user would find is newer one day, and a test
    finds the same every day.
    """
    lock = (HOME / "requirements.lock").read_text(encoding="utf-8")
    locked = re.findall(r"^([\w.-]+==\S+)( ; .*?)? \\$", lock, re.M)
    file.write_text("".join(f"{package}{where}\n" for package, where in locked))
    return file
