"""The plan as a picture, and as the table that says the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import htpy
from htpy import Element, Node, p

from holdfast.contracts import Finding, Subtask
from holdfast.contracts.view import Row
from holdfast.rendering.amounts import seconds
from holdfast.rendering.blocks import listed
from holdfast.rendering.findings import who
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.layout import HEIGHT, WIDTH, Places, Point, layout, width_of
from holdfast.rendering.html.pictured import Pictured, section, short, wide
from holdfast.rendering.html.style import MOST_COLUMNS
from holdfast.rendering.preview import alternatives, lane_tables, plan_table, totals
from holdfast.rendering.report import revisions, subtask_table
from holdfast.rendering.status import SIGNS

TITLE_LETTERS, LOW_LETTERS, LEAST_ROLE = 23, 27, 6
"""Letters of a line, in the broadest of common fonts."""
TOO_WIDE = "The graph is wider than this window: scroll it sideways, or read the table. →"


def plan(run: Pictured) -> Node:
    """Return the chapter; nothing where there is no plan yet."""
    if not run.subtasks:
        return None
    placed = layout(tuple(run.subtasks.values()))
    picture = [
        p(class_=f"too-wide over-{columns_of(placed.width)} soft small")[TOO_WIDE],
        wide("The plan as a graph", _picture(run, placed), kind="graph"),
        _legend(run),
    ]
    if run.preview:
        cap = run.view.dollars_cap if run.view else Decimal(0)
        said = listed(totals(run.preview, cap))
        lanes, others = lane_tables(run.preview), alternatives(run.preview)
        priced = (plan_table(run.preview, cap), *lanes, *others, *said)
        return section("plan", write(run, priced), picture)
    rows, expected = None if run.over else run.rows, run.view.preview if run.view else None
    table = subtask_table(run.report, rows, expected)
    changes = listed(revisions(run.report), "Changes of the plan", 3)
    return section("plan", picture, write(run, [table, *changes]))


def _legend(run: Pictured) -> Element:
    arrows = any(each.depends_on for each in run.subtasks.values())
    chain = "as it is expected" if run.preview else "as it was measured"
    unwritten = run.view is not None and run.view.phase == "planning"
    return p(".soft.small")[
        "Still being written: what has begun of it already. " if unwritten else "",
        "An arrow leads from a subtask to what builds on it. " if arrows else "",
        f"Thick: the longest chain, {chain}. " if run.chain else "",
        "A dashed frame: added while the run went on." if _added(run) else "",
    ]


def _added(run: Pictured) -> set[str]:
    return {each for revision in run.report.revisions for each in revision.added}


def columns_of(width: float) -> int:
    """Return how many columns a picture has, as far as the style tells them apart."""
    return next((n for n in range(1, MOST_COLUMNS) if width_of(n) >= width), MOST_COLUMNS)


def _picture(run: Pictured, placed: Places) -> Element:
    steps = set(pairwise(run.chain))
    arrows = [
        _arrow(points, "chain" if edge in steps else "")
        for edge, points in sorted(placed.arrows.items(), key=lambda each: each[0] in steps)
    ]
    added = _added(run)
    boxes = [_box(run, id, placed, added=id in added) for id in placed.boxes]
    label = f"{len(boxes)} subtasks; the table below says the same in words"
    return htpy.svg(
        ".plan",
        role="group",
        aria_label=label,
        viewBox=f"0 0 {placed.width:g} {placed.height:g}",
        width=f"{placed.width:g}",
        height=f"{placed.height:g}",
    )[arrows, boxes]


def _arrow(points: Sequence[Point], kind: str) -> Node:
    x, y = points[0]
    path = [f"M{x:g} {y:g}"]
    for here, there in pairwise(points):
        half = (there[0] - here[0]) / 2
        path.append(
            f"C{here[0] + half:g} {here[1]:g} {there[0] - half:g} {there[1]:g}"
            f" {there[0]:g} {there[1]:g}"
        )
    x, y = points[-1]
    return [
        htpy.path(class_=f"edge {kind}".strip(), d=" ".join(path)),
        htpy.path(class_=f"tip {kind}".strip(), d=f"M{x:g} {y:g}l-8 -4v8z"),
    ]


def _box(run: Pictured, id: str, placed: Places, *, added: bool) -> Element:
    subtask, status = run.subtasks[id], run.status(id)
    x, y = placed.boxes[id]
    kinds = f"box s-box-{status}{' added' * added}{' chain' * (id in run.chain)}"
    found = run.findings.get(id)
    tries = _tried(found)
    below = _low(found, run.rows.get(id))
    role = _role(run, subtask)
    said = ", ".join(filter(None, (id, short(subtask.title, 200), status, role, below, tries)))
    return htpy.a(href=f"#{run.anchors[id]}")[
        htpy.title[said],
        htpy.rect(class_=kinds, x=f"{x:g}", y=f"{y:g}", width=WIDTH, height=HEIGHT, rx="10"),
        _text(x, y + 21, "name", f"{SIGNS[status]} {short(id, 18)}"),
        htpy.text(class_="dim climb", x=f"{x + WIDTH - 12:g}", y=f"{y + 21:g}", text_anchor="end")[
            tries
        ],
        [_text(x, y + 38 + 16 * n, "", line) for n, line in enumerate(folded(subtask.title))],
        _text(
            x,
            y + 74,
            "dim climb" if "→" in below else "dim",
            footed(role, below),
        ),
    ]


def folded(title: str) -> list[str]:
    """Return a title in at most two lines of a box, between words where that is possible."""
    line = short(title, 2 * TITLE_LETTERS + 1)
    if len(line) <= TITLE_LETTERS:
        return [line] if line else []
    end = line.rfind(" ", 0, TITLE_LETTERS + 1)
    # A first line that is half empty would leave the second too little room.
    first = end if end > TITLE_LETTERS // 2 else TITLE_LETTERS
    return [line[:first], short(line[first:].lstrip(), TITLE_LETTERS)]


def footed(role: str, below: str) -> str:
    """Return the lowest line of a box: a long role makes room for tiers and time."""
    room = max(LOW_LETTERS - len(below) - 3, LEAST_ROLE) if below else LOW_LETTERS
    return short(f"{short(role, room)} · {below}".rstrip(" ·"), LOW_LETTERS)


def _text(x: float, y: float, kind: str, said: str) -> Element:
    return htpy.text(class_=kind or None, x=f"{x + 12:g}", y=f"{y:g}")[said]


def _tried(found: Finding | None) -> str:
    tries = 0 if found is None or found.reused_from else len(found.tries)
    return f"{tries} tries" if tries > 1 else ""


def _role(run: Pictured, subtask: Subtask) -> str:
    found = run.findings.get(subtask.id)
    return short(who(found, subtask) if found else subtask.role, 80)


def _low(found: Finding | None, row: Row | None) -> str:
    """Return the tiers that were asked in turn, and for how long."""
    if found is None:
        return f"{row.tier} · {seconds(row.seconds)}" if row and row.seconds else ""
    if found.reused_from:
        return "taken over"
    tiers = [each for each in dict.fromkeys(t.tier for t in found.tries) if each != "none"]
    took = seconds(found.seconds) if found.seconds else ""
    return " · ".join(filter(None, (" → ".join(tiers), took)))
