"""Markdown on a terminal, by rich, without what assumes a dark screen: code on a background."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.text import Text

_NUMBERED = re.compile(r"[> ] +(?:\d+ \||\|)(?: |\Z)")
"""How a line of a remark's code begins."""
CUT = "…"


class _Heading(Heading):
    """At the left, as everything else is."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Code(CodeBlock):
    """As it is, a little to the right. A line that is too long goes on in the next, so that it can
    be copied; but the lines of a remark are cut, else its mark would stand below nothing.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = str(self.text).rstrip().split("\n")
        if all(map(_NUMBERED.match, lines)):
            lines = narrowed(lines, options.max_width - 2)
        yield Padding(Text("\n".join(lines), overflow="fold"), (0, 0, 0, 2))


class Page(Markdown):
    """A page of ours."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


def narrowed(lines: list[str], width: int) -> list[str]:
    """The numbered lines of a remark in so many columns: all moved to the left as far as its mark
    needs, with the numbers where they are.
    """
    edge = lines[0].index("|") + 2
    room = max(width - edge, 1)
    code = [line[edge:] for line in lines]
    mark = max((len(each) for each in code if each.strip() == "^"), default=0)
    away = mark - room // 2 if mark > room else 0
    return [line[:edge] + _cut(each, away, room) for line, each in zip(lines, code, strict=True)]


def _cut(text: str, away: int, room: int) -> str:
    """What is left of a text without its first columns, in so many."""
    if text.strip() == "^":
        return text[away:]
    gone = 0
    while text and gone < away:
        gone += cell_len(text[0])
        text = text[1:]
    if away and text:
        # One letter makes way for the sign that something is missing, whatever its width.
        text = CUT + " " * (gone - away + cell_len(text[0]) - 1) + text[1:]
    shown = Text(text)
    shown.truncate(room, overflow="ellipsis")
    return shown.plain
