"""The footnotes of the answer: what each citation rests on, one click away from it."""

from __future__ import annotations

from htpy import Element, Node, a, li, small, strong, ul

from holdfast.rendering import findings
from holdfast.rendering.html.pictured import Pictured, cut, section, short
from holdfast.rendering.sources import GIVEN, MOST, TITLE, UNCITED, UNNAMED, Footnote, Source, more


def sources(run: Pictured) -> Node:
    """The chapter; nothing where no finding names a source and none is cited."""
    notes = [_footnote(run, each) for each in run.footnotes]
    return section("sources", TITLE, ul(".plain.notes")[notes]) if notes else None


def named(text: str) -> Node:
    """One source as its agent named it: an address as a link."""
    said = cut(text.strip(), findings.MOST_SOURCE_CHARACTERS)
    if text.startswith(("https://", "http://")) and not any(map(str.isspace, said)):
        return a(".out", href=text, rel="noopener noreferrer nofollow")[said]
    return said


def _footnote(run: Pictured, note: Footnote) -> Element:
    told = [li[_source(run, each)] for each in note.sources[:MOST]]
    told += [li[each] for each in more(note, MOST)]
    return li(id=run.cited_at[note.subtask_id])[
        strong["[", run.link(note.subtask_id), "]"],
        f" {short(note.title, 160)} ",
        _back(run, note),
        ul(".small")[told or li[_unnamed(run, note)]],
    ]


def _back(run: Pictured, note: Footnote) -> Node:
    """Return the way back to the answer; of a run that goes on there is none yet."""
    if not note.cited:
        return small(".soft")[f"({UNCITED})"]
    there = run.report.answer.strip()
    return a(href="#answer", aria_label="Back to the answer")["↩"] if there else None


def _source(run: Pictured, source: Source) -> Node:
    way = small(".soft")[" (by way of ", run.links(source.via), ")"] if source.via else None
    return [named(source.text), way]


def _unnamed(run: Pictured, note: Footnote) -> Node:
    return [UNNAMED, f"; {GIVEN} " if note.builds_on else "", run.links(note.builds_on)]
