"""Tables and plans on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from holdfast.cli.screen.looks import UNBOUNDED
from holdfast.contracts import Money
from holdfast.contracts.view import Preview, PreviewRow, RowStatus
from holdfast.rendering import blocks
from holdfast.rendering.many import beginning
from holdfast.rendering.preview import alternatives, lane_tables, plan_table, told, totals
from holdfast.state.graph import finishes
from holdfast.text import one_line

CRITICAL = "bold magenta"
STYLES: Mapping[RowStatus, str] = {
    "waiting": "dim",
    "running": "bold",
    "paused": "magenta",
    "complete": "green",
    "failed": "bold red",
    "escalated": "magenta",
    "skipped": "dim",
    "cancelled": "dim",
}
"""The word always stands beside the sign, so colour is never needed."""
SIZES: Mapping[str, Mapping[str, Any]] = {
    "subtask": {"ratio": 3},
    "role": {"max_width": 30},
    "needs": {"ratio": 1},
    "note": {"ratio": 2},
}
"""Widths of columns of text."""
ID_WIDTH = 14
INDENT = 4
"""Columns that a level of the tree takes."""
TITLE_WIDTH = 24
"""Columns below which a title in the tree says too little."""


def drawn(table: blocks.Table, width: int, *, wide: int, heads: bool) -> Table:
    """Return a table for a screen of so many columns; below `wide` only what is essential is shown.
    Where nothing is cut, nothing is stretched.
    """
    kept = [n for n, each in enumerate(table.columns) if width >= wide or each.essential]
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    shown.show_header, shown.expand = heads, width < UNBOUNDED
    for column in (table.columns[n] for n in kept):
        justify: JustifyMethod = "right" if column.kind == "number" else "left"
        sizes = SIZES.get(column.title, {} if column.title else {"max_width": ID_WIDTH})
        own = sizes if shown.expand else {}
        shown.add_column(column.title, no_wrap=True, overflow="ellipsis", justify=justify, **own)
    for line in table.lines:
        styles = [_style(table.columns[n], line) for n in kept]
        cells = (one_line(line.cells[n]) for n in kept)
        shown.add_row(*map(Text, cells, styles))
    return shown


def _style(column: blocks.Column, line: blocks.Line) -> str:
    style = STYLES[line.look] if line.look else ""
    if line.total or not column.title:
        return style if column.kind == "status" else "bold"
    if column.kind == "status":
        # Green words cannot be read on white.
        return "" if style == "green" else style
    return style if style == "dim" else ""


# ---------------------------------------------------------------- a plan


WIDE = 100
"""Columns below which role and the bounds of a price are left out."""


def preview(
    plan: Preview, cap: Money, *, width: int, full: bool = False, compared: bool = False
) -> RenderableType:
    """Return a plan before it runs: as a table, as a tree with its critical path, and in total;
    `full` adds all that each subtask is told, `compared` what the same work costs otherwise.
    """
    parts: list[RenderableType] = [
        drawn(plan_table(plan, cap), width, wide=WIDE, heads=True),
        Text(""),
    ]
    for each in lane_tables(plan):
        parts += [drawn(each, width, wide=WIDE, heads=True), Text("")]
    if tree := _tree(plan, width):
        parts += [tree, Text("")]
    if full and plan.plan:
        parts += [Text(line, style=style) for line, style in told(plan.plan)]
    if full or compared:
        for each in alternatives(plan):
            parts += [drawn(each, width, wide=WIDE, heads=True), Text("")]
    parts += [Text(one_line(line)) for line in totals(plan, cap)]
    return Group(*parts)


def _tree(plan: Preview, width: int) -> Tree | None:
    """Return each subtask below the one it waits for longest, and beside it what else it needs: so
    every chain reads from left to right, and the critical path is one of the branches. None where
    nothing waits, or a chain is too long for the screen: the table says what each needs.
    """
    # A reused finding takes no time, and still stands before what needs it.
    taken = {row.id: max(row.seconds, 0.001) for row in plan.subtasks}
    late = finishes(plan.subtasks, taken)
    root = Tree(Text("start", style="dim"), guide_style="dim")
    branches, depths = {"": root}, {"": 0}
    rows = {row.id: row for row in plan.subtasks}
    for row in (rows[id] for id in sorted(late, key=lambda id: late[id])):
        known = [edge for edge in row.depends_on if edge in branches]
        latest = _latest(plan, known, late)
        others = [edge for edge in known if edge != latest]
        branches[row.id] = branches[latest].add(_node(row, others, plan.critical_path))
        depths[row.id] = depths[latest] + 1
    deepest = max(depths.values())
    return root if deepest > 1 and width - deepest * INDENT >= TITLE_WIDTH else None


def _latest(plan: Preview, edges: list[str], late: dict[str, float]) -> str:
    """Return the dependency that ends last; of several, the one on the critical path."""
    return max(edges, key=lambda edge: (late[edge], edge in plan.critical_path), default="")


def _node(row: PreviewRow, others: list[str], critical: tuple[str, ...]) -> Text:
    on_path = len(critical) > 1 and row.id in critical
    node = Text(no_wrap=True, overflow="ellipsis")
    node.append(f"{row.id} ", style=CRITICAL if on_path else "bold")
    node.append(one_line(row.title), style="dim" if row.reused else "")
    if others:
        node.append(f"  + {_some(others)}", style="dim")
    return node


def _some(ids: list[str], most: int = 6) -> str:
    shown, more = beginning(ids, most)
    return ", ".join(shown) + (f" and {more} more" if more else "")
