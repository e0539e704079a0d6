"""Markdown that a model wrote, for our pages: the board in the Web UI and the report's file.

It keeps its form and loses what a viewer would load or run: images, HTML, and links to anything but
web pages, mail and places in the document. There is no parser, because renderers differ: only what
none of them can misread stays as it is. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from holdfast.text import visible

_LOADED = re.compile(r"!(?=\[)|<(?=[A-Za-z/!?])")
"""Start of an image or a tag. A space breaks both; a backslash could meet another one."""
_LINK = re.compile(r"\]([(:])([\s>]{0,200})(<?[^\s()<>]{0,2000})")
"""Start of a link's address: behind its text, or in the definition of a reference."""
_WEB = re.compile(r"(?i)<?(?:https?://|mailto:)")
_WITHIN = re.compile(r"[^<\s:&\\/?#]*(?:\Z|[/?#])")
"""A relative address: its first part holds no scheme, nor a character reference to one."""
LONGEST_BLOCK = 200
"""Lines of an indented code block that is left as it is."""
_FENCE = re.compile(r"(`{3,})[^`\n]*\n?\Z")
_OTHER_FENCE = re.compile(r"( *)(`{3,}(?=[^`\n]*\n?\Z)|~{3,})([^\n]*)\n?\Z")
"""Backticks that have more of them behind them open nothing: all readers take such a line for
prose. Taking it for a block would hide what does open one within it.
"""
_INDENT = re.compile(r"(?m)^[ \t]+")


def sanitize(markdown: str) -> str:
    """Return the text with invisible characters as escapes and nothing that a viewer loads or runs.
    Every code block ends, so that none swallows what we write below it.

    Between two lines of backticks at the very left all readers agree that it is code: only
    invisible characters are changed there.
    """
    text = _Text()
    lines = visible(markdown, keep="\n\t").splitlines(keepends=True)
    for number, line in enumerate(lines):
        text.take(line, lines[number + 1 : number + 1 + LONGEST_BLOCK])
    return text.whole()


def quote_markdown(text: str) -> str:
    """Quote Markdown that others wrote, so that its headings are not headings of the page."""
    # Behind `> ` a tab is narrower than at the left: it would close a block that it does not.
    wide = _INDENT.sub(lambda indent: indent[0].expandtabs(4), text)
    return "\n".join(f"> {line}".rstrip() for line in sanitize(wide).splitlines())


@dataclass
class _Text:
    """What was read so far: finished text, and prose that is not sanitized yet."""

    done: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    fence: str = ""
    """The backticks that opened the current code block."""
    until: str = ""
    """The line that closes an indented block, which may be code or not."""

    def take(self, line: str, following: list[str]) -> None:
        if self.fence:
            self.done.append(line)
            if _closes(line, self.fence):
                self.fence = ""
        elif opened := _FENCE.match(line):
            self._settle()
            self.done.append(line)
            self.fence = opened[1]
            self.until = ""
        elif line.rstrip() == self.until and self.until:
            self.prose.append(line)
            self.until = ""
        elif not self.until and (other := _OTHER_FENCE.match(line)):
            self.prose.append(self._opened(other, line, following))
        else:
            self.prose.append(line)

    def whole(self) -> str:
        self._settle()
        text = "".join(self.done)
        return f"{text.rstrip()}\n{self.fence}\n" if self.fence else text

    def _opened(self, other: re.Match[str], line: str, following: list[str]) -> str:
        """Return the line that may open a block, on which readers disagree; escaped, unless the
        block is closed whichever reader is right.
        """
        space, marks = other[1], other[2]
        for each in following:
            if each.rstrip() == space + marks:
                self.until = space + marks
                return line
            if (each.strip() and not each.startswith(space)) or _FENCE.match(each):
                break
        return line.replace(marks, "".join(f"\\{mark}" for mark in marks), 1)

    def _settle(self) -> None:
        prose = _LINK.sub(_check_link, "".join(self.prose))
        self.done.append(_LOADED.sub(r"\g<0> ", prose))
        self.prose.clear()


def _closes(line: str, fence: str) -> bool:
    said = line.rstrip()
    indent = len(said) - len(said.lstrip(" "))
    marks = said[indent:]
    return indent <= 3 and len(marks) >= len(fence) and not marks.strip("`")


def _check_link(link: re.Match[str]) -> str:
    address = link[3]
    if _WEB.match(address) or _WITHIN.match(address):
        return link[0]
    return f"]\\{link[1]}{link[2]}{address}"
