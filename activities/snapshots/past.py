"""Read what the commits of a repository say and, of older ones, how they changed the files that are
in scope: without secrets, and bounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import anyio.to_thread

from holdfast.activities.repositories.git import Git, GitFailed
from holdfast.activities.repositories.manifest import COMMIT_LIMIT, Commit, display_path
from holdfast.activities.repositories.output import BlobChange
from holdfast.text import for_terminal
from holdfast.untrusted.known_secrets import REDACTED
from holdfast.untrusted.redact import MARGIN, redact

MESSAGE_LETTERS = 4_000
MESSAGES_LETTERS = 2_000_000
"""Letters of all messages together, the newest first."""
MESSAGES_BYTES = 16 * 1024 * 1024
"""Bytes of the commits that are read for them."""
PATCHES = 300
"""Commits whose diff is kept, the newest first."""
PATCHED_FILES = 2_000
"""Files of all these commits together."""
PATCH_LINES = 2_000
"""Lines of one diff."""
LINE_LETTERS = 1_000
PATCHES_BYTES = 8 * 1024 * 1024
DIFF_BYTES = 24 * 1024 * 1024
"""Bytes that git may print of them."""
PATCH_SECONDS = 20.0
_KEY_BODY = re.compile(r"(?m)^([-+ ]\s*)[A-Za-z0-9+/=]{40,}\s*$")
"""A line of nothing but base64, as a private key has whose beginning stands in no hunk."""


async def read_messages(
    view: Git, commits: Sequence[Commit], base: str, head: str, *, all_of_them: bool
) -> tuple[tuple[Commit, ...], list[str]]:
    """Return the commits, those of the change marked and with their messages, or all with theirs;
    and notes on what was not read.
    """
    try:
        ids = await view.commits_between(base, head, COMMIT_LIMIT) if base and head else []
        wanted = [each.id for each in commits if all_of_them or each.id in {*ids}]
        said = await view.messages([*ids, *wanted], MESSAGES_BYTES)
    except GitFailed as error:
        return tuple(commits), [f"messages of commits were not looked at: {error}"]
    return await anyio.to_thread.run_sync(_add_messages, commits, {*ids}, said), []


def _add_messages(
    commits: Sequence[Commit], ids: Collection[str], said: dict[str, str]
) -> tuple[Commit, ...]:
    found, left = [], MESSAGES_LETTERS
    for commit in commits:
        message = clean_message(said.get(commit.id, "")) if left > 0 else ""
        left -= len(message)
        update = {"of_change": commit.id in ids, "message": message}
        found.append(commit.model_copy(update=update))
    return tuple(found)


def clean_message(message: str) -> str:
    """Return the beginning of a message as anybody may see it."""
    message = message.strip()
    told = redact(for_terminal(message[: MESSAGE_LETTERS + MARGIN], lines=True))
    if len(told) <= MESSAGE_LETTERS:
        return told
    return f"{told[:MESSAGE_LETTERS].rstrip()}… [{len(message):,} letters in all]"


async def read_patches(
    view: Git, commits: Sequence[Commit], files: Collection[str]
) -> tuple[dict[str, bytes], list[str]]:
    """Return the diffs of the newest commits before the change that touched some of these files,
    each of those files alone, by commit; and notes on what was not read.
    """
    chosen = (
        commit.id
        for commit in commits
        if not commit.of_change and any(each.path in files for each in commit.changes)
    )
    try:
        listed = await view.blob_changes([*islice(chosen, PATCHES)])
        changes = [each for each in listed if display_path(each.path) in files][:PATCHED_FILES]
        pairs = [(each.old, each.new) for each in changes]
        diffs = await view.patches(pairs, DIFF_BYTES, PATCH_SECONDS)
    except GitFailed as error:
        return {}, [f"diffs of earlier commits were not looked at: {error}"]
    return await anyio.to_thread.run_sync(_patches, changes, diffs), []


def _patches(changes: Sequence[BlobChange], diffs: dict[int, list[bytes]]) -> dict[str, bytes]:
    """Return the diff of each commit, redacted, as far as they fit. Blocking."""
    lines: dict[str, list[str]] = defaultdict(list)
    for place, change in enumerate(changes):
        if place in diffs:
            name = redact(for_terminal(display_path(change.path)))
            lines[change.commit] += [f"--- {name}", *map(_line, diffs[place])]
    kept, left = {}, PATCHES_BYTES
    for commit, each in lines.items():
        patch = clean_patch(each).encode("utf-8", "replace")
        if len(patch) <= left:
            kept[commit] = patch
            left -= len(patch)
    return kept


def clean_patch(lines: Iterable[str]) -> str:
    """Return the lines of a diff without secrets, cut to a bound."""
    every = list(lines)
    more = len(every) - PATCH_LINES
    told = redact("\n".join(every[:PATCH_LINES]))
    told = _KEY_BODY.sub(rf"\1{REDACTED}", told)
    return f"{told}\n[{more:,} more lines of it are not kept]\n" if more > 0 else f"{told}\n"


def _line(line: bytes) -> str:
    text = line[: LINE_LETTERS * 4].decode("utf-8", "replace").rstrip("\r")
    shown = for_terminal(text, lines=True)
    return shown if len(shown) <= LINE_LETTERS else f"{shown[:LINE_LETTERS]}…"
