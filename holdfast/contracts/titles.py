"""What a run is about, in a line for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from holdfast.contracts import PinnedInput

COMMIT_LETTERS = 10


def title_of(goal: str, own: str, pattern: str, inputs: Sequence[PinnedInput]) -> str:
    """Return the goal's words; where they are the playbook's `own`, its filled-in `pattern`."""
    if not pattern or goal != own:
        return goal
    title = pattern
    for each in inputs:
        title = title.replace("{" + each.name + "}", describe_input(each))
    return title


def describe_input(pinned: PinnedInput) -> str:
    """Return `httpx at 1a2b3c4d5e, with 3 files not committed`, or the name of a file."""
    name = PurePath(pinned.path).name or pinned.name
    if pinned.kind != "repository":
        return name
    commit = pinned.commit[:COMMIT_LETTERS]
    parts = [f"{name} at {commit}" if commit else f"{name}, nothing committed yet"]
    if commit and pinned.changed:
        parts.append(f"with {pinned.changed} file{'s' * (pinned.changed != 1)} not committed")
    if pinned.base and pinned.base != pinned.commit:
        parts.append(f"against {pinned.base_name or pinned.base[:COMMIT_LETTERS]}")
    return ", ".join(parts)
