"""How this program looks on whatever screen it meets: light or dark, without colours, without a
cursor that moves, without letters beyond ASCII.

No background is ever painted, and of the basic colours only those that can be read on black and on
white alike carry text: red and magenta; green is for a mark whose word stands beside it.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.theme import Theme

from holdfast.text import in_json

THEME = Theme(
    {
        "status.spinner": "none",
        "markdown.code": "bold",
        "markdown.code_block": "none",
        "markdown.block_quote": "none",
        "markdown.list": "none",
        "markdown.item.number": "bold",
        "markdown.h1": "bold",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.kbd": "bold",
    }
)
HELP: Mapping[str, str] = {
    "STYLE_OPTION": "bold",
    "STYLE_SWITCH": "bold",
    "STYLE_NEGATIVE_OPTION": "bold",
    "STYLE_NEGATIVE_SWITCH": "bold",
    "STYLE_COMMANDS_TABLE_FIRST_COLUMN": "bold",
    "STYLE_TYPES": "dim",
    "STYLE_OPTION_ENVVAR": "dim",
    "STYLE_USAGE": "",
}
"""Styles of typer's own screens."""
ASCII: Mapping[str, str] = {
    "·": "-", "…": "~", "✓": "+", "✗": "x", "▸": ">", "→": "->", "≤": "<=", "≥": ">=", "×": "x",
    "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "•": "*", "█": "#", "═": "=",
    "─": "-", "━": "=", "│": "|", "┃": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "├": "+",
    "└": "+", "┌": "+", "┐": "+", "┘": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+",
    "⚠": "!", "⊘": "/", "‖": "=",
}  # fmt: skip
"""Replacements of our own signs where only ASCII can be shown."""
PLAIN = "holdfast.plain"
UNBOUNDED = 10_000
"""Columns of what is no terminal: nothing is cut or torn there, a program may read it."""


def console(*, stderr: bool = False) -> Console:
    """Return a console without markup and emoji codes: `[red]` in a file name is text."""
    shown = Console(stderr=stderr, markup=False, emoji=False, highlight=False, theme=THEME)
    if not shown.is_terminal:
        shown.width = UNBOUNDED
    if shown.is_dumb_terminal:
        # Rich takes any terminal that cannot move its cursor for one of 80 columns.
        shown.width, shown.height = _size(sys.stderr if stderr else sys.stdout)
    return shown


def _size(stream: Any) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 25
    return size.columns or 80, size.lines or 25


def prepare(environment: Mapping[str, str]) -> None:
    """Make the two streams show what they can. Where the locale says that there is nothing beyond
    ASCII, our signs are replaced; elsewhere a letter that cannot be shown is shown as its escape.
    """
    codecs.register_error(PLAIN, _plain)
    ascii_alone = only_ascii(environment)
    for stream in (sys.stdout, sys.stderr):
        # What a test puts in their place may have no encoding.
        if hasattr(stream, "reconfigure"):
            if ascii_alone:
                stream.reconfigure(encoding="ascii")
            stream.reconfigure(errors=PLAIN)


def prepare_help() -> None:
    """Let typer's own screens look like ours; few commands show one, and it takes time to load."""
    from typer import rich_utils

    for name, style in HELP.items():
        setattr(rich_utils, name, style)


def only_ascii(environment: Mapping[str, str]) -> bool:
    """Return True if somebody chose the locale C. Python alone would write UTF-8 there; where
    nothing at all is set, as in most containers, that is right.
    """
    if environment.get("PYTHONIOENCODING") or environment.get("PYTHONUTF8"):
        return False
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return locale in ("C", "POSIX")


def exactly(text: str) -> str:
    """Return JSON as this screen can show it, with an escape of JSON for each letter that it
    cannot: what a person approves is what is called, so nothing that merely looks like it stands
    for a letter.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        return "".join(each if each <= "\x7e" else in_json(each) for each in text)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(map(_shown, letters)), error.end


def _shown(letter: str) -> str:
    known = ASCII.get(letter)
    return letter.encode("ascii", "backslashreplace").decode() if known is None else known
