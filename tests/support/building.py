"""A release, built offline by what is installed here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.deployment.settings import HOME


@dataclass(frozen=True)
class Release:
    wheel: Path
    sdist: Path


def build(into: Path, project: Path = HOME) -> Release:
    """Build both from a folder with the project."""
    hatch = (sys.executable, "-m", "hatchling", "build", "--directory", into)
    done = subprocess.run(hatch, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel], [sdist] = into.glob("*.whl"), into.glob("*.tar.gz")
    return Release(wheel, sdist)
