"""Lay out where two texts differ as a unified diff does: unchanged lines around, deleted lines
before those that replace them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast.activities.repositories.output import Hunk

Mark = Literal[" ", "-", "+"]
HEAD_LETTERS = 100
"""Letters of the head of a definition that are shown."""
MOST_HEADS = 3
REACH = 2_000
"""Lines upwards in which the definitions around one are looked for."""
LONGEST_HEAD = 300
"""Letters of a line that may be a head."""
_TAB = 4
_HEAD = re.compile(
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|async|pub"
    r"(?:\(\w+\))?|unsafe|override|virtual|inline|const)\s+)*"
    r"(?:(?:class|interface|trait|impl|enum|struct|module|namespace|record|def|fn|func|function\*?|type"
    r"|sub)\b\s*[\w$(<:]|(?:describe|context|it|test|specify)\b\W*['\"`]"
    r"|(?:const|let|var)\s+[\w$]+\s*=\s*(?:async\b\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]*)?=>|\w+\s*=>))"
    # A method without a word before it, as Java, C and JavaScript have them.
    r"|(?!(?:if|else|for|while|switch|catch|return|new|throw|do|try|with|await|yield|elif|unless"
    r"|assert|raise)\b)(?:[\w$<>\[\],.?*&:~ ]+\([^;]*\{|[\w$<>\[\],.?*&:~ ]+ [\w$~]+\([^;]*[,(])$"
)
_INDENT = re.compile(r"[ \t]*")


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

    @property
    def first(self) -> DiffLine:
        """Return the first line that differs."""
        return next(line for line in self.lines if line.mark != " ")

    def header_within(self, heads: Iterable[str]) -> str:
        """Return its header with the definitions that its first change stands in."""
        names = (head.strip().rstrip("{:( ")[:HEAD_LETTERS] for head in heads)
        return " ".join([self.header, " > ".join(names)]).rstrip()


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


def heads_around(lines: Sequence[str], number: int) -> list[int]:
    """Return the lines at which the definitions around a line begin, the outermost first."""
    found: list[int] = []
    depth = _depth(lines[number - 1]) if 0 < number <= len(lines) else 0
    for at in range(min(number, len(lines) + 1) - 1, max(number - 1 - REACH, 0), -1):
        if not depth or len(found) == MOST_HEADS:
            break
        line = lines[at - 1][:LONGEST_HEAD]
        if line.strip() and _depth(line) < depth:
            depth = _depth(line)
            if _HEAD.match(line.strip()):
                found.append(at)
    return found[::-1]


def _depth(line: str) -> int:
    return len(_INDENT.match(line)[0].expandtabs(_TAB))  # type: ignore[index]
