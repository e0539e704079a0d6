"""Find out how this program is called here, so that commands we print work as they are."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.deployment import extras
from holdfast.deployment.project import VARIABLE
from holdfast.deployment.settings import HOME, NAME
from holdfast.text import visible

SCRIPT = "starter.py"
OPTION = "--project"
_NAMED = re.compile(rf"(?<![\w/.-]){re.escape(SCRIPT)}(?= [a-z])")

_START_WORKER = "start one: worker.py"


def called(program: str) -> str:
    """Return `.venv/bin/python starter.py` from the project's folder, else whole paths."""
    return shlex.join((_from_here(Path(sys.executable)), _from_here(HOME / program)))


def starter(argument: str, module: str = "") -> str:
    """Return what a person typed for this program, by the process's first argument: the command
    that an installation made, by its name where the shell finds it; a `module` of Python's -m; or
    the file.
    """
    if Path(argument).name == NAME:
        found = shutil.which(NAME)
        own = found is not None and Path(found).resolve() == Path(argument).resolve()
        return NAME if own else shlex.quote(_from_here(Path(argument).absolute()))
    if module == f"{NAME}.__main__":
        return f"{shlex.quote(_from_here(Path(sys.executable)))} -m {NAME}"
    return called(SCRIPT)


def worker() -> str:
    """Return the command of a worker: the file of a checkout, the module of an installation."""
    if extras.INSTALLED:
        return f"{shlex.quote(_from_here(Path(sys.executable)))} -m holdfast.serving"
    return called("worker.py")


def _from_here(path: Path) -> str:
    here = Path.cwd()
    # Below the root folder nothing is shorter without its slash.
    below = path.is_relative_to(here) and here != Path(here.anchor)
    return str(path.relative_to(here)) if below else str(path)


def taken_out(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the folder of `--project FOLDER`, which may stand anywhere before a `--`, and the
    other arguments. None: it is not there; empty: nothing follows it.
    """
    rest = [*arguments]
    for place, value in enumerate(rest):
        name, found, folder = value.partition("=")
        if value == "--":
            break
        if name == OPTION:
            end = place + (1 if found else 2)
            folder = folder if found else "".join(rest[place + 1 : end])
            return folder, [*rest[:place], *rest[end:]]
    return None, rest


def is_project_typed() -> bool:
    """True if this process was called with `--project`."""
    return taken_out(sys.argv[1:])[0] is not None


def _project(arguments: Sequence[str]) -> str:
    """Return the option with the whole path, for commands that find the same project from any
    folder; empty if it was found from the current folder.
    """
    folder = taken_out(arguments)[0] or os.environ.get(VARIABLE, "")
    if not folder:
        return ""
    return f" {OPTION} {shlex.quote(os.path.realpath(os.path.expanduser(folder)))}"


def _module() -> str:
    """Return the module that Python's -m runs; empty where a file is run."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec.name if spec else ""


STARTER = starter(sys.argv[0] if sys.argv else "", _module()) + _project(sys.argv[1:])
WORKER = worker()
PROGRAM = NAME if Path(sys.argv[0] if sys.argv else "").name == NAME else SCRIPT
"""Name of this program in its help."""


def as_called(text: str) -> str:
    """Return a text in which starter and worker are called as they are called here."""
    text = text.replace(_START_WORKER, f"start one: {WORKER}")
    return text if STARTER in text else _NAMED.sub(lambda _: STARTER, text)


def to_type(command: str, run_id: str) -> str:
    """Return what to type for a command on a run, as one line that does nothing else: whoever
    reaches the server names runs as he likes, also for a shell.
    """
    return f"{STARTER} {command} {visible(shlex.quote(run_id))}"
