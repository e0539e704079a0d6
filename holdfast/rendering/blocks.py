"""What the forms of a run are made of. Each fact and each sentence is put into a block once; a
writer for each form (Markdown, HTML, a terminal) shows the blocks.

A text is plain, and its writer escapes it. A `Marked` text is a line of Markdown of ours, in which
what others wrote is escaped already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.contracts.view import RowStatus


class Marked(str):
    """A line of our own Markdown."""

    __slots__ = ()


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    more: str = ""


@dataclass(frozen=True)
class Facts:
    facts: tuple[Fact, ...]

    @property
    def line(self) -> str:
        """The facts in one line."""
        told = (f"{each.name.lower()} {each.value}" for each in self.facts)
        more = (f", {each.more}" if each.more else "" for each in self.facts)
        return " · ".join(map(str.__add__, told, more))


@dataclass(frozen=True)
class Item:
    text: str
    below: tuple[str, ...] = ()
    about: str = ""
    """The subtask that it is a footnote of, to which citations may lead."""


@dataclass(frozen=True)
class Items:
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Column:
    title: str
    kind: Literal["text", "number", "ids", "status"] = "text"
    """`ids` of subtasks, which a page links; `status`, which has its sign and colour."""
    essential: bool = True
    """False: left out on a narrow screen."""


@dataclass(frozen=True)
class Line:
    """A line of a table: a cell for each column."""

    cells: tuple[str, ...]
    look: RowStatus | None = None
    """The status by which it is coloured, where a form has colours."""
    why: str = ""
    """What it is there for; only a page has room for it."""
    total: bool = False


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Code:
    """Lines as they are: a command to be typed, or a difference."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Lines that are shown on demand, where a form can."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Prose:
    """Markdown that others wrote."""

    text: str
    quoted: bool = False


Block = Heading | Paragraph | Facts | Items | Folded | Table | Code | Prose


def listed(lines: Iterable[str | Item], title: str = "", level: int = 2) -> list[Block]:
    """Return the lines as a list below its heading, if it has one; nothing if there are none."""
    items = tuple(each if isinstance(each, Item) else Item(each) for each in lines)
    if not items:
        return []
    return [*([Heading(title, level)] if title else []), Items(items)]


def table(columns: Sequence[Column], lines: Iterable[Line]) -> Table:
    """Return a table without the columns that say nothing."""
    whole = tuple(lines)
    kept = [n for n in range(len(columns)) if any(each.cells[n] for each in whole)]
    shown = (replace(each, cells=tuple(each.cells[n] for n in kept)) for each in whole)
    return Table(tuple(columns[n] for n in kept), tuple(shown))
