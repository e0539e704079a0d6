"""Markdown on a terminal, by rich, without what assumes a dark screen: code on a background."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, Paragraph
from rich.padding import Padding
from rich.style import Style
from rich.text import Span, Text

_NUMBERED = re.compile(r"[> ] +(?:\d+ \||\|)(?: |\Z)")
"""Matches the beginning of a line of a remark's code."""


class _Heading(Heading):
    """At the left, as everything else is."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Code(CodeBlock):
    """Indented, without a background. A line that is too long goes on in the next, so that it can
    be copied; of a remark's code beside the bar, with its mark below the part that it is of.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = str(self.text).rstrip().split("\n")
        if all(map(_NUMBERED.match, lines)):
            lines = folded(lines, options.max_width - 2)
        yield Padding(Text("\n".join(lines), overflow="fold"), (0, 0, 0, 2))


class _Paragraph(Paragraph):
    """Grey where all of it is emphasised: facts beside what a reader came for."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        spans = self.text.spans
        length = sum(each.end - each.start for each in spans)
        if spans and length == len(self.text.plain) and all(map(_is_emphasis, spans)):
            self.text = Text(self.text.plain, style="dim")
        yield from super().__rich_console__(console, options)


def _is_emphasis(span: Span) -> bool:
    return isinstance(span.style, Style) and bool(span.style.italic)


class Page(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "paragraph_open": _Paragraph,
        "fence": _Code,
        "code_block": _Code,
    }


def folded(lines: list[str], width: int) -> list[str]:
    """Return the numbered lines of a remark in so many columns, with nothing left out: what does
    not fit goes on below, and the mark stands right below its letter.
    """
    edge = lines[0].index("|") + 2
    room = max(width - edge, 2)
    beside = f"{' ' * (edge - 2)}| "
    rows: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line[edge:].strip() == "^":
            continue
        mark = len(after) - edge - 1 if after[edge:].strip() == "^" else -1
        for number, part in enumerate(chop_cells(line[edge:], room) or [""]):
            rows.append(f"{beside if number else line[:edge]}{part}".rstrip())
            if 0 <= mark < cell_len(part):
                rows.append(f"{beside}{' ' * mark}^")
            mark -= cell_len(part)
    return rows
