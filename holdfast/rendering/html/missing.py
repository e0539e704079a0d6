"""What an answer lacks, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from htpy import Element, Node, div, h3, li, p, strong, ul

from holdfast.contracts import Gap
from holdfast.rendering.html.pictured import Pictured, command, cut, section, status_chip
from holdfast.rendering.html.prose import cited
from holdfast.rendering.page import to_go_on
from holdfast.text.marks import LOOK_FIRST

MOST_WORDS = 4_000
"""Letters of one line."""


def missing(run: Pictured) -> Node:
    """The chapter: gaps, contradictions, what was not run. What no finding supports stands above
    the answer.
    """
    report = run.report
    gaps = [li[_gap(each, run)] for each in report.gaps]
    parts = [
        ul[gaps] if gaps else None,
        _listed("Contradictions", report.conflicts, run),
        _listed("Not run", [f"{each.what}: {each.why}" for each in report.not_run], run),
        _to_do(run),
    ]
    kept = [each for each in parts if each is not None]
    kind = "broken" if report.status == "failed" and run.over else "warnings"
    return section("missing", "What is missing", kept, kind=kind) if kept else None


def look_first(run: Pictured) -> Node:
    """What of the answer no finding supports, for the place above it."""
    flags = _listed(LOOK_FIRST, run.report.flags, run)
    return div(".doubt")[flags] if flags else None


def notes(run: Pictured) -> Node:
    """The chapter of what a reader must know of how the answer came about."""
    items = [li[cited(cut(each, MOST_WORDS), run.anchors)] for each in run.report.notes]
    return section("notes", "Notes", ul[items]) if items else None


def _gap(gap: Gap, run: Pictured) -> Node:
    where = [" (", run.link(gap.subtask_id), ")"] if gap.subtask_id else None
    taken = ["; skipped because of it: ", run.links(gap.took_down)] if gap.took_down else None
    said = cut(gap.why.rstrip("."), MOST_WORDS)
    return [strong[cut(gap.title, 300)], where, " ", status_chip(gap.status), " ", said, taken]


def _listed(title: str, lines: Sequence[str], run: Pictured) -> Node:
    items = [li[cited(cut(each, MOST_WORDS), run.anchors)] for each in lines]
    return [h3[title], ul[items]] if items else None


def _to_do(run: Pictured) -> Element | None:
    report = run.report
    said, typed = to_go_on(report, run.to_type) if run.over else ("", "")
    if not said:
        return None
    return command(said, typed) if typed else p[said]
