"""Repositories and revisions of a Goal, checked before anything starts."""

from __future__ import annotations

from pathlib import Path

from activities import git
from cli.exits import Stop
from orchestrator.contracts import GoalInput
from orchestrator.errors import BadGoal

REVISION = "base"
"""The text input that names a revision of the goal's repository."""


async def check_repositories(inputs: tuple[GoalInput, ...]) -> None:
    """Return if every repository is one and has the revision asked for; else Stop."""
    revisions = [each for each in inputs if each.name == REVISION and each.kind == "text"]
    for each in inputs:
        if each.kind != "repository":
            continue
        try:
            async with git.opened(Path(each.value)) as repository:
                for revision in revisions:
                    await repository.commit(revision.value)
        except BadGoal as error:
            raise Stop(f"--input {each.name}: {error.message}") from error
