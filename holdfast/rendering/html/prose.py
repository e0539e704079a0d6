"""Markdown that a model wrote, as HTML: its form, and nothing that a browser loads or runs. A link
leads to a web page or a mail; an id in brackets leads to the finding that it cites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from htpy import a
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from holdfast.rendering.sources import WORD
from holdfast.text.marks import MARK

MOST_MARKDOWN = 200_000
"""Characters of one text; the beginning of what is longer is shown as it was written."""
BELOW = 2
"""A heading of the text is this much below that level: the page has its own."""
_SAFE = re.compile(r"(?i)(https?://|mailto:)[^\s]+\Z")
_OWN = re.compile(r"(?i)(https?://|mailto:|file:///)[^\s]+\Z|[^\s:]+\Z")
"""Matches links in lines of our own, which may lead to files beside the page, too."""
_CITED = re.compile(r"\[([^\[\]\n]{1,200})\]")


def prose(text: str, anchors: Mapping[str, str]) -> Markup:
    """Return the text as HTML. `anchors`: the place in the page of each id that may be cited."""
    if len(text) > MOST_MARKDOWN:
        more = f"\n… and {len(text) - MOST_MARKDOWN:,} more characters"
        return Markup("<pre>{}{}</pre>").format(text[:MOST_MARKDOWN], more)
    tokens = _READER.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + BELOW, 6)}"
        elif token.type == "inline" and token.children:
            token.children = [*_cited(token.children, anchors)]
    shown = _READER.renderer.render(tokens, _READER.options, {})
    return Markup(shown.replace(MARK, f"<mark>{MARK}</mark>"))


def prose_line(text: str, anchors: Mapping[str, str]) -> Markup:
    """Return a line of our own Markdown as HTML, with its citations as links."""
    tokens = _OWN_READER.parseInline(text)
    for token in tokens:
        token.children = [*_cited(token.children or (), anchors)]
    return Markup(_OWN_READER.renderer.render(tokens, _OWN_READER.options, {}))


def cited(text: str, anchors: Mapping[str, str]) -> Markup:
    """Return a line of plain text as HTML, with its citations as links."""
    parts, end = [Markup("")], 0
    for found in _CITED.finditer(text):
        inside = _linked(found[1], anchors)
        if inside is not None:
            parts += [escape(text[end : found.start()]), Markup("[{}]").format(inside)]
            end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _linked(inside: str, anchors: Mapping[str, str]) -> Markup | None:
    """Return what stands in brackets with each id as a link; None if it cites nothing."""
    known = {each.lower(): anchor for each, anchor in anchors.items()}
    parts, end, links = [Markup("")], 0, 0
    for word in WORD.finditer(inside):
        anchor = known.get(word[0].lower())
        if anchor is not None:
            link = Markup(str(a(".cite", href=f"#{anchor}")[word[0]]))
            parts += [escape(inside[end : word.start()]), link]
            end, links = word.end(), links + 1
    return Markup("").join([*parts, escape(inside[end:])]) if links else None


def _cited(tokens: Sequence[Token], anchors: Mapping[str, str]) -> Iterator[Token]:
    """Yield the tokens, with links for the ids that a text cites outside of links."""
    within = 0
    for token in tokens:
        within += (token.type == "link_open") - (token.type == "link_close")
        if token.type == "text" and not within and "[" in token.content:
            yield Token("html_inline", "", 0, content=str(cited(token.content, anchors)))
        else:
            yield token


def _reader(addresses: re.Pattern[str]) -> MarkdownIt:
    """Return a reader of CommonMark with tables, without HTML, pictures and definitions,
    which could turn the id of a finding into somebody's link.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.disable(["image", "reference", "html_block", "html_inline"])
    reader.validateLink = lambda url: bool(addresses.match(url))  # type: ignore[method-assign]
    reader.add_render_rule("table_open", _table_open)
    reader.add_render_rule("table_close", lambda *_: "</table></div>\n")
    reader.add_render_rule("link_open", _link_open)
    return reader


def _table_open(*_: object) -> str:
    return '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n'


def _link_open(_renderer: object, tokens: Sequence[Token], place: int, *_: object) -> str:
    address = str(tokens[place].attrs.get("href", ""))
    opened = Markup('<a class="out" rel="noopener noreferrer nofollow" href="{}">')
    return str(opened.format(address))


_READER, _OWN_READER = _reader(_SAFE), _reader(_OWN)
