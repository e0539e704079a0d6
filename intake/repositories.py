"""Repositories and revisions of a Goal, checked before anything starts."""

from __future__ import annotations

from pathlib import Path

from activities.code_review.redact import redact
from activities.repositories import git
from activities.repositories.git import GitFailed
from deployment.embedded import registered
from deployment.roots import Roots, roots_at
from deployment.settings import Settings
from intake.refusal import Refused
from orchestrator.contracts import GoalInput, PinnedInput
from orchestrator.errors import BadGoal
from orchestrator.text import for_terminal

REVISION = "base"
"""The text input that names a revision of the goal's repository."""


async def about(inputs: tuple[GoalInput, ...], roots: Roots) -> tuple[PinnedInput, ...]:
    """The files and repositories of a Goal as far as their names and commits go, for its title."""
    found = []
    for each in inputs:
        if each.kind == "text":
            continue
        commit = await _commit(Path(each.value), roots) if each.kind == "repository" else ""
        base = next((one.value for one in inputs if one.name == REVISION), "") if commit else ""
        shown = redact(for_terminal(base))
        found.append(
            PinnedInput(
                name=each.name, kind=each.kind, size=0, path=redact(each.value), commit=commit,
                base=shown, base_name=shown,
            )
        )  # fmt: skip
    return tuple(found)


async def _commit(path: Path, roots: Roots) -> str:
    """What is checked out there; empty where that cannot be told."""
    try:
        async with git.opened(path, roots) as repository:
            return await repository.head()
    except (BadGoal, GitFailed, OSError):
        return ""


async def check_repositories(
    inputs: tuple[GoalInput, ...], settings: Settings, *, embedded: bool
) -> None:
    """Return if every repository is one, has the revision asked for, and leads to nothing that its
    worker may not read; else Refused.
    """
    roots = roots_of(inputs, settings, embedded=embedded)
    revisions = [each for each in inputs if each.name == REVISION and each.kind == "text"]
    for each in inputs:
        if each.kind != "repository":
            continue
        try:
            async with git.opened(Path(each.value), roots) as repository:
                for revision in revisions:
                    await repository.commit(revision.value)
        except BadGoal as error:
            raise Refused(f"--input {each.name}: {error.message}") from error


def roots_of(inputs: tuple[GoalInput, ...], settings: Settings, *, embedded: bool) -> Roots:
    """What the run's worker will allow, as far as that is known here: for a server of one's own
    only the repositories themselves.
    """
    given = [Path(each.value) for each in inputs if each.kind != "text"]
    named, _ = roots_at([*given, *settings.allowed_roots])
    return (*named, *(registered(settings) if embedded else ()))
