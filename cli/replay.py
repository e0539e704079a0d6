"""`replay`: run recorded histories against today's workflow code, strictly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf.json_format import ParseError
from temporalio.client import WorkflowHistory

from cli.exits import Code, Stop
from cli.screen import say
from orchestrator.replay import replay


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Histories from `export`.")
    ],
) -> int:
    """Check that today's code still takes the decisions that recorded runs took."""
    return asyncio.run(run([(file, read(file)) for file in files]))


def read(file: Path) -> WorkflowHistory:
    """The history in a file; Stop if it holds none."""
    try:
        return WorkflowHistory.from_json(file.stem, file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Stop(f"there is no file {str(file)!r}; `export ID --out FILE` writes one") from error
    except OSError as error:
        raise Stop(f"{str(file)!r} cannot be read: {error.strerror}") from error
    except (ValueError, ParseError) as error:
        raise Stop(f"{str(file)!r} is no history from `export`: {error}") from error


async def run(histories: list[tuple[Path, WorkflowHistory]]) -> int:
    """Replay each history; 1 if any differs."""
    code = Code.COMPLETE
    for file, history in histories:
        problems = await replay(history)
        if problems:
            code = Code.FAILED
            say(f"✗ {file}: {len(problems)} differences", "bold red")
            for problem in problems:
                say(f"    {problem}")
        else:
            say(f"✓ {file}: the same decisions", "green")
    return code
