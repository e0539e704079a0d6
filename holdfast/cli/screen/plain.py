"""Markdown as plain text, for a pipe: whole lines, and no sign but what was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len

_READER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_LINES = {"h1": "=", "h2": "-"}


def as_text(source: str) -> str:
    """Return the text, a paragraph a line; headings are underlined, tables stand in columns."""
    return "\n\n".join(_blocks(SyntaxTreeNode(_READER.parse(source)).children))


def _blocks(nodes: Sequence[SyntaxTreeNode]) -> list[str]:
    return ["\n".join(_block(node)) for node in nodes]


def _block(node: SyntaxTreeNode) -> Iterator[str]:
    match node.type:
        case "heading":
            text = _inline(node, code="")
            yield text
            if node.tag in _LINES:
                yield _LINES[node.tag] * cell_len(text)
        case "bullet_list" | "ordered_list":
            yield from _list(node)
        case "fence" | "code_block":
            yield from (f"  {line}".rstrip() for line in node.content.rstrip("\n").split("\n"))
        case "table":
            yield from _table(node)
        case "blockquote":
            for line in "\n\n".join(_blocks(node.children)).split("\n"):
                yield f"> {line}".rstrip()
        case "hr":
            yield "---"
        case _:
            yield _inline(node)


def _list(node: SyntaxTreeNode) -> Iterator[str]:
    first = int(node.attrs.get("start", 1))
    for number, item in enumerate(node.children, first):
        sign = f"{number}. " if node.type == "ordered_list" else "- "
        parts = _blocks(item.children)
        # Of a tight list what belongs to one item stands together.
        tight = all(each.hidden for each in item.children if each.type == "paragraph")
        lines = ("\n" if tight else "\n\n").join(parts).split("\n")
        yield f"{sign}{lines[0]}"
        yield from (f"{' ' * len(sign)}{line}".rstrip() for line in lines[1:])


def _table(node: SyntaxTreeNode) -> Iterator[str]:
    rows = [
        [
            (_inline(cell, code=""), "right" in str(cell.attrs.get("style", "")))
            for cell in row.children
        ]
        for part in node.children
        for row in part.children
    ]
    sizes = [max(cell_len(row[place][0]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = []
        for (text, right), size in zip(row, sizes, strict=True):
            room = " " * (size - cell_len(text))
            cells.append(f"{room}{text}" if right else f"{text}{room}")
        yield "  ".join(cells).rstrip()


def _inline(node: SyntaxTreeNode, code: str = "`") -> str:
    """Return the text of what stands in a line; `code`: what stands around code."""
    match node.type:
        case "text" | "html_inline":
            return node.content
        case "code_inline":
            return f"{code}{node.content}{code}"
        case "softbreak" | "hardbreak":
            return "\n"
        case "image":
            return node.content
    text = "".join(_inline(each, code) for each in node.children)
    if node.type == "link":
        address = str(node.attrs.get("href", ""))
        return text if address == text else f"{text} ({address})"
    return text
