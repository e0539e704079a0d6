"""An edit of one file: whether it applies, and its difference as `git apply` takes it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.calls.fix import Edit

AROUND = 3
"""Lines of context in a difference."""


class NotApplied(Exception):
    """The edit does not apply, or mends nothing: why, as the rest of a sentence."""


@dataclass(frozen=True)
class Patched:
    """A file after an edit."""

    text: str
    diff: str
    first: int
    last: int
    """The lines that were replaced, 1-based."""
    lines: tuple[str, ...]


def apply(text: str, path: str, edit: Edit) -> Patched:
    """Return a file's text after an edit of whole lines. Raise NotApplied unless they stand in it
    exactly once.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    old, new = (each.replace("\r\n", "\n").split("\n") for each in (edit.old, edit.new))
    if edit.new == "":
        new = []
    places = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    if len(places) != 1:
        often = "nowhere" if not places else f"{len(places)} times"
        raise NotApplied(f"the lines that it replaces stand {often} in {path}")
    first, whole = places[0], lines[:]
    whole[first : first + len(old)] = new
    after = end.join(whole)
    diff = "".join(_diff(text, after, path))
    if not diff:
        raise NotApplied("it changes nothing")
    return Patched(after, diff, first + 1, first + len(old), tuple(new))


def _diff(before: str, after: str, path: str) -> Iterator[str]:
    # By line feeds alone, as git counts lines.
    both = ([f"{line}\n" for line in each.split("\n")] for each in (before, after))
    one, other = (_ended(lines) for lines in both)
    for line in difflib.unified_diff(one, other, f"a/{path}", f"b/{path}", n=AROUND):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _ended(lines: list[str]) -> list[str]:
    """Drop the empty line behind the last line feed; without one, take it from the last line."""
    last = lines.pop()
    return lines if last == "\n" else [*lines, last.removesuffix("\n")]
