"""List what a snapshot knows of the history of its repository."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from holdfast.activities.repositories.manifest import Commit
from holdfast.activities.toolset.inputs import place_of, quote_path
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import for_terminal, one_line, pluralize
from holdfast.untrusted.redact import redact

MESSAGE_LINES = 6
MOST_CHANGES = 50
"""Files of one commit that are named."""


@tool(seconds=30, reads=("repository",))
async def git_history(
    here: Here,
    path: Annotated[str, Field(description="A repository, or a file or folder of one.")],
    limit: Annotated[int, Field(description="Commits at most.", ge=1, le=500)] = 30,
    skip: Annotated[int, Field(description="Newest commits to pass over.", ge=0)] = 0,
) -> str:
    """List the commits of a repository that touched a path, newest first: id, date, author, what
    its message says, and the lines that it added to and deleted from its files. git_patch shows a
    whole message.
    """
    place = place_of(here, path)
    manifest = (await here.snapshot(place.input)).manifest
    if not manifest.commits:
        why = "; ".join(manifest.notes) or "it has no commits"
        raise ToolError(
            f"nothing is known of the history of {quote_path(place.input)}: {one_line(why)}"
        )
    wanted = "/".join(place.below)
    touching = [each for each in manifest.commits if not wanted or _changes(each, wanted)]
    lines = [describe_commit(commit, wanted) for commit in touching[skip : skip + limit]]
    left = len(touching) - skip - len(lines)
    if left > 0:
        lines.append(f"[{pluralize(left, 'older commit')}; skip={skip + len(lines)} goes on]")
    if manifest.commits_cut:
        newest = pluralize(len(manifest.commits), "commit")
        lines.append(f"[nothing older than the newest {newest} was looked at]")
    return "\n".join(lines or [f"[no commit that is known touched {quote_path(path)}]"])


def _changes(commit: Commit, path: str) -> list[tuple[str, int, int]]:
    """Return what a commit changed at and below a path: file, lines added, lines deleted."""
    return [
        (each.path, each.added, each.deleted)
        for each in commit.changes
        if not path or each.path == path or each.path.startswith(f"{path}/")
    ]


def describe_commit(commit: Commit, path: str, *, whole: bool = False) -> str:
    """Return lines on a commit: who, when, why, and what it did at and below a path; the beginning
    of its message, or the whole one.
    """
    day = _day(commit.time)
    changes = _changes(commit, path)
    ours = "  (part of the change under review)" if commit.of_change else ""
    lines = [f"{commit.id[:12]}  {day}  {redact(one_line(commit.author))}{ours}"]
    message = for_terminal(commit.message, lines=True).split("\n") if commit.message else []
    told = message if whole else message[:MESSAGE_LINES]
    lines += [f"    {line}".rstrip() for line in told if whole or line]
    if len(told) < len(message):
        lines.append("    […; git_patch shows the whole message]")
    if len(changes) > 1:
        added = pluralize(sum(added for _, added, _ in changes), "line")
        deleted = sum(deleted for *_, deleted in changes)
        lines.append(f"    {pluralize(len(changes), 'file')}: {added} added, {deleted:,} deleted")
    lines += [
        f"    +{added:,} -{deleted:,}  {redact(one_line(name))}"
        for name, added, deleted in changes[:MOST_CHANGES]
    ]
    if len(changes) > MOST_CHANGES:
        lines.append(f"    … and {pluralize(len(changes) - MOST_CHANGES, 'more file')}")
    return "\n".join(lines)


def _day(seconds: int) -> str:
    """Return a commit's time in UTC; a commit may claim any."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "at no time that there is"
