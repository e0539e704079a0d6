"""Text into Slack and out of it. What models, documents and people wrote mentions nobody there, and
makes no link that hides where it leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.text import visible

MOST_SECTION = 2_900
"""Characters of one section, of which Slack takes 3,000."""
CUT = " …"
FENCE = "```"
_WIDEST_CELL = 40
_MARKED = re.compile(r"<([^<>\n]*)>")
_OPEN_ENTITY = re.compile(r"&[a-z]{0,4}\Z")
_READER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_STYLES = {"strong": "*", "em": "_", "s": "~"}


def escape(text: str, *, lines: bool = False) -> str:
    """Return text that Slack shows as itself: no mention, no link. `lines` keeps its line ends."""
    plain = text if lines else " ".join(text.split())
    shown = visible(plain, keep="\n\t" if lines else "")
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, which says if it is not whole."""
    if len(text) <= most:
        return text
    return _OPEN_ENTITY.sub("", text[: most - len(CUT)]).rstrip() + CUT


def plain(text: str) -> str:
    """Return what a person wrote in Slack as they see it."""
    shown = _MARKED.sub(lambda found: _unmark(found[1]), text)
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(entity, letter)
    return shown.strip()


def _unmark(marked: str) -> str:
    """Return a mention or a link of Slack's as words."""
    target, _, label = marked.partition("|")
    match target[:1]:
        case "@" | "#":
            return target[:1] + (label or target[1:])
        case "!":
            return label or f"@{target[1:]}"
        case _:
            return f"{label} ({target})" if label and label not in target else target


def divide(text: str, most: int = MOST_SECTION) -> list[str]:
    """Return a text in parts that fit into a section each, cut between lines where there are any;
    code that is cut is closed and opened again.
    """
    parts, rest, in_code = [], text.strip("\n"), False
    while rest:
        start = f"{FENCE}\n" if in_code else ""
        room = most - len(start) - len(FENCE) - 1
        taken = rest if len(rest) <= room else _beginning(rest, room)
        rest = rest[len(taken) :].lstrip("\n")
        part = start + taken.rstrip("\n")
        in_code = part.count(FENCE) % 2 == 1
        parts.append(f"{part}\n{FENCE}" if in_code else part)
    return [each for each in parts if each.strip()]


def _beginning(text: str, most: int) -> str:
    head = text[:most]
    for end in ("\n\n", "\n", " "):
        at = head.rfind(end)
        if at > most // 2:
            return head[:at]
    return _OPEN_ENTITY.sub("", head)


# ---------------------------------------------------------------- Markdown


def from_markdown(text: str) -> str:
    """Return Markdown as Slack's mrkdwn. A link shows its address, HTML is shown as it stands."""
    blocks = _blocks(_READER.parse(text))
    return "\n\n".join(each for each in blocks if each.strip())


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the blocks of a document, each as text."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        end = _end(tokens, at)
        inside = tokens[at + 1 : end]
        match token.type:
            case "heading_open":
                yield f"*{_inline(inside).replace('*', '')}*"
            case "paragraph_open":
                yield _inline(inside)
            case "bullet_list_open" | "ordered_list_open":
                yield "\n".join(_items(inside, token))
            case "blockquote_open":
                quoted = "\n".join(_blocks(inside))
                yield "\n".join(f"> {line}" for line in quoted.splitlines())
            case "table_open":
                yield _table(inside)
            case "fence" | "code_block":
                code = escape(token.content.rstrip("\n"), lines=True).replace(FENCE, "'''")
                yield f"{FENCE}\n{code}\n{FENCE}"
            case "hr":
                yield "———"
            case _:
                yield escape(token.content, lines=True)
        at = end + 1


def _end(tokens: Sequence[Token], at: int) -> int:
    """Return where what begins here ends."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += tokens[place].nesting
        if depth <= 0:
            return place
    return len(tokens) - 1


def _items(tokens: Sequence[Token], whole: Token) -> Iterator[str]:
    number = int(whole.attrs.get("start") or 1)
    at = 0
    while at < len(tokens):
        end = _end(tokens, at)
        sign = "•" if whole.type == "bullet_list_open" else f"{number}."
        lines = "\n".join(_blocks(tokens[at + 1 : end])).splitlines() or [""]
        yield "\n".join([f"{sign} {lines[0]}", *(f"    {line}" for line in lines[1:])])
        number, at = number + 1, end + 1


def _table(tokens: Sequence[Token]) -> str:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            said = "".join(each.content for each in token.children or ())
            rows[-1].append(visible(cut(" ".join(said.split()), _WIDEST_CELL)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )
    code = escape("\n".join(lines), lines=True).replace(FENCE, "'''")
    return f"{FENCE}\n{code}\n{FENCE}"


def _inline(tokens: Sequence[Token]) -> str:
    return "".join(_spans(tokens[0].children or ())) if tokens else ""


def _spans(tokens: Sequence[Token]) -> Iterator[str]:
    links: list[tuple[str, list[str]]] = []
    """Of each link that is open: its address, and its words so far."""
    for token in tokens:
        said = _span(token)
        if token.type == "link_open":
            links.append((escape(str(token.attrs.get("href", ""))), []))
            continue
        if token.type == "link_close":
            address, words = links.pop()
            label = "".join(words)
            said = address if label == address else f"{label} ({address})"
        if links:
            links[-1][1].append(said)
        else:
            yield said


def _span(token: Token) -> str:
    kind = token.type.removesuffix("_open").removesuffix("_close")
    match kind:
        case "strong" | "em" | "s":
            return _STYLES[kind]
        case "code_inline":
            return f"`{escape(token.content.replace('`', chr(39)))}`"
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "image":
            return f"{escape(token.content)} ({escape(str(token.attrs.get('src', '')))})"
        case _:
            return escape(token.content, lines=True)
