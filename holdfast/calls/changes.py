"""What differs in a repository, as its agents are shown it: its authors' words, and a diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.calls.envelopes import envelope
from holdfast.contracts import PinnedInput

DIFF_BYTES = 60_000
"""Shown of a diff; git_diff shows the rest."""
MESSAGES_BYTES = 8_000
LEFT_OUT_BYTES = 8_000
"""For the names of files whose diff is not shown."""
MOST_NAMED = 100
"""Files that are named whose diff is not shown."""
_FILE = re.compile(r"(?m)^--- (?:a/(.*)|/dev/null)\n\+\+\+ (?:b/(.*)|/dev/null)$")


@dataclass(frozen=True)
class ChangeText:
    """The messages of a change's commits, newest first, and its unified diff; without secrets."""

    messages: str = ""
    diff: str = ""


def size_of_change(pinned: PinnedInput) -> int:
    """Return how many bytes of an input's change stand in a prompt, without the names of the files
    whose diff is left out.
    """
    if pinned.change is None:
        return 0
    diff, messages = pinned.change.diff_bytes, pinned.change.messages_bytes
    return min(diff, DIFF_BYTES) + min(messages, MESSAGES_BYTES)


def most_of_change(pinned: PinnedInput) -> int:
    """Return how many bytes of an input's change stand in a prompt, at most."""
    cut = pinned.change is not None and pinned.change.diff_bytes > DIFF_BYTES
    return size_of_change(pinned) + LEFT_OUT_BYTES * cut


def enclose_messages(name: str, change: ChangeText) -> Iterator[str]:
    if change.messages:
        said = _cut(change.messages, MESSAGES_BYTES)
        more = "\n[older messages are left out; git_history shows them]"
        yield envelope(
            f"messages of the commits of {name}, by their authors, newest first",
            said.strip() if said == change.messages else said + more,
        )


def enclose_diff(pinned: PinnedInput, change: ChangeText) -> Iterator[str]:
    """Yield the diff of an input, whole if it is short enough; else its beginning, and the names of
    the files that are not, or not wholly, in that.
    """
    if not change.diff:
        return
    shown = _cut(change.diff, DIFF_BYTES)
    if shown != change.diff:
        files = [*_FILE.finditer(change.diff)]
        inside = sum(each.start() < len(shown) for each in files)
        names = [each[2] or each[1] for each in files[max(inside - 1, 0) :]]
        more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        listed = _cut(", ".join(names[:MOST_NAMED]), LEFT_OUT_BYTES - 200)
        shown += f"\n[cut here; git_diff shows the rest, of {listed}{more}]"
    base = pinned.base_name or pinned.base[:12]
    yield envelope(f"diff of {pinned.name} against {base}", shown.rstrip("\n"))


def _cut(text: str, most: int) -> str:
    """Return the lines of a text that fit into so many bytes of UTF-8."""
    if len(text.encode()) <= most:
        return text
    short = text.encode()[:most].decode("utf-8", "ignore")
    return short.rpartition("\n")[0] or short
