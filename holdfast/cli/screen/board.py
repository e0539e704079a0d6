"""A run as it stands, on screen: pure functions of its RunView."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.cells import chop_cells
from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.screen.streams import Safe
from holdfast.cli.screen.tables import drawn, preview
from holdfast.cli.screen.waiting import reminders
from holdfast.contracts.view import Row, RunView
from holdfast.deployment.invocation import STARTER, as_called
from holdfast.rendering.amounts import seconds
from holdfast.rendering.board import price, row_table, spent, who
from holdfast.rendering.many import LINES, beginning, chosen, fold_quiet
from holdfast.rendering.preview import told, totals
from holdfast.rendering.status import PHASES, SETTLED, SIGNS, standing
from holdfast.text import one_line, pluralize

WIDE = 80
"""Columns below which role and note are left out."""
ASKED = 400
"""Letters of a question that a screen which is redrawn shows."""
EARLY = "the plan is still being written; its first subtasks begin already"


def headline(view: RunView, elapsed: float) -> str:
    """Return where the run stands, in one line."""
    parts = [standing(view)]
    if view.rows and view.phase not in ("planning", "approval"):
        settled = sum(row.status in SETTLED for row in view.rows)
        parts.append(f"{settled} of {len(view.rows)} settled")
    parts += [spent(view), seconds(elapsed)]
    parts.append(f"project {one_line(view.project)}" if view.project else "")
    return " · ".join(filter(None, parts))


def board(
    view: RunView,
    *,
    at: datetime | None = None,
    notes: tuple[str, ...] = (),
    width: int = 100,
    full: bool = False,
    brief: bool = False,
) -> RenderableType:
    """Return the whole run as a table under its headline; a plan that waits for approval, with its
    price.

    A view's clock stands still between two events of its run; `at` is the reader's, by which what
    runs has run longer. `notes` are the watcher's own, after the run's. Below 80 columns of `width`
    only the essential ones are shown. `full` adds what each subtask of the plan is told; `brief`
    cuts what is asked of a person to what a screen that is redrawn has room for.
    """
    late = max(0.0, (at - view.now).total_seconds()) if at and view.phase != "closed" else 0.0
    elapsed = (view.now - view.started).total_seconds() + late
    stands = Text(headline(view, elapsed), no_wrap=True, overflow="ellipsis")
    stands.stylize("dim" if view.verdict else "bold")
    parts: list[RenderableType] = [stands]
    if view.verdict:
        parts.insert(0, Text(view.verdict, style="bold"))
    if view.preview and view.phase == "approval":
        parts.append(preview(view.preview, view.dollars_cap, width=width, full=full))
    else:
        parts += _subtasks(view, late, width, full=full)
        if view.preview and full and view.preview.plan:
            parts += [Text(line, style=style) for line, style in told(view.preview.plan)]
        if view.preview and view.phase == "working":
            parts.append(Text(one_line(totals(view.preview, view.dollars_cap)[0]), style="dim"))
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
    """Return the table, and what agents are at; of very many subtasks those that need a look."""
    loud, quiet = (view.rows, "") if full else fold_quiet(view.rows)
    rows, others = (loud, "") if full else chosen(loud)
    left = [Text(f"… {others}", style="dim")] if others else []
    left += [Text(f"{SIGNS['complete']} {one_line(quiet)}", style="dim")] if quiet else []
    shown = drawn(row_table([*rows], late), width, wide=WIDE, heads=False)
    return [shown, *left, *(_doing(row) for row in rows if row.doing)]


def _doing(row: Row) -> Text:
    """Return a line of its own: beside the row there is no room for a tool and its arguments."""
    at = Text(no_wrap=True, overflow="ellipsis")
    at.append(f"  {one_line(row.id)}", style="bold")
    return at.append(f"  {one_line(row.doing)}", style="dim")


def changes(before: RunView | None, after: RunView, *, at: datetime | None = None) -> list[str]:
    """Return what happened between two views, one plain line each, for logs and pipes. `at` is the
    reader's clock, for what is not an event of the run.
    """
    closed = after.phase == "closed"
    stamp = _stamp(after, after.now)
    phase = [f"{stamp}  {PHASES[after.phase]}"] * (before is None or before.phase != after.phase)
    rows = [f"{stamp}  {one_line(line)}" for line in _told(_moved(before, after))]
    if after.phase == "planning" and after.rows and not (before and before.rows):
        rows.insert(0, f"{stamp}  {EARLY}")
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
    """Return the plan and its price in a line, for who is not asked about it."""
    assert view.preview is not None
    count = pluralize(len(view.preview.subtasks), "subtask")
    return f"the plan: {count}. {totals(view.preview, view.dollars_cap)[0]}"


def _moved(before: RunView | None, after: RunView) -> list[Row]:
    """Return the rows that began, ended or were tried again."""
    old = {row.id: (row.status, row.try_number) for row in before.rows} if before else {}
    unmoved = ("waiting", 0)
    return [row for row in after.rows if old.get(row.id, unmoved) != (row.status, row.try_number)]


def _told(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each row that moved; lenses that began, or ended without a remark, at the
    same moment are told in one.
    """
    loud, quiet = fold_quiet(rows)
    begun = [row for row in loud if row.tier == "none" and row.status == "running"]
    if len(begun) > 1:
        yield f"{SIGNS['running']} {', '.join(row.id for row in begun)}: running"
        loud = [row for row in loud if row not in begun]
    if quiet:
        yield f"{SIGNS['complete']} {quiet}"
    yield from map(_row, loud)


def _stamp(view: RunView, at: datetime) -> str:
    return seconds((at - view.started).total_seconds()).rjust(9)


def _row(row: Row) -> str:
    what = f"{SIGNS[row.status]} {row.id} {row.title} ({who(row)}): {row.status}"
    ended = (seconds(row.seconds) if row.seconds else "", price(row))
    return ", ".join(filter(None, (what, *(ended if row.status in SETTLED else ()), row.note)))
