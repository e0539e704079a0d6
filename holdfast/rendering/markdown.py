"""Blocks as Markdown: for a file, a terminal, and the Temporal Web UI."""

from __future__ import annotations

import html
from collections.abc import Iterable

from holdfast.rendering.blocks import (
    Block,
    Code,
    Column,
    Facts,
    Folded,
    Heading,
    Items,
    Marked,
    Paragraph,
    Prose,
    Table,
)
from holdfast.text import inline, visible
from holdfast.text.harmless import quote_markdown, sanitize

PAD = "\N{NO-BREAK SPACE}" * 3
"""Behind each cell in the Web UI, whose tables have no padding."""
SHORT = 12
"""Letters of a cell that stays on one line there."""


def write(blocks: Iterable[Block], *, pad: str = "") -> str:
    """Return the blocks with a blank line between them; `pad` stands behind each cell."""
    return "\n\n".join(_written(each, pad) for each in blocks)


def text(said: str) -> str:
    """Return a text within a line of Markdown."""
    return said if isinstance(said, Marked) else inline(said)


def _written(block: Block, pad: str) -> str:
    match block:
        case Heading(said, level):
            return f"{'#' * level} {text(said)}"
        case Paragraph(said):
            return text(said)
        case Facts():
            return text(block.line)
        case Items(items):
            lines = (
                [f"- {text(each.text)}", *(f"  - {text(line)}" for line in each.below)]
                for each in items
            )
            return "\n".join(line for item in lines for line in item)
        case Folded(title, inside):
            listed = "\n".join(f"- {text(each)}" for each in inside)
            summary = html.escape(visible(title))
            return f"<details><summary>{summary}</summary>\n\n{listed}\n\n</details>"
        case Code(said):
            return "\n".join(f"    {line}" for line in said.split("\n"))
        case Prose(said, quoted=True):
            return quote_markdown(said)
        case Prose(said):
            return sanitize(said)
        case Table():
            return _table(block, pad)


def _table(block: Table, pad: str) -> str:
    head = _line((each.title for each in block.columns), pad)
    ruler = "|".join(map(_ruler, block.columns))
    lines = (
        _line((_cell(*each, pad) for each in zip(block.columns, line.cells, strict=True)), pad)
        for line in block.lines
    )
    return "\n".join([head, f"|{ruler}|", *lines])


def _ruler(column: Column) -> str:
    return "---:" if column.kind == "number" else "---"


def _cell(column: Column, cell: str, pad: str) -> str:
    # A number is ours: what would begin a list in a line does not in a cell.
    shown = cell.replace("$", "\\$") if column.kind == "number" else text(cell)
    # A table without padding breaks `1.7 s` and runs its halves into the next column.
    return shown.replace(" ", "\N{NO-BREAK SPACE}") if pad and len(cell) <= SHORT else shown


def _line(cells: Iterable[str], pad: str) -> str:
    padded = (f"{each}{pad}" if each else "" for each in cells)
    return f"| {' | '.join(padded)} |"
