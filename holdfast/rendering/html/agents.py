"""Each subtask by itself: what was found, on what it rests, and every exchange that led there."""

from __future__ import annotations

from collections.abc import Iterator

from htpy import Element, Node, article, code, details, h3, li, strong, summary, ul

from holdfast.contracts import Finding, Subtask
from holdfast.history.steps import WORDS
from holdfast.rendering import findings, orders
from holdfast.rendering.blocks import Block, Paragraph, Prose, listed
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.exchanges import exchange
from holdfast.rendering.html.pictured import Pictured, begun, cut, section, short
from holdfast.rendering.preview import instructions
from holdfast.text import pluralize


def agents(run: Pictured) -> Node:
    """Return the chapter of the findings; nothing where nothing was planned."""
    ids = list(run.anchors)
    return section("findings", [_subtask(run, each) for each in ids]) if ids else None


def supervisor(run: Pictured) -> Node:
    """Return what the supervisor asked for the run as a whole."""
    own = [each for each in run.steps if not each.subtask_id and each.kind in WORDS]
    # What no subtask of the plan can show.
    own += [each for each in run.steps if each.taken_back and each.subtask_id not in run.anchors]
    told = [exchange(each, run, h3) for each in own if each.kind not in ("prepare", "reach")]
    return section("supervisor", told) if told else None


def _subtask(run: Pictured, id: str) -> Element:
    subtask = run.subtasks.get(id) or Subtask(id=id, title="", instruction="", role="")
    found = run.findings.get(id)
    return article(".subtask", id=run.anchors[id])[
        h3[code[short(id, 60)], short(subtask.title, 160), run.chip(id)],
        write(run, _found(found, subtask) if found else _awaited(run, subtask)),
        _history(run, subtask),
    ]


def _found(found: Finding, subtask: Subtask) -> Iterator[Block]:
    yield Paragraph(findings.facts(found, subtask))
    yield from findings.circumstances(found, subtask)
    if text := findings.said_in(found):
        yield Prose(text)


def _awaited(run: Pictured, subtask: Subtask) -> Iterator[Block]:
    row = run.rows.get(subtask.id)
    yield Paragraph(" · ".join(filter(None, (row.who, row.note))) if row else subtask.role)
    yield from listed([f"planned because: {subtask.why}"] if subtask.why else [])


def _history(run: Pictured, subtask: Subtask) -> Node:
    """Return what it was asked to do, and its exchanges: all that there was of them."""
    steps = run.steps_of(subtask.id)
    many = pluralize(len(steps), "step") if steps else "what was asked"
    asked = [
        li[strong[f"{begun(name)}: "], cut(text)] for name, text in instructions(subtask).items()
    ]
    return details[
        summary[f"How it was done: {many}"],
        ul(".small")[asked] if asked else None,
        [exchange(each, run) for each in steps],
        write(run, listed(_declined(run, subtask.id))),
    ]


def _declined(run: Pictured, subtask_id: str) -> Iterator[str]:
    """Yield the calls of tools that a person did not allow: no history of an agent has them."""
    given = (each for each in run.report.orders if each.command == "decline")
    yield from orders.lines(tuple(e for e in given if e.about.startswith(f"{subtask_id}: ")))
