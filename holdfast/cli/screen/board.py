"""A run as it stands, on screen: pure functions of its RunView."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.cells import chop_cells
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.screen.invocation import STARTER, as_called
from holdfast.cli.screen.looks import UNBOUNDED
from holdfast.cli.screen.preview import preview
from holdfast.cli.screen.streams import Safe
from holdfast.cli.screen.waiting import reminders
from holdfast.contracts.view import Row, RowStatus, RunView
from holdfast.rendering.amounts import at_most, money, seconds
from holdfast.rendering.board import PHASES
from holdfast.rendering.many import LINES, beginning, chosen
from holdfast.rendering.preview import told, totals
from holdfast.text import one_line

WIDE = 80
"""Columns below which role and note are left out."""
ASKED = 400
"""Letters of a question that a screen which is redrawn shows."""
SETTLED: tuple[RowStatus, ...] = ("complete", "failed", "escalated", "skipped", "cancelled")
_LOOK: dict[RowStatus, tuple[str, str]] = {
    "waiting": ("·", "dim"),
    "running": ("▸", "bold"),
    "paused": ("‖", "magenta"),
    "complete": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "escalated": ("?", "magenta"),
    "skipped": ("-", "dim"),
    "cancelled": ("-", "dim"),
}
"""Mark and style of each status; the word is always beside the mark, so colour is never needed."""


def who(row: Row) -> str:
    """The role, with its tier when a model does the work and the try when it is not the first."""
    parts = [row.who]
    if row.tier not in ("", "none"):
        parts.append(row.tier)
    if row.try_number > 1:
        parts.append(f"try {row.try_number}")
    return " · ".join(parts)


def price(row: Row) -> str:
    """What a row cost; nothing to say for one that asked no model, or none yet, or whose finding
    was given or taken over.
    """
    unasked = row.tier in ("", "none") or row.status == "waiting" or row.try_number == 0
    return "" if unasked and row.dollars == 0 else at_most(row.dollars, row.assumed)


def headline(view: RunView, elapsed: float) -> str:
    """Where the run stands, in one line."""
    parts = [view.status.replace("_", " ") if view.status else PHASES[view.phase]]
    if view.rows and view.phase != "approval":
        settled = sum(row.status in SETTLED for row in view.rows)
        parts.append(f"{settled} of {len(view.rows)} settled")
    if view.model_calls or view.dollars_spent is None or view.dollars_reserved:
        parts.append(f"{at_most(view.dollars_spent, view.assumed)} of {money(view.dollars_cap)}")
        parts.append(f"{view.model_calls} of {view.model_calls_cap} model calls")
    parts.append(seconds(elapsed))
    return " · ".join(parts)


def board(
    view: RunView,
    *,
    at: datetime | None = None,
    notes: tuple[str, ...] = (),
    width: int = 100,
    full: bool = False,
    brief: bool = False,
) -> RenderableType:
    """The whole run as a table under its headline; a plan that waits for approval, with its price.

    A view's clock stands still between two events of its run; `at` is the reader's, by which what
    runs has run longer. `notes` are the watcher's own, after the run's. Below 80 columns of `width`
    only the essential ones are shown. `full` adds what each subtask of the plan is told; `brief`
    cuts what is asked of a person to what a screen that is redrawn has room for.
    """
    late = max(0.0, (at - view.now).total_seconds()) if at and view.phase != "closed" else 0.0
    elapsed = (view.now - view.started).total_seconds() + late
    parts: list[RenderableType] = [
        Text(headline(view, elapsed), style="bold", no_wrap=True, overflow="ellipsis"),
    ]
    if view.preview and view.phase == "approval":
        parts.append(preview(view.preview, view.dollars_cap, width=width, full=full))
    else:
        parts += _subtasks(view, late, width, full=full)
        if view.preview and full and view.preview.plan:
            parts += [Text(line, style=style) for line, style in told(view.preview.plan)]
        if view.preview and view.phase == "working":
            parts.append(Text(totals(view.preview, view.dollars_cap)[0], style="dim"))
    noted, unsaid = (view.notes, 0) if full else beginning(view.notes, LINES)
    more = [f"and {unsaid} more notes: {STARTER} show --full"] if unsaid else []
    parts += [_noted(note) for note in (*noted, *more, *notes)]
    for asked in reminders(view):
        text = one_line(asked.text)
        if brief and len(text) > ASKED:
            text = f"{text[:ASKED]} … `show {view.run_id}` has all of it"
        if asked.call:
            # Between words a line that is broken looks like one that ends with a space.
            text = "\n".join(chop_cells(f"? {text}", width))[2:]
        parts.append(Text(f"? {text}", style="bold magenta"))
        parts.append(Text(f"  {one_line(asked.remedy)}", style="dim"))
    return Safe(Group(*parts))


def _noted(note: str) -> Text:
    return Text(f"! {one_line(as_called(note))}", style="magenta")


def _subtasks(view: RunView, late: float, width: int, *, full: bool) -> list[RenderableType]:
    """The table, and what agents are at; of very many subtasks those that need a look."""
    rows, others = (view.rows, "") if full else chosen(view.rows)
    left = [Text(f"… {others}", style="dim")] if others else []
    return [_table(rows, late, width), *left, *(_doing(row) for row in rows if row.doing)]


def _doing(row: Row) -> Text:
    """A line of its own: beside the row there is no room for what a tool was called with."""
    at = Text(no_wrap=True, overflow="ellipsis")
    at.append(f"  {one_line(row.id)}", style="bold")
    return at.append(f"  {one_line(row.doing)}", style="dim")


def _table(rows: Sequence[Row], late: float, width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    # Where nothing is cut, nothing is stretched.
    table.expand = cut = width < UNBOUNDED
    wide = width >= WIDE
    table.add_column(width=1)
    table.add_column(no_wrap=True, max_width=14 if cut else None, overflow="ellipsis")
    table.add_column(no_wrap=True, ratio=3 if cut else None, overflow="ellipsis")
    if wide:
        table.add_column(no_wrap=True, max_width=30 if cut else None, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    if wide:
        table.add_column(no_wrap=True, ratio=2 if cut else None, overflow="ellipsis")
    for row in rows:
        mark, style = _LOOK[row.status]
        running = row.seconds + (late if row.status == "running" else 0.0)
        cells = [
            (mark, style),
            (row.id, "bold"),
            (row.title, "dim" if row.status == "waiting" else ""),
            # A lens is called as its subtask is: once is enough, the title needs the room.
            ("" if who(row) == row.id else who(row), "dim"),
            (row.status, "" if style == "green" else style),
            (seconds(running) if running else "", ""),
            (price(row), ""),
            (row.note, "dim"),
        ]
        if not wide:
            cells = [*cells[:3], *cells[4:7]]
        table.add_row(*(Text(one_line(text), style=style) for text, style in cells))
    return table


def changes(before: RunView | None, after: RunView, *, at: datetime | None = None) -> list[str]:
    """What happened between two views, one plain line each; for logs and pipes. `at` is the
    reader's clock, for what is not an event of the run.
    """
    closed = after.phase == "closed"
    stamp = _stamp(after, after.now)
    phase = [f"{stamp}  {PHASES[after.phase]}"] * (before is None or before.phase != after.phase)
    rows = [f"{stamp}  {one_line(_row(row))}" for row in _moved(before, after)]
    if after.preview and not (before and before.preview) and after.phase != "approval":
        rows.insert(0, f"{stamp}  {one_line(proposed(after))}")
    told = before.notes if before else ()
    noted = _stamp(after, max(at, after.now) if at and not closed else after.now)
    notes = [f"{noted}  ! {one_line(note)}" for note in after.notes if note not in told]
    asked = reminders(before) if before else ()
    new = [each for each in reminders(after) if each not in asked]
    notes += [f"{stamp}  ? {one_line(each.text)}: {one_line(each.remedy)}" for each in new]
    return [*rows, *notes, *phase] if closed else [*phase, *rows, *notes]


def proposed(view: RunView) -> str:
    """The plan and its price in a line, for who is not asked about it."""
    assert view.preview is not None
    many = len(view.preview.subtasks)
    count = f"{many} subtask{'s' * (many != 1)}"
    return f"the plan: {count}. {totals(view.preview, view.dollars_cap)[0]}"


def _moved(before: RunView | None, after: RunView) -> list[Row]:
    """The rows that began, ended or were tried again."""
    old = {row.id: (row.status, row.try_number) for row in before.rows} if before else {}
    unmoved = ("waiting", 0)
    return [row for row in after.rows if old.get(row.id, unmoved) != (row.status, row.try_number)]


def _stamp(view: RunView, at: datetime) -> str:
    return seconds((at - view.started).total_seconds()).rjust(9)


def _row(row: Row) -> str:
    parts = [f"{_LOOK[row.status][0]} {row.id} {row.title} ({who(row)}): {row.status}"]
    if row.status in SETTLED and row.seconds:
        parts.append(seconds(row.seconds))
    if row.status in SETTLED and price(row):
        parts.append(price(row))
    if row.note:
        parts.append(row.note)
    return ", ".join(parts)
