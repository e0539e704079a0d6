"""A plan before it runs, on screen: what it will do, in which order, for how much. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from cli.screen.waiting import price
from orchestrator.contracts import Money, Plan
from orchestrator.rules.graph import finishes
from orchestrator.text import for_terminal, one_line
from orchestrator.view import Preview, PreviewRow
from orchestrator.views.amounts import bounded, money, seconds
from orchestrator.views.many import LINES, beginning

WIDE = 100
"""Columns below which role, needs and the bounds of a price are left out."""
CRITICAL = "bold magenta"
INDENT = 4
"""Columns that a level of the tree takes."""
TITLE_WIDTH = 24
"""Columns below which a title in the tree says too little."""


def preview(plan: Preview, cap: Money, *, width: int, full: bool = False) -> RenderableType:
    """The plan as a table, as a graph with its critical path, and in total; `full` adds all that
    each subtask is told.
    """
    parts: list[RenderableType] = [_table(plan, wide=width >= WIDE), Text("")]
    if any(row.depends_on for row in plan.subtasks):
        parts += [_graph(plan, width), Text("")]
    if full and plan.plan:
        parts += [Text(line, style=style) for line, style in told(plan.plan)]
    parts += [Text(line) for line in totals(plan, cap)]
    return Group(*parts)


def totals(plan: Preview, cap: Money) -> list[str]:
    """Price, time and what is sent where, in a line each."""
    first, more = beginning(plan.critical_path, LINES)
    path = " → ".join([*first, *([f"{more} more"] if more else [])])
    most = f", never above {money(cap)}" if plan.asks else ""
    lines = [f"Expected: {price(plan)}{most} · about {seconds(plan.makespan)} of work"]
    if len(plan.critical_path) > 1:
        lines.append(f"Critical path: {path}")
    for row in plan.subtasks:
        if row.kind == "team":
            what = f"{row.id} is a team: a run of its own, with its own plan and subtasks"
            lines.append(f"{what}, for up to {exact(row.high)}")
        elif row.kind == "agent":
            what = f"{row.id} is an agent with tools: up to {row.turns} turns"
            lines.append(f"{what}, of which {exact(row.slice)} is reserved at a time")
            if row.approval:
                asks = one_line(", ".join(row.approval))
                lines.append(f"{row.id} waits for your approval of each call of {asks}")
        if own := bounded(row):
            lines.append(f"{row.id} has its own bounds: {own}")
    lines += [one_line(f"{each[:1].upper()}{each[1:]}") for each in plan.composed]
    lines += [f"Taken of {one_line(each)}" for each in plan.taken]
    lines += [f"Goes without {one_line(each)}" for each in plan.without]
    if plan.asks:
        lines.append("In no row: a subtask tried again, a changed plan, a revised answer.")
        sent = ", ".join(map(one_line, plan.leaves))
        where = f" at {one_line(plan.endpoint)}" if plan.endpoint else ""
        lines.append(f"Sent to the models{where}: {sent}")
        lines += [f"Reached by tools: {one_line(each)}" for each in plan.reached]
    elif any(row.paid for row in plan.rows):
        lines.append("No model is asked any more.")
    else:
        lines.append("No model is asked; nothing leaves this machine.")
    return lines


def exact(amount: Money | None) -> str:
    """To a hundredth of a cent, so that the rows of a table add up to its total."""
    return "unpriced" if amount is None else f"${amount:.4f}"


def told(plan: Plan) -> list[tuple[str, str]]:
    """All that a plan says beyond its table: lines with their styles."""
    lines: list[tuple[str, str]] = []
    for each in plan.subtasks:
        lines.append((f"{each.id} {one_line(each.title)}", "bold"))
        lines += _paragraph("why: ", each.why)
        lines += _paragraph("", each.instruction)
        lines += _paragraph("inputs: ", ", ".join(each.inputs))
        lines += _paragraph("must meet: ", each.acceptance_criteria)
        checks = "; ".join(f"{check.kind} {check.argument}".strip() for check in each.checks)
        lines += [*_paragraph("checked by code: ", checks), ("", "")]
    answer = f"by {plan.strategy}"
    lines.append((f"The answer, {answer}", "bold"))
    return [*lines, *_paragraph("", plan.synthesis_instruction or "as the goal asks"), ("", "")]


def _paragraph(name: str, text: str) -> list[tuple[str, str]]:
    """A text below its subtask, in its own lines; nothing of an empty one."""
    first, *rest = for_terminal(text.strip(), lines=True).splitlines() or [""]
    return [(f"  {name}{first}", ""), *((f"  {line}", "") for line in rest)] if first else []


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[PreviewRow], str]
    options: Mapping[str, Any] = field(default_factory=dict)
    essential: bool = True
    """Whether it is there on a narrow screen, too."""
    priced: bool = False
    """Whether it says nothing of a plan that asks no model."""


_RIGHT = {"justify": "right"}
_COLUMNS = (
    _Column("", lambda row: row.id if row.of_plan else "", {"max_width": 14}),
    _Column("subtask", lambda row: row.title, {"ratio": 3}),
    _Column("role", lambda row: row.role, {"max_width": 20}, essential=False),
    _Column("tier", lambda row: _tier(row)),
    _Column("needs", lambda row: ", ".join(row.depends_on), {"ratio": 1}, essential=False),
    _Column("low", lambda row: _price(row, row.low), _RIGHT, essential=False, priced=True),
    _Column("expected", lambda row: _price(row, row.expected), _RIGHT, priced=True),
    _Column("high", lambda row: _price(row, row.high), _RIGHT, essential=False, priced=True),
    _Column("time", lambda row: _time(row), _RIGHT),
)


def _tier(row: PreviewRow) -> str:
    if row.kind == "team":
        return "team"
    return "tool" if row.tier == "none" else row.tier


def _time(row: PreviewRow) -> str:
    if row.reused:
        return "reused"
    if row.paid:
        return "paid"
    return seconds(row.seconds) if row.of_plan else ""


def _price(row: PreviewRow, amount: Money | None) -> str:
    return exact(amount) if row.asks or row.paid else ""


def _table(plan: Preview, *, wide: bool) -> Table:
    priced = any(row.asks or row.paid for row in plan.rows)
    columns = [
        each for each in _COLUMNS if (wide or each.essential) and (priced or not each.priced)
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", expand=True)
    for column in columns:
        table.add_column(column.title, no_wrap=True, overflow="ellipsis", **column.options)
    for row in plan.rows:
        style = "dim" if row.reused or row.paid else ""
        table.add_row(*(Text(one_line(each.cell(row)), style=style) for each in columns))
    if priced:
        whole = {"low": plan.low, "expected": plan.expected, "high": plan.high}
        cells = [exact(whole[each.title]) if each.priced else "" for each in columns]
        cells[1] = "together"
        table.add_row(*(Text(cell, style="bold") for cell in cells))
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
