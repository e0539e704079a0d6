"""The footnotes of an answer: what it cites first comes first, then the rest as planned. A
source is told as its agent gave it, with page, cell, line and sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.contracts import Finding, Report
from holdfast.contracts.remarks import has_remarks
from holdfast.rendering.blocks import Item, Marked
from holdfast.rendering.findings import shorten, source_text, subtask_of
from holdfast.text import inline, pluralize
from holdfast.text.marks import BRACKETS

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What may be an id within the brackets of a citation."""
_ID_ALONE = re.compile(rf"(?i)\s*(?:(?:subtask|finding)\s+)?\[?({WORD.pattern})\]?\s*\Z")
MOST, FEW = 200, 5
"""Sources of one finding: in a file or page, and in the short form of a report."""
MOST_HOPS = 3
"""Most steps from finding to finding; behind that the finding itself is the source."""
TITLE_LETTERS = 160
UNNAMED = "names no source"


@dataclass(frozen=True)
class Source:
    """One place that a finding rests on, as an agent named it."""

    text: str
    via: tuple[str, ...] = ()
    """The findings through which it came, nearest first: the finding named these as its source."""


@dataclass(frozen=True)
class Footnote:
    """What one finding rests on."""

    subtask_id: str
    title: str
    sources: tuple[Source, ...]
    builds_on: tuple[str, ...] = ()
    """The subtasks whose findings it was given, where it names no source itself."""
    cited: bool = True
    """False: other findings are cited in the answer, this one is not."""


def footnotes(report: Report) -> tuple[Footnote, ...]:
    """Return one for each finding that the answer cites or that names a source."""
    found = {each.subtask_id: each for each in report.findings}
    inputs = {each.name.lower() for each in report.inputs}
    named = {id.lower(): each for id, each in found.items() if id.lower() not in inputs}
    cited = cited_in(report.answer, found)
    notes = []
    for id in dict.fromkeys((*cited, *found)):
        sources = tuple(_resolved(found[id], named, {id}))
        if not sources and (id not in cited or has_remarks(found[id])):
            continue
        subtask = subtask_of(report, id)
        builds_on = () if sources else tuple(each for each in subtask.depends_on if each in found)
        aside = bool(cited) and id not in cited
        notes.append(Footnote(id, subtask.title, sources, builds_on, cited=not aside))
    return tuple(notes)


def cited_in(text: str, ids: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids that a text cites in brackets, each where it is cited first."""
    known = {each.lower(): each for each in ids}
    brackets = (each[1] for each in BRACKETS.finditer(text))
    words = (word[0].lower() for inside in brackets for word in WORD.finditer(inside))
    return tuple(dict.fromkeys(known[word] for word in words if word in known))


def _resolved(
    finding: Finding, named: Mapping[str, Finding], seen: set[str], via: tuple[str, ...] = ()
) -> Iterator[Source]:
    """Yield its sources; in place of a finding that it names as one, those of that finding.
    `named`: each finding by its id in small letters, unless an input has that name.
    """
    for text in dict.fromkeys(each.strip() for each in finding.sources):
        alone = _ID_ALONE.match(text)
        other = named.get(alone[1].lower()) if alone else None
        if not text or (other and other.subtask_id in seen):
            continue
        if other is None:
            yield Source(text, via)
            continue
        seen.add(other.subtask_id)
        way = (*via, other.subtask_id)
        further = [*_resolved(other, named, seen, way)] if len(via) < MOST_HOPS else []
        yield from further or [Source(f"[{other.subtask_id}]", via)]


def items(report: Report, *, whole: bool = True) -> Iterator[Item]:
    """Yield each footnote with its sources. `whole` False leaves out most of many sources, and what
    the answer does not cite.
    """
    notes = footnotes(report)
    kept = [each for each in notes if whole or (each.cited and each.sources)]
    yield from (_item(each, MOST if whole else FEW) for each in kept)
    without = [] if whole else [each.subtask_id for each in notes if not each.sources]
    if without:
        names = "name no source" if len(without) > 1 else UNNAMED
        yield Item(f"{', '.join(f'[{id}]' for id in without)} {names}")
    if left := len(notes) - len(kept) - len(without):
        yield Item(f"and the sources of {pluralize(left, 'finding')} that the answer does not cite")


def _item(note: Footnote, most: int) -> Item:
    title = inline(shorten(note.title, TITLE_LETTERS))
    head = f"**{inline(f'[{note.subtask_id}]')}** {title}".rstrip()
    head += "" if note.cited else " (not cited in the answer)"
    told = [f"{source_text(each.text)}{_by_way(each.via)}" for each in note.sources[:most]]
    left = len(note.sources) - most
    told += [f"and {left} more"] if left > 0 else []
    if not told:
        given = inline(", ".join(f"[{each}]" for each in note.builds_on))
        told = [f"{UNNAMED}{f'; it was given {given}' if given else ''}"]
    if len(told) == 1:
        return Item(Marked(f"{head}: {told[0]}"), about=note.subtask_id)
    return Item(Marked(head), tuple(map(Marked, told)), note.subtask_id)


def _by_way(via: Sequence[str]) -> str:
    found = ", ".join(f"[{each}]" for each in via)
    return f" {inline(f'(by way of {found})')}" if via else ""
