"""Advice says what makes the code right, and never how to be rid of the remark alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.review.believed import SHOWN
from holdfast.activities.review.analysers import patterns
from holdfast.activities.review.analysing.advice import FOLDER, add_advice, advice_of
from holdfast.activities.review.analysing.scripts import measure_complexity
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

FORBIDDEN = re.compile(
    r"(?i)\b(?:noqa|nosec|disabl\w*|suppress\w*|silenc\w*|ignor\w*|intention\w*|on purpose|wrap"
    r"|underscore|prefix|unused|void|usedforsecurity|type: ignore|ts-ignore|as any|cast to any"
    r"|skip\w*|mute|pass over|exclude|allowlist|whitelist|comment it out)\b|`_`|`pass`"
    r"|assignment in parentheses|catch and"
)
PYTHON = """\
import os
x = 1
def f():
    unused = 1
    x == 2
    x = x
    assert (x, "no")
    try: return 1
    except: pass
    for i in []: i
"""
SCRIPT = """\
import { a } from './a';
export function f(status, g, list) {
  if (status = 401) { return list; }
  while (g = list) { }
  if (status == status) { debugger; }
  switch (g) { case 1: case 1: return eval(g); }
  g = g;
  return (g?.x).y + new Promise(async () => {}) + g?.z!;
}
"""


def advice() -> Iterator[tuple[str, str]]:
    """Return each piece of advice that is ours, and whose."""
    for file in sorted(FOLDER.glob("*.yaml")):
        yield from ((f"{file.stem} {rule}", row.do) for rule, row in advice_of(file.stem).items())
    yield from ((rule["id"], rule["note"]) for rule in patterns.rules())
    yield from measure_complexity.SUGGESTIONS.items()


def test_no_advice_of_ours_silences_what_it_is_about() -> None:
    told = list(advice())
    assert len(told) > 300
    assert [(whose, text) for whose, text in told if FORBIDDEN.search(text)] == []


@pytest.mark.parametrize(
    ("lens", "name", "code"), [("bugs", "a.py", PYTHON), ("javascript", "a.ts", SCRIPT)]
)
async def test_no_advice_of_a_tool_that_silences_reaches_anybody(
    tmp_path: Path, lens: str, name: str, code: str
) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({name: code})
    found = [add_advice(each) for each in remarks_of(await Bench(tmp_path).look(lens, repository))]
    assert len({each.rule for each in found}) >= 5
    assert [each for each in found if FORBIDDEN.search(each.suggestion)] == []
    assert all(each.suggestion for each in found if each.confidence >= SHOWN)


async def test_an_assignment_in_a_condition_is_to_become_a_comparison(tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"a.ts": SCRIPT})
    found = remarks_of(await Bench(tmp_path).look("javascript", repository))
    (remark,) = [each for each in found if (each.line, each.rule) == (3, "no-cond-assign")]
    assert add_advice(remark).suggestion.startswith("Compare with `===`")
