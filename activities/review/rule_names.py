"""Find out whether a rule that a repository's settings name exists: if not, that is a mistake, and
names like it are suggested.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache

from holdfast.activities.review.analysing.advice import advice_of
from holdfast.activities.review.analysing.lens import Analyser
from holdfast.activities.review.lenses import analysers
from holdfast.text import code_span

MOST_NAMED = 3
ALIKE = 0.6
"""Least similarity, from 0 to 1, of a name to the one that was meant."""


def explain_unknown(rule: str) -> str:
    """Return that no analyser is known to have a rule of this name, as `F821` or `bugs:F821`, and
    which have names like it: the rest of a sentence, as Markdown. Empty: one has.
    """
    lens, colon, name = rule.rpartition(":")
    found = analysers()
    of_lens = [found[lens]] if lens in found else [] if colon else [*found.values()]
    if any(_has(each, name) for each in of_lens):
        return ""
    near = ", ".join(map(code_span, _near(rule, with_lens=bool(colon))))
    return f"no analyser is known to have such a rule{f'; names like it: {near}' if near else ''}"


def _has(analyser: Analyser, name: str) -> bool:
    # A row may stand for a family, whose members add digits to its name: F50 for F501.
    return any(
        name == each or (name.startswith(each) and name[len(each) :].isdecimal())
        for each in _names(analyser)
    )


def _names(analyser: Analyser) -> Iterator[str]:
    """Yield the names of its rules, or what they begin with."""
    for row in analyser.rules or analyser.grades:
        # Behind the name stands what a lens tells apart.
        yield row.partition(" ")[0].partition("/")[0]
    # Some have advice and no row of their own, since they share one with others.
    yield from filter(None, advice_of(analyser.name))


def _near(rule: str, *, with_lens: bool) -> list[str]:
    spelt = _all_names(with_lens)
    near = difflib.get_close_matches(rule.casefold(), spelt, MOST_NAMED, ALIKE)
    return [spelt[each] for each in near]


@cache
def _all_names(with_lens: bool) -> dict[str, str]:
    """Return each name as it is spelt, by its lower-case form."""
    return {
        spelt.casefold(): spelt
        for lens, analyser in analysers().items()
        for name in _names(analyser)
        for spelt in [f"{lens}:{name}" if with_lens else name]
    }
