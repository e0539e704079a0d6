"""Comments that take a remark out of a review, in lines that differ from the base: a change cannot
say of itself what is to be overlooked in it. Marks that stood in the base are honoured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Ranges = Sequence[tuple[int, int]]
MARK = re.compile(
    rb"(?i)noqa|nosec|\bpragma:?[ \t]{0,9}(?:allow|white)list|\b(?:eslint|oxlint)-disable"
    rb"|\bshellcheck[ \t](?=[^\n]{0,500}\bdisable)|\bzizmor:[ \t]{0,9}ignore"
    rb"|\bhadolint[ \t](?=[^\n]{0,500}\bignore)|\bast-grep-ignore|\blizard forgive"
    rb"|\bgenerated code|\bruff:[ \t]{0,9}(?:file-)?(?:ignore|disable)"
)
"""Matches the comments that any analyser obeys."""


def find_marks(content: bytes) -> list[int]:
    """Return the line of each mark."""
    if not MARK.search(content):
        return []
    lines = content.split(b"\n")
    return [number for number, line in enumerate(lines, 1) for _ in MARK.finditer(line)]


def strip_marks(content: bytes, touched: Ranges) -> tuple[bytes, list[int]]:
    """Return the content without marks in its touched lines, and the line of each mark. Each line
    keeps its length and every line its number, so what is seen in it stands where it stood.
    """
    if not MARK.search(content):
        return content, []
    found: list[int] = []
    lines = content.split(b"\n")
    for first, last in touched:
        for place in range(max(first, 1) - 1, min(last, len(lines))):
            lines[place], count = MARK.subn(lambda mark: b"x" + mark[0][1:], lines[place])
            found += [place + 1] * count
    return b"\n".join(lines), found


def drop_touched(content: bytes, touched: Ranges) -> bytes:
    """Return the lines that were not touched: what the base says, too."""
    lines = content.split(b"\n")
    for first, last in touched:
        lines[max(first, 1) - 1 : last] = [b""] * (min(last, len(lines)) - max(first, 1) + 1)
    return b"\n".join(line for line in lines if line)
