"""`replay`: run recorded histories against today's workflow code, strictly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import Code, Stop
from cli.screen import say
from orchestrator.replay import replay


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Histories from `export`.")
    ],
) -> int:
    """Check that today's code still takes the decisions that recorded runs took."""
    for file in files:
        if not file.is_file():
            raise Stop(f"there is no file {str(file)!r}; `export ID --out FILE` writes one")
    return asyncio.run(run(files))


async def run(files: list[Path]) -> int:
    """Replay each file; 1 if any differs."""
    code = Code.COMPLETE
    for file in files:
        problems = await replay(file)
        if problems:
            code = Code.FAILED
            say(f"✗ {file}: {len(problems)} differences", "bold red")
            for problem in problems:
                say(f"    {problem}")
        else:
            say(f"✓ {file}: the same decisions", "green")
    return code
