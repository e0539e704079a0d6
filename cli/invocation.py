"""How this program is called from here, so that what a person is told to type works as it is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from deployment.settings import HOME
from orchestrator.text import visible


def called(program: str) -> str:
    """`.venv/bin/python starter.py` from the project's folder, whole paths from elsewhere."""
    return shlex.join((_from_here(Path(sys.executable)), _from_here(HOME / program)))


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


STARTER = called("starter.py")
WORKER = called("worker.py")


def to_type(command: str, run_id: str) -> str:
    """What to type for a command on a run, as one line that does nothing else: whoever reaches the
    server names runs as he likes, also for a shell.
    """
    return f"{STARTER} {command} {visible(shlex.quote(run_id))}"
