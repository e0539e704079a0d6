"""Lay out where two texts differ as a unified diff does: unchanged lines around, deleted lines
before those that replace them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast.activities.repositories.output import Hunk

Mark = Literal[" ", "-", "+"]


class DiffLine(NamedTuple):
    """A line of a diff, by its number in each text; 0: it is not in it."""

    mark: Mark
    old: int
    new: int

    def show(self, text: str) -> str:
        """Return the line as models see it: its number in the head, or of a deleted line in the
        base, its mark, and its text.
        """
        return f"{self.new or self.old:>5} {self.mark}{text}"


@dataclass(frozen=True)
class Section:
    """Lines of a diff that stand together."""

    lines: tuple[DiffLine, ...]

    @property
    def header(self) -> str:
        """Return the line that begins it, `@@ -1,3 +1,4 @@`."""
        return f"@@ -{_span(self.lines, 1)} +{_span(self.lines, 2)} @@"


def _span(lines: Sequence[DiffLine], side: int) -> str:
    numbers = [line[side] for line in lines if line[side]]
    return f"{numbers[0]},{len(numbers)}" if numbers else "0,0"


def lay_out(hunks: Sequence[Hunk], old: int, new: int, context: int) -> Iterator[Section]:
    """Yield the sections of a diff of two texts with `old` and `new` lines, each hunk with at most
    `context` unchanged lines around; what then touches is one section.
    """
    group: list[Hunk] = []
    for hunk in map(_firsts, hunks):
        if group and hunk[0] - _ends(group[-1])[0] > 2 * context:
            yield Section(tuple(_lines(group, old, new, context)))
            group = []
        group.append(hunk)
    if group:
        yield Section(tuple(_lines(group, old, new, context)))


def _firsts(hunk: Hunk) -> Hunk:
    """Return a hunk whose first lines are where it begins, whether or not it has lines there."""
    old, many, new, more = hunk
    return old + (not many), many, new + (not more), more


def _ends(hunk: Hunk) -> tuple[int, int]:
    """Return the first line behind a hunk, in each text."""
    return hunk[0] + hunk[1], hunk[2] + hunk[3]


def _lines(group: Sequence[Hunk], old: int, new: int, context: int) -> Iterator[DiffLine]:
    was, now = group[0][0], group[0][2]
    lead = min(context, was - 1, now - 1)
    was, now = was - lead, now - lead
    for first, many, start, more in group:
        for place in range(min(first - was, start - now)):
            yield DiffLine(" ", was + place, now + place)
        for number in range(first, first + many):
            yield DiffLine("-", number, 0)
        for number in range(start, start + more):
            yield DiffLine("+", 0, number)
        was, now = first + many, start + more
    for place in range(max(min(context, old - was + 1, new - now + 1), 0)):
        yield DiffLine(" ", was + place, now + place)
