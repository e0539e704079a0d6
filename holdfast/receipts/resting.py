"""Which sentence of an answer rests on which finding: what the sentence cites, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from holdfast.contracts import Report
from holdfast.contracts.data import texts
from holdfast.rendering.sources import cited_in
from holdfast.text import says_something

MOST_SENTENCES = 5_000

_STOP = re.compile(
    r"(?<![.!?])[.!?]{1,9}[\"'”)*_]{0,5}(?:[ \t]?\[[^\[\]\n]{1,200}\]){0,9}[.]?(?=\s|$)"
)
"""The end of a sentence, with the citations behind it."""


def sentences(answer: str) -> Iterator[tuple[int, int]]:
    """Yield from where to where each sentence of a text stands, in characters."""
    place = 0
    for line in answer.splitlines(keepends=True):
        stops = [each.end() for each in _STOP.finditer(line.rstrip())]
        starts = [0, *stops]
        for start, end in zip(starts, [*stops, len(line)], strict=True):
            said = line[start:end]
            if says_something(said):
                lead = len(said) - len(said.lstrip())
                yield place + start + lead, place + start + len(said.rstrip())
        place += len(line)


def rests_on(report: Report) -> list[dict[str, object]]:
    """Return each sentence of the answer by its place, with the findings that it cites. Of an
    answer as data, the findings that any of its texts cites, without a place.
    """
    found = {each.subtask_id: each for each in report.findings}
    if report.document is not None:
        cited = cited_in("\n".join(texts(report.document)), found)
        return [{"findings": [*cited]}]
    # Most of many findings are cited nowhere.
    found = {id: found[id] for id in cited_in(report.answer, found)}
    return [
        {"from": start, "to": end, "findings": [*cited_in(report.answer[start:end], found)]}
        for start, end in islice(sentences(report.answer), MOST_SENTENCES)
    ]
