"""A plan before it runs, on screen: what it will do, in which order, for how much. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from holdfast.cli.screen.looks import UNBOUNDED
from holdfast.contracts import Money
from holdfast.contracts.view import Preview, PreviewRow
from holdfast.rendering.preview import columns, together, told, totals
from holdfast.state.graph import finishes
from holdfast.text import one_line

WIDE = 100
"""Columns below which role, needs and the bounds of a price are left out."""
CRITICAL = "bold magenta"
SIZES: Mapping[str, Mapping[str, Any]] = {
    "": {"max_width": 14},
    "subtask": {"ratio": 3},
    "role": {"max_width": 20},
    "needs": {"ratio": 1},
}
"""How wide the columns of texts may be."""
INDENT = 4
"""Columns that a level of the tree takes."""
TITLE_WIDTH = 24
"""Columns below which a title in the tree says too little."""


def preview(plan: Preview, cap: Money, *, width: int, full: bool = False) -> RenderableType:
    """The plan as a table, as a graph with its critical path, and in total; `full` adds all that
    each subtask is told.
    """
    parts: list[RenderableType] = [_table(plan, width), Text("")]
    if any(row.depends_on for row in plan.subtasks):
        parts += [_graph(plan, width), Text("")]
    if full and plan.plan:
        parts += [Text(line, style=style) for line, style in told(plan.plan)]
    parts += [Text(line) for line in totals(plan, cap)]
    return Group(*parts)


def _table(plan: Preview, width: int) -> Table:
    shown = columns(plan, wide=width >= WIDE)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    # Where nothing is cut, nothing is stretched.
    table.expand = width < UNBOUNDED
    for column in shown:
        justify: JustifyMethod = "right" if column.number else "left"
        own = SIZES.get(column.title, {}) if table.expand else {}
        table.add_column(column.title, no_wrap=True, overflow="ellipsis", justify=justify, **own)
    for row in plan.rows:
        style = "dim" if row.reused or row.paid else ""
        table.add_row(*(Text(one_line(each.cell(row)), style=style) for each in shown))
    if sums := together(plan, shown):
        table.add_row(*(Text(cell, style="bold") for cell in sums))
    return table


# ---------------------------------------------------------------- the graph


def _graph(plan: Preview, width: int) -> RenderableType:
    """The plan as a tree, or in layers where its chains are too long for the screen."""
    # A reused finding takes no time, and still stands before what needs it.
    taken = {row.id: max(row.seconds, 0.001) for row in plan.subtasks}
    late = finishes(plan.subtasks, taken)
    deepest = max(_depths(plan, late).values())
    room = width - deepest * INDENT
    return _tree(plan, late) if room >= TITLE_WIDTH else _layers(plan, late)


def _tree(plan: Preview, late: dict[str, float]) -> Tree:
    """Each subtask below the one it waits for longest; what else it needs beside it.

    So every chain reads from left to right, and the critical path is one of the branches.
    """
    root = Tree(Text("start", style="dim"), guide_style="dim")
    branches = {"": root}
    rows = {row.id: row for row in plan.subtasks}
    for row in (rows[id] for id in sorted(late, key=lambda id: late[id])):
        known = [edge for edge in row.depends_on if edge in branches]
        latest = _latest(plan, known, late)
        others = [edge for edge in known if edge != latest]
        branches[row.id] = branches[latest].add(_node(row, others, plan.critical_path))
    return root


def _layers(plan: Preview, late: dict[str, float]) -> Table:
    """What could run at the same time, a line for each step of the longest chain."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(justify="right", style="dim")
    table.add_column(overflow="fold")
    depths = _depths(plan, late)
    for depth in sorted(set(depths.values())):
        ids = [row.id for row in plan.subtasks if depths[row.id] == depth]
        shown = [Text(id, style=CRITICAL if id in plan.critical_path else "") for id in ids]
        table.add_row(str(depth), Text(", ").join(shown))
    return table


def _depths(plan: Preview, late: dict[str, float]) -> dict[str, int]:
    """For each subtask, how many the longest chain has that ends with it."""
    needs = {row.id: row.depends_on for row in plan.subtasks}
    depths: dict[str, int] = {}
    for id in sorted(late, key=lambda each: late[each]):
        depths[id] = 1 + max((depths.get(edge, 0) for edge in needs[id]), default=0)
    return depths


def _latest(plan: Preview, edges: list[str], late: dict[str, float]) -> str:
    """The dependency that ends last; of several, the one on the critical path."""
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
    shown = ", ".join(ids[:most])
    return f"{shown} and {len(ids) - most} more" if len(ids) > most else shown
