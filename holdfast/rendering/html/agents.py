"""Each subtask by itself: what was found, on what it rests, and every exchange that led there."""

from __future__ import annotations

from collections.abc import Iterator

from htpy import Element, Node, article, code, details, div, h3, li, p, strong, summary, ul

from holdfast.contracts import Finding, Subtask
from holdfast.contracts.data import as_markdown, is_data
from holdfast.contracts.remarks import has_remarks
from holdfast.history.steps import WORDS
from holdfast.rendering import findings, orders
from holdfast.rendering.html.exchanges import exchange
from holdfast.rendering.html.pictured import Pictured, cut, section, short, status_chip
from holdfast.rendering.html.prose import prose, prose_line
from holdfast.rendering.html.sources import named
from holdfast.rendering.sources import MOST


def agents(run: Pictured) -> Node:
    """The chapter of the findings; nothing where nothing was planned."""
    ids = list(run.anchors)
    return section("findings", "Findings", [_subtask(run, each) for each in ids]) if ids else None


def supervisor(run: Pictured) -> Node:
    """What the supervisor asked for the run as a whole."""
    own = [each for each in run.steps if not each.subtask_id and each.kind in WORDS]
    told = [exchange(each, run, h3) for each in own if each.kind not in ("prepare", "reach")]
    return section("supervisor", "What the supervisor asked", told) if told else None


def _subtask(run: Pictured, id: str) -> Element:
    subtask = run.subtasks.get(id) or Subtask(id=id, title="", instruction="", role="")
    found = run.findings.get(id)
    status = run.status(id)
    return article(".subtask", id=run.anchors[id])[
        h3[code[short(id, 60)], short(subtask.title, 160), status_chip(status)],
        p(".soft.small")[_facts(run, subtask, found)],
        _chosen(subtask),
        _why(run, id, found),
        _text(run, found),
        _sources(found),
        _history(run, subtask, found),
    ]


def _facts(run: Pictured, subtask: Subtask, found: Finding | None) -> Node:
    if found is None:
        row = run.rows.get(subtask.id)
        return [
            short(row.who if row else subtask.role, 80),
            f" · {cut(row.note)}" if row and row.note else "",
        ]
    return prose_line(cut(findings.facts(found, subtask).partition(" · ")[2], 1_000))


def _why(run: Pictured, id: str, found: Finding | None) -> Node:
    if found is None or not found.why:
        return None
    taken = next((gap.took_down for gap in run.report.gaps if gap.subtask_id == id), ())
    return p(".why")[
        cut(found.why.rstrip(".")),
        ["; skipped because of it: ", run.links(taken)] if taken else None,
    ]


def _text(run: Pictured, found: Finding | None) -> Node:
    if found is None:
        return None
    partial = found.escalation.partial if found.escalation else ""
    text = as_markdown(found.data) if is_data(found) else (found.content or partial)
    return div(".said")[prose(text, run.anchors)] if text.strip() else None


def _sources(found: Finding | None) -> Node:
    if found is None or not found.sources:
        return None
    listed = [li[named(each)] for each in found.sources[:MOST]]
    more = len(found.sources) - len(listed)
    return [
        p[strong["Rests on"]],
        ul(".sources.small")[listed, li[f"and {more} more"] if more > 0 else None],
    ]


def _history(run: Pictured, subtask: Subtask, found: Finding | None) -> Node:
    """What it was asked to do, its tries, and its exchanges: all that there was of them."""
    steps = run.steps_of(subtask.id)
    lines = [*_asked(subtask)]
    tries = [*findings.tries(found)] if found else []
    declined = [*_declined(run, subtask.id)]
    many = f"{len(steps)} step{'s' * (len(steps) != 1)}" if steps else "what was asked"
    return details[
        summary[f"How it was done: {many}", f", {len(tries)} tries" if len(tries) > 1 else ""],
        ul(".small")[lines] if lines else None,
        ul(".small")[(li[prose_line(cut(each))] for each in tries)]
        if tries and not (found and has_remarks(found))
        else None,
        [exchange(each, run) for each in steps],
        ul(".small")[(li[prose_line(cut(each))] for each in declined)] if declined else None,
    ]


def _declined(run: Pictured, subtask_id: str) -> Iterator[str]:
    """The calls of tools that a person did not allow: no history of an agent has them."""
    given = (each for each in run.report.orders if each.command == "decline")
    yield from orders.lines(tuple(e for e in given if e.about.startswith(f"{subtask_id}: ")))


def _chosen(subtask: Subtask) -> Node:
    """For whom it was planned, who stands in, and why."""
    if not subtask.secondary:
        return p[strong["Why: "], cut(subtask.why, 1_000)] if subtask.why else None
    roles = f"{short(subtask.role, 80)}, else {short(subtask.secondary, 80)}"
    return p[strong["For: "], roles, f": {cut(subtask.why, 1_000)}" if subtask.why else None]


def _asked(subtask: Subtask) -> Iterator[Element]:
    if subtask.instruction:
        yield li[strong["Instruction: "], cut(subtask.instruction)]
    if subtask.acceptance_criteria:
        yield li[strong["Accepted when: "], cut(subtask.acceptance_criteria)]
    for check in subtask.checks:
        yield li[strong["Check: "], code[f"{check.kind} {cut(check.argument, 500)}".strip()]]
    if subtask.inputs:
        yield li[strong["Inputs: "], cut(", ".join(subtask.inputs), 2_000)]
