"""Add to remarks the code at their places: the lines around each, without secrets, cut to what a
reader can take in. Blocking, and for a thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path

from holdfast.activities.repositories.manifest import BaseFile, Hunk
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.contracts import Deleted, Excerpt, Remark
from holdfast.contracts.remarks import is_credential
from holdfast.untrusted.redact import Redactor, without_keys

AROUND = 1
"""Lines before and after a remark's."""
LONGEST_LINE = 4_000
"""Characters of a line that is looked at; a longer one is data, or minified."""
LETTERS, OWN_LETTERS = 160, 400
"""Characters of a line that are handed on, around the place; of a remark's own lines more: what
makes text of pieces a hole may stand at its end.
"""
BEFORE = 60
"""Letters before the place in a line that is cut."""
MOST_OWN = 8
"""Lines of a statement that are handed on."""
MOST_DELETED = 4
"""Lines that were deleted together and are handed on, from a remark's."""
CUT = "…"
CALL = "changed-signature"
"""The rule whose remarks are about a whole call."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


@dataclass(frozen=True)
class _Lines:
    """The lines of a file, as they are and without the private keys among them."""

    raw: Sequence[str] = ()
    keyless: Sequence[str] = ()


@dataclass(frozen=True)
class CodeAround:
    """Reads the code of one snapshot."""

    snapshot: Snapshot
    redactor: Redactor
    _read: dict[str, _Lines] = field(default_factory=dict)

    @cached_property
    def _hunks(self) -> Mapping[str, Sequence[Hunk]]:
        return {file.path: file.hunks for file in self.snapshot.manifest.files}

    @cached_property
    def _before(self) -> Mapping[str, BaseFile]:
        return {file.now or file.path: file for file in self.snapshot.manifest.before}

    def at(self, remarks: Sequence[Remark]) -> list[Remark]:
        """Return the remarks, in their order, each with its column and the lines around it, if it
        is about a line that may be shown. Each file is read once.
        """
        placed = list(remarks)
        order = sorted(range(len(remarks)), key=lambda place: remarks[place].file)
        for file, places in groupby(order, key=lambda place: remarks[place].file):
            lines = self._lines(file)
            before = self._before.get(file)
            for place in places:
                remark = remarks[place]
                if remark.base_line and before:
                    placed[place] = self._add_deleted(remark, lines, before)
                else:
                    placed[place] = self._add_code(remark, lines)
        return placed

    def call(self, file: str, number: int) -> str:
        """Return a line with those on which its brackets are closed, in one, without what looks
        like a secret, cut; empty: nothing may be shown.
        """
        lines = self._kept(file).keyless
        if not 0 < number <= len(lines) or len(lines[number - 1]) > LONGEST_LINE:
            return ""
        span = range(number, end_of_call(lines, number) + 1)
        texts = [self.redactor.line(lines[at - 1].strip(), file, at) for at in span]
        shown = re.sub(r"(?<=[(\[{]) | (?=[)\]}])", "", " ".join(filter(None, texts)))
        return _shorten(shown, LETTERS if len(span) == 1 else OWN_LETTERS)

    def _kept(self, file: str) -> _Lines:
        if file not in self._read:
            self._read[file] = self._lines(file)
        return self._read[file]

    def _lines(self, file: str, place: Path | None = None) -> _Lines:
        """Return the lines as tools count them; none if nothing may be shown. `place`: where the
        file is, if not in the head.
        """
        if not file or not self.redactor.quotes(file):
            return _Lines()
        try:
            text = (place or self.snapshot.path(file)).read_bytes().decode("utf-8-sig", "replace")
        except OSError:
            return _Lines()
        text = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        return _Lines(text.split("\n"), without_keys(text).split("\n"))

    def _add_code(self, remark: Remark, lines: _Lines) -> Remark:
        number = remark.line
        if not 0 < number <= len(lines.raw) or not lines.raw[number - 1].strip():
            return remark
        line = lines.raw[number - 1]
        column = remark.column or len(line) - len(line.lstrip()) + 1
        first = max(number - AROUND, 1)
        last = min(max(remark.last_line, number), number + MOST_OWN - 1)
        if remark.rule == CALL:
            last = end_of_call(lines.raw, number)
        shown = [
            self._clean(remark, each, text)
            for each, text in enumerate(lines.keyless[first - 1 : last + AROUND], first)
        ]
        marked = shown[number - first]
        # Where something was taken out before the place, the line is marked as a whole.
        letter = column if marked[: column - 1] == line[: column - 1] else 0
        cut = max(letter - BEFORE, 1) - 1 if len(marked) > LETTERS and letter else 0
        shown[number - first] = CUT * bool(cut) + marked[cut:]
        letter -= cut - bool(cut) if letter else 0
        told = tuple(
            _shorten(text, OWN_LETTERS if number <= each <= last else LETTERS)
            for each, text in enumerate(shown, first)
        )
        excerpt = Excerpt(first=first, lines=told, letter=letter if letter < OWN_LETTERS else 0)
        return remark.model_copy(update={"column": column, "excerpt": excerpt})

    def _add_deleted(self, remark: Remark, head: _Lines, before: BaseFile) -> Remark:
        """Return the remark with the deleted lines that it is about, between those of the head."""
        lines = self._lines(remark.file, self.snapshot.before / before.path).keyless
        number = remark.base_line
        if not 0 < number <= len(lines):
            return remark
        spans = before.touched or ((1, len(lines)),)
        end = next((last for first, last in spans if first <= number <= last), number)
        listed = lines[number - 1 : min(end, number + MOST_DELETED - 1)]
        while len(listed) > 1 and not listed[-1].strip():
            listed = listed[:-1]
        hunks = self._hunks.get(remark.file, ())
        at = next((h[2] + (not h[3]) for h in hunks if h[0] <= number < h[0] + h[1]), remark.line)
        first = max(at - AROUND, 1)
        around = head.keyless[first - 1 : at - 1 + AROUND]
        # The lines of the base have numbers of their own: where secrets are is known of the head's.
        excerpt = Excerpt(
            first=first,
            lines=tuple(
                _shorten(self._clean(remark, each, text), LETTERS)
                for each, text in enumerate(around, first)
            ),
            deleted=Deleted(
                first=number,
                lines=tuple(
                    _shorten(self._clean(remark, 0, text, own=True), OWN_LETTERS) for text in listed
                ),
                before=at if head.keyless else 1,
            ),
        )
        return remark.model_copy(update={"excerpt": excerpt})

    def _clean(self, remark: Remark, number: int, text: str, *, own: bool = False) -> str:
        """Return a line without what looks like a secret."""
        if len(text) > LONGEST_LINE:
            return CUT
        withheld = (own or number == remark.line) and is_credential(remark)
        return self.redactor.line(text.rstrip(), remark.file, number, withheld=withheld)


def end_of_call(lines: Sequence[str], number: int) -> int:
    """Return the line on which the brackets that a line opens are closed; the line itself if that
    is beyond MOST_OWN lines.
    """
    depth = 0
    for at, line in enumerate(lines[number - 1 : number - 1 + MOST_OWN], number):
        plain = _TEXT.sub("", line[:LONGEST_LINE])
        depth += len(re.findall(r"[(\[{]", plain)) - len(re.findall(r"[)\]}]", plain))
        if depth <= 0:
            return at
    return number


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT
