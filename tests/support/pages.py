"""The pages for people as data: their snippets, and whether what was printed is what a page says.

A fence says what it holds. `sh`: commands, run as they stand. `text`: what the commands above it
print. Any other language: a file, whose name stands in backticks in the line above. Invisible
comments right above a fence say what is otherwise:

    <!-- not run: REASON -->                 the only way not to be run, written or compared
    <!-- once: COMMAND prints TEXT -->       a reader goes on when COMMAND shows TEXT
    <!-- figures: exact -->                  figures are compared as they stand, too
    <!-- paths of the repository -->         a list of what exists there, and
    <!-- paths of the state directory -->    here: the first word of a line, or words that end in /
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.deployment.settings import HOME

ELISION = "…"
FENCE = re.compile(r"^( *)```(\w*)$")
COMMENT = re.compile(r"^<!-- (.*) -->$")
NAMED = re.compile(r"`([\w./-]+\.(?:md|yaml|json|py|toml))`")
RUN_ID = r"[a-z][a-z-]*-\d{4}-[a-z0-9]{5}"
DURATION = r"(?:\d+ h )?(?:\d+ min )?\d[\d.]* (?:s|min|h|d)\b"
FIGURE = r"\d[\d,]*(?:\.\d+)?"
SHAPES = re.compile(
    rf"(?P<id>\b{RUN_ID}\b)|(?P<time>{DURATION})|(?P<number>{FIGURE})|(?P<any>{ELISION})|(?P<space>\s+)"
)


@dataclass(frozen=True)
class Snippet:
    """What stands in one fence of a page."""

    page: Path
    line: int
    """Of the page, of the snippet's first line."""
    language: str
    text: str
    name: str = ""
    """Of the file that it is; empty if the page names none."""
    notes: tuple[str, ...] = field(default=())
    """The invisible comments above it."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(HOME)} line {self.line}"

    def note(self, begins: str) -> str | None:
        """What a comment says after its first words; None without such a comment."""
        for each in self.notes:
            if each.startswith(begins):
                return each.removeprefix(begins).strip()
        return None


def snippets(page: Path) -> list[Snippet]:
    """Every fenced snippet of a page, in order. ValueError names a fence that is never closed."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Snippet] = []
    start, indent, language = -1, "", ""
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if start < 0:
            start, indent, language = number, fence.group(1), fence.group(2)
        else:
            text = "".join(f"{each.removeprefix(indent)}\n" for each in lines[start + 1 : number])
            notes, above = _above(lines[:start])
            named = NAMED.search(above) if above.rstrip().endswith(":") else None
            name = named.group(1) if named and language not in ("sh", "text") else ""
            found.append(Snippet(page, start + 2, language, text, name, notes))
            start = -1
    if start >= 0:
        raise ValueError(f"{page.name} line {start + 1}: the fence is never closed")
    return found


def _above(lines: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The comments right above a fence, and the line of text above those."""
    notes: list[str] = []
    for line in reversed(lines):
        comment = COMMENT.match(line.strip())
        if comment:
            notes.insert(0, comment.group(1))
        elif line.strip():
            return tuple(notes), line
    return tuple(notes), ""


# ---------------------------------------------------------------- what was printed


def shape(line: str, *, exact: bool) -> re.Pattern[str]:
    """A pattern for lines like this one: other ids, times and, unless `exact`, figures."""
    parts: list[str] = []
    end = 0
    for found in SHAPES.finditer(line):
        parts.append(re.escape(line[end : found.start()]))
        end = found.end()
        match found.lastgroup:
            case "id":
                parts.append(RUN_ID)
            case "time":
                parts.append(DURATION)
            case "number":
                parts.append(re.escape(found.group()) if exact else FIGURE)
            case "any":
                parts.append(".*")
            case _:
                parts.append(r"\s+")
    return re.compile("".join([*parts, re.escape(line[end:])]))


def difference(said: Snippet, printed: str) -> str:
    """Where a page says what was not printed; empty if everything was, in that order.

    Blank lines count for nothing, nor does what a busy machine says more than a quiet one: that it
    waits. A line with nothing but … stands for any number of lines, … in a line for any text.
    """
    exact = said.note("figures: exact") is not None
    real = [line.strip() for line in printed.splitlines() if line.strip()]
    real = [line for line in real if not line.startswith("Waiting for ")]
    at, chunk = 0, list[tuple[int, str]]()
    anywhere = False
    numbered = [
        (said.line + number, line.strip())
        for number, line in enumerate(said.text.splitlines())
        if line.strip()
    ]
    for number, line in [*numbered, (0, ELISION)]:
        if line != ELISION:
            chunk.append((number, line))
            continue
        if chunk:
            last = number == 0
            found = _find(chunk, real, at, anywhere=anywhere, last=last, exact=exact)
            if isinstance(found, str):
                return f"{said.page.relative_to(HOME)} {found}; printed was:\n{printed}"
            at = found
        chunk, anywhere = [], True
    return ""


def _find(
    chunk: Sequence[tuple[int, str]],
    real: Sequence[str],
    at: int,
    *,
    anywhere: bool,
    last: bool,
    exact: bool,
) -> int | str:
    """Where the printed lines go on after those of the chunk; or what is not there."""
    patterns = [shape(line, exact=exact) for _, line in chunk]
    starts = range(at, len(real)) if anywhere else range(at, at + 1)
    best = 0
    for start in starts:
        lines = real[start : start + len(chunk)]
        fits = 0
        for pattern, line in zip(patterns, lines, strict=False):
            if not pattern.fullmatch(line):
                break
            fits += 1
        if fits == len(chunk) and (not last or start + fits == len(real)):
            return start + fits
        best = max(best, fits)
    if best == len(chunk):
        number, line = chunk[-1]
        return f"line {number}: more was printed after {line!r}; end the snippet with {ELISION}"
    number, line = chunk[best]
    where = f"after printed line {at}" if at else "at the beginning"
    return f"line {number}: says {line!r}, and no such line was printed {where}"
