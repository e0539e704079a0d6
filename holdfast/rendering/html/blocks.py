"""Blocks as HTML. Elements escape what they hold; Markdown goes through `prose`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from htpy import (
    Element,
    Node,
    a,
    dd,
    details,
    div,
    dl,
    dt,
    h3,
    li,
    p,
    pre,
    small,
    summary,
    tbody,
    td,
    th,
    thead,
    tr,
    ul,
)
from htpy import table as grid

from holdfast.rendering.blocks import (
    Block,
    Code,
    Column,
    Fact,
    Facts,
    Folded,
    Heading,
    Item,
    Items,
    Line,
    Marked,
    Paragraph,
    Prose,
    Table,
)
from holdfast.rendering.html.pictured import Pictured, cut, short, status_chip, wide
from holdfast.rendering.html.prose import cited, prose, prose_line

MOST_WORDS = 4_000
"""Letters of a line of plain text."""
CELL_LETTERS, WHY_LETTERS = 200, 300


def write(run: Pictured, blocks: Iterable[Block], places: Mapping[str, str] | None = None) -> Node:
    """Return the blocks as elements. `places`: where ids in brackets lead, if not to findings."""
    return [_written(run, each, run.anchors if places is None else places) for each in blocks]


def text(said: str, places: Mapping[str, str]) -> Node:
    """Return a text within a line."""
    if isinstance(said, Marked):
        return prose_line(cut(said), places)
    return cited(cut(said, MOST_WORDS), places)


def _written(run: Pictured, block: Block, places: Mapping[str, str]) -> Node:
    match block:
        case Heading(said):
            return h3[text(said, places)]
        case Paragraph(said):
            return p[text(said, places)]
        case Facts(facts):
            return dl(".facts")[(div[dt[each.name], dd[_fact(each)]] for each in facts)]
        case Items(items):
            return ul[(_item(run, each, places) for each in items)]
        case Folded(title, lines):
            return details[summary[title], ul[(li[text(each, places)] for each in lines)]]
        case Prose(said):
            return div(".said")[prose(said, places)]
        case Code(said):
            return pre[cut(said)]
        case Table():
            return _table(run, block)


def _fact(fact: Fact) -> Node:
    return [fact.value, small[fact.more] if fact.more else None]


def _item(run: Pictured, item: Item, places: Mapping[str, str]) -> Element:
    below = ul(".small")[(li[text(each, places)] for each in item.below)] if item.below else None
    if not item.about:
        return li[text(item.text, places), below]
    back = a(href="#answer", aria_label="Back to the answer")["↩"]
    cites = run.report.answer.strip() and item.about in run.cited
    return li(id=run.cited_at[item.about])[
        text(item.text, places), [" ", back] if cites else None, below
    ]


def _table(run: Pictured, table: Table) -> Element:
    heads = (th(_classes(each), scope="col")[each.title] for each in table.columns)
    return wide(
        "Table",
        grid[thead[tr[heads]], tbody[(_line(run, table, each) for each in table.lines)]],
    )


def _line(run: Pictured, table: Table, line: Line) -> Element:
    cells = (
        td(_classes(column))[_cell(run, column, cell, line)]
        for column, cell in zip(table.columns, line.cells, strict=True)
    )
    return tr(".sum" if line.total else "")[cells]


def _classes(column: Column) -> str:
    kinds = ("n" if column.kind == "number" else "", "name" if column.title == "subtask" else "")
    named = (*kinds, "" if column.essential else "more")
    return "".join(f".{each}" for each in named if each)


def _cell(run: Pictured, column: Column, cell: str, line: Line) -> Node:
    if column.kind == "ids":
        return run.links(cell.split(", ")) if cell else None
    if column.kind == "status":
        return status_chip(line.look or "waiting", cell)
    if column.title == "subtask" and line.why:
        return [short(cell, CELL_LETTERS), small(".soft.reason")[short(line.why, WHY_LETTERS)]]
    return short(cell, CELL_LETTERS)
