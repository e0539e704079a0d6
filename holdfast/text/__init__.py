"""Showing text that others wrote, in a terminal, in Markdown and in JSON.

File names, messages and answers come from repositories and models. Shown raw, they can move a
cursor, turn the reading direction around, or become links and HTML.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable

from pydantic import JsonValue

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Control, format (bidi, zero width), surrogate, private, unassigned, and line separators."""
PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")
"""Ids of runs and subtasks that mean nothing to a shell or file system; with the colons that
Temporal's Schedules put into the ids of what they start.
"""
_PLAIN = re.compile(r"[ -~]*\Z")
_SPECIAL = re.compile(r"[\\`*\[\]|~$^]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|!(?=\[)")
_LEADING = re.compile(r"\A(\s*)([#+\-=]|\d+(?=[.)]))")
_PLAIN_LINES = re.compile(r"[ -~\n]*\Z")
_UNSEEN = re.compile(r"[^ -~]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible letters, marks and signs, of whatever category."""
_SECOND_SPACE = re.compile("(?<= ) ")
_ADDRESS = re.compile(r"(?i)(://|\bwww\.|(?<=\S)@(?=\S))")


def visible(text: str, keep: str = "") -> str:
    r"""Show each invisible character, except those in `keep`, as an escape such as `\x1b`."""
    if _PLAIN.match(text):
        return text
    return "".join(
        letter
        if letter in keep or unicodedata.category(letter) not in HIDDEN_CATEGORIES
        else _escape(letter)
        for letter in text
    )


def says_something(text: str) -> bool:
    """True if any character is neither a space nor hidden."""
    return any(
        not letter.isspace() and unicodedata.category(letter) not in HIDDEN_CATEGORIES
        for letter in text
    )


def _escape(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        # How Python carries a byte of a file name that is not UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def for_terminal(text: str, *, lines: bool = False) -> str:
    """Show control and bidi characters as escapes. `lines` keeps line ends and tabs."""
    return visible(text, keep="\n\t" if lines else "")


def one_line(text: str) -> str:
    """Make text safe to print on one line: a line break in a title would tear a table."""
    return for_terminal(" ".join(text.split()))


def inline(text: str) -> str:
    """Make text safe inside a line of Markdown, with all white space as single spaces."""
    return for_markdown(" ".join(text.split()))


def for_markdown(text: str) -> str:
    """Make text show as itself in a line of Markdown: no markup, HTML or links."""
    shown = _SPECIAL.sub(lambda match: "\\" + match[0], visible(text))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = _ADDRESS.sub(_break_address, shown)
    return _LEADING.sub(_break_start, shown)


def _break_address(match: re.Match[str]) -> str:
    # Bare addresses become links in most renderers; an escaped character stops that.
    return {"://": ":\\/\\/", "@": "\\@"}.get(match[0], match[0][:-1] + "\\.")


def _break_start(match: re.Match[str]) -> str:
    space, mark = match[1], match[2]
    return f"{space}\\{mark}" if not mark.isdigit() else f"{space}&#{ord(mark[0])};{mark[1:]}"


def pluralize(number: int, noun: str) -> str:
    """Return `1 file`, `1,200 files`; for nouns whose plural is an s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def sentence(text: str) -> str:
    """End a text with one full stop, unless it ends a sentence already."""
    trimmed = text.strip()
    return trimmed if trimmed.endswith((".", "!", "?", "…", ":")) else f"{trimmed}."


def code_span(text: str) -> str:
    """Return a Markdown code span, whatever backticks the text holds."""
    shown = visible(text).replace("|", "\u2502") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    # A space at both ends is taken off again, unless there is nothing else.
    pad = " " if longest or (shown.strip() and shown.strip() != shown) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def for_json(text: str) -> str:
    r"""Replace invisible characters in a JSON document by JSON escapes such as `\u009b`."""
    if _PLAIN_LINES.match(text):
        return text
    return _UNSEEN.sub(_escape_json, text)


def _escape_json(match: re.Match[str]) -> str:
    letter = match[0]
    if letter == "\n" or unicodedata.category(letter) not in HIDDEN_CATEGORIES:
        return letter
    return in_json(letter)


def in_json(letter: str) -> str:
    r"""Return a character as a JSON escape: `\u009b`, or two of them."""
    return json.dumps(letter)[1:-1] if letter > "\x7e" else f"\\u{ord(letter):04x}"


def exact_json(value: JsonValue) -> str:
    """Return one line of JSON that shows all of a value and reads back as that very value:
    invisible characters, and each space behind a space, are escapes. So it survives where line ends
    and runs of spaces become one space. ValueError for what JSON cannot express.
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    shown = _UNSEEN.sub(_escape_exactly, written)
    return _SECOND_SPACE.sub(lambda match: in_json(match[0]), shown)


def _escape_exactly(match: re.Match[str]) -> str:
    letter = match[0]
    hidden = unicodedata.category(letter) in {*HIDDEN_CATEGORIES, "Zs"} or _BLANK.match(letter)
    return in_json(letter) if hidden else letter


def group_lines(lines: Iterable[str]) -> str:
    """Join lines `NAME: SENTENCE`, each sentence once, behind all its names."""
    names: dict[str, list[str]] = {}
    for line in lines:
        name, colon, said = line.partition(": ")
        named = bool(colon) and " " not in name
        names.setdefault(said if named else line, []).extend([name] if named else [])
    return "; ".join(f"{', '.join(of)}: {said}" if of else said for said, of in names.items())
