"""What is shown of more than anybody takes in at a glance: a part, and how much is left. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from holdfast.contracts.remarks import NO_REMARKS
from holdfast.contracts.view import Row, RowStatus

ROWS = 40
"""Subtasks of a board; a model plans fewer."""
LINES = 20
"""Notes, and questions to a person, of a board."""
FIRST: Sequence[RowStatus] = (
    "paused", "running", "failed", "escalated", "cancelled", "waiting", "skipped", "complete"
)  # fmt: skip
"""What one wants to see first where not all can be shown."""
Item = TypeVar("Item")


def chosen(rows: Sequence[Row], most: int = ROWS) -> tuple[Sequence[Row], str]:
    """Return the rows that are shown, in plan order, and what is said of the others, if there are
    any.
    """
    if len(rows) <= most:
        return rows, ""
    by_need = sorted(range(len(rows)), key=lambda place: FIRST.index(rows[place].status))
    left = Counter(rows[place].status for place in by_need[most:])
    counts = ", ".join(f"{left[status]} {status}" for status in FIRST if left[status])
    shown = [rows[place] for place in sorted(by_need[:most])]
    return shown, f"and {len(rows) - most} more subtasks: {counts}"


def fold_quiet(rows: Sequence[Row]) -> tuple[Sequence[Row], str]:
    """Return the rows without lenses that saw nothing, and what is said of these in a line; empty:
    there are not two of them.
    """
    quiet = [each for each in rows if each.tier == "none" and each.note == NO_REMARKS]
    if len(quiet) < 2:
        return rows, ""
    names = ", ".join(each.id for each in quiet)
    left = [each for each in rows if each not in quiet]
    return left, f"{len(quiet)} lenses without remarks: {names}"


def beginning(items: Sequence[Item], most: int) -> tuple[Sequence[Item], int]:
    """Return the first of them, and how many more there are."""
    return items[:most], max(len(items) - most, 0)
