"""Find findings that contradict each other in a figure or a date, by code. Pure.

Two statements are about the same thing if they use nearly the same words; they contradict each
other if they then differ in exactly one figure or date. What they mean is a model's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from holdfast.contracts import Finding
from holdfast.text import one_line

MOST = 5
"""Contradictions that are told."""
MOST_LETTERS, MOST_STATEMENTS = 100_000, 400
"""Characters and statements of a finding that are looked at."""
MOST_IN_ALL = 6_000
"""Statements of all findings that are compared."""
MOST_COMPARED = 20_000
"""Pairs of statements that are compared in all: a fraction of a second. What code does not find, a
model may.
"""
MOST_QUOTED = 120
"""Characters of a statement that are quoted."""
FEWEST_WORDS = 3
ALIKE = 0.8
"""Share of their words that two statements about the same thing have in common."""
_MONTH = "jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}\.?\s+(?:{_MONTH})\w*\.?,?(?:\s+\d{{4}})?"
    rf"|(?:{_MONTH})\w*\.?\s+\d{{1,2}}(?:,?\s+\d{{4}})?\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?")
_CITED = re.compile(r"\[[\w.-]{1,40}\]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|\n+")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Statement:
    subtask_id: str
    text: str
    words: frozenset[str]
    values: tuple[str, ...]
    """Its dates and figures, in their order."""


def find_contradictions(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the contradictions between findings, each in a sentence with both sides."""
    told = [each for each in findings if each.status in ("complete", "escalated")]
    every = (each for finding in told for each in _statements(finding))
    said = [*islice(every, MOST_IN_ALL)]
    found: dict[str, None] = {}
    for left, right in islice(_pairs(said), MOST_COMPARED):
        if _contradict(left, right):
            found[f"{_quote(left)}; {_quote(right)}"] = None
        if len(found) == MOST:
            break
    return tuple(found)


def _pairs(said: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """Yield statements of different findings, those in the same words first."""
    alike: dict[frozenset[str], list[Statement]] = {}
    for each in said:
        alike.setdefault(each.words, []).append(each)
    for group in (*alike.values(), said):
        for left, right in combinations(group, 2):
            if left.subtask_id != right.subtask_id:
                yield left, right


def _statements(finding: Finding) -> Iterator[Statement]:
    content = finding.content[:MOST_LETTERS]
    parts = (each.strip(" *-#|>\t") for each in _SENTENCE.split(content))
    for text in [each for each in parts if each][:MOST_STATEMENTS]:
        plain = _CITED.sub(" ", text)
        dates = [one_line(each).casefold() for each in _DATE.findall(plain)]
        rest = _DATE.sub(" ", plain)
        figures = [each.replace(",", "") for each in _FIGURE.findall(rest)]
        words = frozenset(each.casefold() for each in _WORD.findall(rest))
        if (dates or figures) and len(words) >= FEWEST_WORDS:
            yield Statement(finding.subtask_id, text, words, (*dates, *figures))


def _contradict(left: Statement, right: Statement) -> bool:
    if len(left.values) != len(right.values):
        return False
    differing = sum(a != b for a, b in zip(left.values, right.values, strict=True))
    common = len(left.words & right.words)
    return differing == 1 and common >= ALIKE * len(left.words | right.words)


def _quote(statement: Statement) -> str:
    text = one_line(statement.text)
    short = text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"
    return f"{statement.subtask_id} says «{short}»"
