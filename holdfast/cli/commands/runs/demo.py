"""`demo`: the review of a change, on a small example or on a repository of yours."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.commands.runs import run
from holdfast.cli.screen.exits import Exit
from holdfast.cli.screen.streams import say
from holdfast.deployment import extras
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.embedded.server import find_binary
from holdfast.intake import example

FOLDER = "demo"
"""Folder of the example, in the state directory."""


def command(
    repository: Annotated[
        str,
        typer.Argument(metavar="REPOSITORY", help="A repository of yours, by its path."),
    ] = "",
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="REVISION",
            help="Review what your repository changed since this revision.",
        ),
    ] = "",
) -> int:
    """Review a small example with planted defects, or a repository of yours; no key, no model."""
    # Without a server nothing runs; without analysers a review says which of its lenses did not.
    if not find_binary():
        raise Exit(f"demo {extras.lacking('embedded', 'review')}")
    if not repository:
        if base:
            raise Exit("--base is of a repository of yours; name it, or leave --base out")
        return _review(_example(), example.MAIN)
    return _review(repository, base)


def _example() -> str:
    """Return the path of the example repository, after printing what it holds."""
    state = StateDir.of(Settings())
    state.create()
    path = example.make_repository(state.path / FOLDER)
    say(f"A small shop, and a branch that adds receipts: {path}", "bold")
    say(
        "Eight defects are planted in what the branch changed, in Python, JavaScript and shell,"
        " among things that only look like defects."
    )
    say(f"The change itself: git -C {path} diff {example.MAIN}", "dim")
    say(f"A repository of yours: {STARTER} demo PATH", "dim")
    return str(path)


def _review(repository: str, base: str) -> int:
    inputs = [f"repo={repository}", *([f"base={base}"] if base else [])]
    return run.command(playbook="code-review", inputs=inputs, stay=True, embedded=True)
