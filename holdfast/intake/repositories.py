"""Repositories and revisions of a Goal, checked before anything starts."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from holdfast.activities.repositories import git, main_line
from holdfast.activities.repositories.git import GitFailed
from holdfast.activities.repositories.main_line import Start, display_name
from holdfast.activities.repositories.wanted import Wanted
from holdfast.contracts import GoalInput, PinnedInput
from holdfast.contracts.errors import BadGoal
from holdfast.deployment.settings import Settings
from holdfast.embedded import read_registered
from holdfast.errors import Refused
from holdfast.rules.leaving import BASE
from holdfast.untrusted.redact import redact
from holdfast.untrusted.roots import Roots, roots_at


async def describe_inputs(
    inputs: tuple[GoalInput, ...], declared: Container[str], roots: Roots
) -> tuple[PinnedInput, ...]:
    """Return the names and commits of a Goal's files and repositories, for its title."""
    found = []
    wanted = Wanted.of(inputs, declared)
    for each in inputs:
        if each.kind == "text":
            continue
        commit, start = "", Start()
        if each.kind == "repository":
            commit, start = await _compare(Path(each.value), roots, wanted)
        found.append(
            PinnedInput(
                name=each.name,
                kind=each.kind,
                size=0,
                path=redact(each.value),
                commit=commit,
                base=start.commit,
                base_name=display_name(start.name),
            )
        )
    return tuple(found)


async def _compare(path: Path, roots: Roots, wanted: Wanted) -> tuple[str, Start]:
    """Return what is checked out and what it is compared with, without looking at the working
    tree.
    """
    try:
        async with git.open_git(path, roots) as repository:
            head = await repository.head()
            return head, await main_line.find_start(repository, wanted, head, None)
    except (BadGoal, GitFailed, OSError):
        return "", Start()


async def check_repositories(
    inputs: tuple[GoalInput, ...],
    declared: Container[str],
    settings: Settings,
    *,
    embedded: bool,
) -> None:
    """Refuse a path that is no repository, lacks the wanted revision, or leads to something that
    its worker may not read.
    """
    try:
        Wanted.of(inputs, declared)
    except BadGoal as error:
        raise Refused(f"--input: {error.message}") from error
    roots = roots_of(inputs, settings, embedded=embedded)
    revisions = [each for each in inputs if each.name == BASE and each.kind == "text"]
    for each in inputs:
        if each.kind != "repository":
            continue
        try:
            async with git.open_git(Path(each.value), roots) as repository:
                for revision in revisions:
                    await repository.commit(revision.value)
        except BadGoal as error:
            raise Refused(f"--input {each.name}: {error.message}") from error


def roots_of(inputs: tuple[GoalInput, ...], settings: Settings, *, embedded: bool) -> Roots:
    """Return what the run's worker will allow, as far as it is known here: for a server of one's
    own only the repositories themselves.
    """
    given = [Path(each.value) for each in inputs if each.kind != "text"]
    named, _ = roots_at([*given, *settings.allowed_roots])
    return (*named, *(read_registered(settings) if embedded else ()))
