"""Tables as Markdown. What a bench prints has its columns in `COLUMNS` of its module, one row a
table, so that a test can compare docs/figures.md without an hour's campaign.
"""

from __future__ import annotations

from collections.abc import Iterable


def head(columns: Iterable[str]) -> str:
    """The first two lines of a table."""
    named = tuple(columns)
    return row(named) + "|" + "---|" * len(named) + "\n"


def row(cells: Iterable[object]) -> str:
    """One line of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"
