"""The plan as a picture, and as the table that says the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import htpy
from htpy import Element, Node, caption, code, li, p, small, table, tbody, td, th, thead, tr, ul

from holdfast.contracts import Finding, Revision, Subtask
from holdfast.contracts.view import Preview, PreviewRow, Row
from holdfast.rendering.amounts import at_most, seconds
from holdfast.rendering.findings import who
from holdfast.rendering.html.layout import HEIGHT, WIDTH, Places, Point, layout, width_of
from holdfast.rendering.html.pictured import MARKS, Pictured, section, short, status_chip, wide
from holdfast.rendering.html.style import MOST_COLUMNS
from holdfast.rendering.preview import Column, columns, together, totals

TITLE_LETTERS, LOW_LETTERS, LEAST_ROLE = 23, 27, 6
"""Of a line, where letters are as broad as in the broadest of common fonts."""
TOO_WIDE = "The graph is wider than this window: scroll it sideways, or read the table. →"


def plan(run: Pictured) -> Node:
    """The chapter; nothing where there is no plan yet."""
    if not run.subtasks:
        return None
    placed = layout(tuple(run.subtasks.values()))
    picture = [
        p(class_=f"too-wide over-{columns_of(placed.width)} soft small")[TOO_WIDE],
        wide("The plan as a graph", _picture(run, placed), kind="graph"),
        _legend(run),
    ]
    if run.preview:
        priced = wide("The subtasks of the plan, and their price", _priced(run, run.preview))
        cap = run.view.dollars_cap if run.view else Decimal(0)
        lines = ul(".plain.small")[(li[each] for each in totals(run.preview, cap))]
        return section("plan", "Plan", priced, lines, picture)
    table = wide("The subtasks of the plan", _table(run))
    return section("plan", "Plan", picture, table, _revisions(run))


def _legend(run: Pictured) -> Element:
    arrows = any(each.depends_on for each in run.subtasks.values())
    chain = "as it is expected" if run.preview else "as it was measured"
    return p(".soft.small")[
        "An arrow leads from a subtask to what builds on it. " if arrows else "",
        f"Thick: the longest chain, {chain}. " if run.chain else "",
        "A dashed frame: added while the run went on." if _added(run) else "",
    ]


def _priced(run: Pictured, preview: Preview) -> Element:
    """Return the table that a terminal shows of a plan before it runs."""
    shown = columns(preview)
    rows = [tr[[_cell(run, each, row) for each in shown]] for row in preview.rows]
    sums = together(preview, shown)
    below = tr(".sum")[(td(_of(each))[said] for each, said in zip(shown, sums, strict=False))]
    return table[
        thead[tr[(th(_of(each), scope="col")[each.title] for each in shown)]],
        tbody[rows, below if sums else None],
    ]


def _of(column: Column) -> str:
    """Return the classes of a column; what a narrow terminal leaves out, so does a telephone."""
    kind = "n" if column.number else "name" if column.title == "subtask" else ""
    return "".join(f".{each}" for each in (kind, "" if column.essential else "more") if each)


def _cell(run: Pictured, column: Column, row: PreviewRow) -> Element:
    said = column.cell(row)
    if not column.title and said:
        return td[run.link(row.id)]
    return td(_of(column))[short(said, 200)]


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
    kinds = f"box s-box-{status.replace(' ', '-')}{' added' * added}{' chain' * (id in run.chain)}"
    found = run.findings.get(id)
    tries = _tried(found)
    below = _low(found, run.rows.get(id))
    role = _role(run, subtask)
    said = ", ".join(filter(None, (id, short(subtask.title, 200), status, role, below, tries)))
    return htpy.a(href=f"#{run.anchors[id]}")[
        htpy.title[said],
        htpy.rect(class_=kinds, x=f"{x:g}", y=f"{y:g}", width=WIDTH, height=HEIGHT, rx="10"),
        _text(x, y + 21, "name", f"{MARKS.get(status, '·')} {short(id, 18)}"),
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
    """How often, where that was more than once."""
    tries = 0 if found is None or found.reused_from else len(found.tries)
    return f"{tries} tries" if tries > 1 else ""


def _role(run: Pictured, subtask: Subtask) -> str:
    found = run.findings.get(subtask.id)
    return short(who(found, subtask) if found else subtask.role, 80)


def _low(found: Finding | None, row: Row | None) -> str:
    """The tiers that were asked in turn, and for how long."""
    if found is None:
        return f"{row.tier} · {seconds(row.seconds)}" if row and row.seconds else ""
    if found.reused_from:
        return "taken over"
    tiers = [each for each in dict.fromkeys(t.tier for t in found.tries) if each != "none"]
    took = seconds(found.seconds) if found.seconds else ""
    return " · ".join(filter(None, (" → ".join(tiers), took)))


def _table(run: Pictured) -> Element:
    rows = [_row(run, each) for each in run.subtasks.values()]
    heads = ("Subtask", "Title", "Role", "Builds on", "Status", "Tries")
    return table[
        caption(".soft.small")[f"{len(rows)} subtask{'s' * (len(rows) != 1)}"],
        thead[
            tr[
                (th(scope="col")[each] for each in heads),
                th(".n", scope="col")["Time"],
                th(".n", scope="col")["Price"],
            ]
        ],
        tbody[rows],
    ]


def _row(run: Pictured, subtask: Subtask) -> Element:
    found, row = run.findings.get(subtask.id), run.rows.get(subtask.id)
    took = found.seconds if found and not found.reused_from else row.seconds if row else 0.0
    spent = ""
    if found and not found.reused_from:
        spent = at_most(found.dollars, found.assumed)
    return tr[
        td[run.link(subtask.id)],
        td(".name")[short(subtask.title, 90), _why(subtask)],
        td[short(_role(run, subtask), 40)],
        td[run.links(subtask.depends_on) or "–"],
        td[
            status_chip("complete", "taken over")
            if found and found.reused_from
            else status_chip(run.status(subtask.id))
        ],
        td[_tries(found)],
        td(".n")[seconds(took) if took else ""],
        td(".n")[spent],
    ]


def _why(subtask: Subtask) -> Node:
    return small(".soft.reason")[short(subtask.why, 300)] if subtask.why else None


def _tries(found: Finding | None) -> str:
    if found is None or not found.tries:
        return ""
    tiers = [each.tier for each in found.tries if each.tier != "none"]
    return f"{len(found.tries)}: {' → '.join(tiers)}" if tiers else str(len(found.tries))


def _revisions(run: Pictured) -> Node:
    found = run.report.revisions
    return ul[(li[_revision(run, each)] for each in found)] if found else None


def _revision(run: Pictured, revision: Revision) -> Node:
    parts: list[Node] = [f"Change {revision.number} of the plan: {short(revision.why, 600)}"]
    changed = (
        ("added", revision.added),
        ("replaced", revision.replaced),
        ("dropped", revision.dropped),
    )
    for word, ids in changed:
        if ids:
            parts += [f"; {word} ", run.links(ids)]
    return parts if any(ids for _, ids in changed) else [*parts, code["nothing changed"]]
