"""Markdown on a terminal, by rich, without what assumes a dark screen: code on a background."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.text import Text


class _Heading(Heading):
    """At the left, as everything else is."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Code(CodeBlock):
    """As it is, a little to the right; a line that is too long goes on in the next."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(Text(str(self.text).rstrip(), overflow="fold"), (0, 0, 0, 2))


class Page(Markdown):
    """A page of ours."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }
