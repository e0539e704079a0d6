"""`replay`: run recorded histories against today's workflow code, strictly.

Each in a process of its own: a file that is not a history can crash or hang Temporal's native part.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.screen.streams import say
from holdfast.cli.shared.replayed import Verdict
from holdfast.deployment.settings import HOME
from holdfast.text import for_terminal
from holdfast.untrusted.process import ProgramStopped
from holdfast.untrusted.process import run as run_program

SECONDS = 180.0
"""How long one history may take: some hundred times what an ordinary run's takes."""


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Histories from `export`.")
    ],
) -> int:
    """Check that today's code still takes the decisions that recorded runs took."""
    return asyncio.run(run(files))


async def run(files: list[Path], seconds: float = SECONDS) -> int:
    """Replay each history; return 1 if any differs or does not end. Exit for a file that is no
    history.
    """
    code = Code.COMPLETE
    for file in files:
        # `isfile` takes whatever can be typed, a name that is too long and a link to itself, too.
        if not os.path.isfile(file):
            raise Exit(f"there is no file {str(file)[:200]!r}; `export ID --out FILE` writes one")
    for file in files:
        verdict = await judge(file, seconds)
        if verdict.refused:
            raise Exit(verdict.refused)
        if verdict.problems:
            code = Code.FAILED
            count = len(verdict.problems)
            say(f"✗ {file}: {count} difference{'s' * (count != 1)}", "bold red")
            for problem in verdict.problems:
                say(f"    {problem}")
        else:
            say(f"✓ {file}: the same decisions", "bold")
    return code


async def judge(file: Path, seconds: float) -> Verdict:
    """Return the verdict of a child process on a history. If it says nothing, that is no
    success.
    """
    try:
        ended = await run_program(
            [sys.executable, "-m", "holdfast.cli.shared.replayed", str(file.absolute())],
            folder=HOME,
            environment=os.environ,
            seconds=seconds,
        )
    except ProgramStopped as stop:
        return Verdict(problems=(f"it could not be replayed: that {stop}",))
    try:
        # Above it stands what Temporal's native part logs.
        return Verdict.model_validate_json(ended.stdout.rpartition(b"\n")[2])
    except ValidationError:
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        why = f"its process ended with {ended.code}: {for_terminal(said[-1])[:200]}"
        return Verdict(problems=(f"it could not be replayed: {why}",))
