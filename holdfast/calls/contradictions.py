"""Find findings that contradict each other in a figure or a date, by code. Pure.

Two statements are about the same thing if they use nearly the same words; they contradict each
other if they then differ in exactly one figure or date. Where several inputs are asked for the
same, each finding may speak of its own: what these say without a name in common is told only if
they agree in something else, or if it is no series: once, and by two alone. What they mean is a
model's to judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from holdfast.contracts import Finding, Subtask
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
FEWEST_WITHIN = 5
"""Words of a statement that is also about the same thing if another one has them all, and more."""
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


def find_contradictions(
    findings: Iterable[Finding], subtasks: Iterable[Subtask] = (), goal: str = ""
) -> tuple[str, ...]:
    """Return the contradictions between findings of these subtasks, each in a sentence with both
    sides.
    """
    told = [each for each in findings if each.status in ("complete", "escalated")]
    every = (each for finding in told for each in _statements(finding))
    said = [*islice(every, MOST_IN_ALL)]
    named = _Named(told, subtasks, goal)
    found: dict[str, None] = {}
    doubtful: dict[frozenset[str], dict[str, None]] = {}
    agreeing: set[frozenset[str]] = set()
    for left, right in islice(_pairs(said), MOST_COMPARED):
        differing = _count_differing(left, right)
        if differing is None:
            continue
        both = frozenset((left.subtask_id, right.subtask_id))
        if not differing:
            agreeing.add(both)
        elif differing == 1 and named.is_one_thing(left, right):
            found[f"{_quote(left)}; {_quote(right)}"] = None
        elif differing == 1 and len(same := doubtful.setdefault(both, {})) < MOST:
            same[f"{_quote(left)}; {_quote(right)}"] = None
        if len(found) == MOST:
            break
    by = Counter(id for both in doubtful for id in both)
    alone = {
        each for each, same in doubtful.items() if len(same) == 1 == max(by[id] for id in each)
    }
    kept = agreeing | alone
    more = (each for both, same in doubtful.items() if both in kept for each in same)
    return tuple(islice((*found, *more), MOST))


class _Named:
    """Tells whether two statements have a name in common, where they need one."""

    def __init__(self, findings: Sequence[Finding], subtasks: Iterable[Subtask], goal: str) -> None:
        self._findings, self._goal = findings, goal
        self._subtasks = {each.id: each for each in subtasks}
        self._known: dict[str, set[str]] = {}

    @cached_property
    def _inside(self) -> set[str]:
        """Words that have a capital also where no sentence begins."""
        titles = [each.title for each in self._subtasks.values()]
        contents = (each.content[:MOST_LETTERS] for each in self._findings)
        parts = (part for each in contents for part in _SENTENCE.split(each))
        texts = (self._goal, *titles, *islice(parts, MOST_IN_ALL))
        return {word for text in texts for word in _capitals(text)[1:] if word}

    def is_one_thing(self, left: Statement, right: Statement) -> bool:
        """True if both have a name in common, or their subtasks do not ask different inputs for the
        same.
        """
        one, other = (self._subtasks.get(each.subtask_id) for each in (left, right))
        if one is None or other is None or not (one.inputs and other.inputs):
            return True
        if {*one.inputs} & {*other.inputs} or one.id in other.depends_on:
            return True
        if other.id in one.depends_on or not _are_alike(_wanted(one), _wanted(other)):
            return True
        return bool(self._names(left) & self._names(right))

    def _names(self, statement: Statement) -> set[str]:
        if (known := self._known.get(statement.text)) is None:
            first, *rest = _capitals(statement.text)
            known = {*filter(None, rest), *({first} & self._inside)}
            self._known[statement.text] = known
        return known


def _wanted(subtask: Subtask) -> frozenset[str]:
    """Return the words of an instruction without names."""
    words = _WORD.findall(subtask.instruction)
    return frozenset(each for each in words if each[0].islower()) - {*subtask.inputs}


def _are_alike(left: frozenset[str], right: frozenset[str]) -> bool:
    return len(left & right) >= ALIKE * len(left | right)


def _capitals(text: str) -> list[str]:
    """Return the words of a statement, those that begin with a small letter as nothing. Whoever
    writes without capitals has names only.
    """
    words = re.findall(r"[^\W\d_]\w*", _DATE.sub(" ", _CITED.sub(" ", text)))
    return ["" if each[0].islower() else each for each in words] or [""]


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


def _count_differing(left: Statement, right: Statement) -> int | None:
    """Return how many values two statements about the same thing have otherwise; None: they are
    about different things.
    """
    if len(left.values) != len(right.values):
        return None
    fewer, more = sorted((left.words, right.words), key=len)
    if not (_are_alike(fewer, more) or (len(fewer) >= FEWEST_WITHIN and fewer <= more)):
        return None
    return sum(a != b for a, b in zip(left.values, right.values, strict=True))


def _quote(statement: Statement) -> str:
    text = one_line(statement.text)
    short = text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"
    return f"{statement.subtask_id} says «{short}»"
