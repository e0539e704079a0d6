"""Find the function or class around a line of code in any language, by how its lines are indented.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEAD = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub"
    r"(?:\([a-z]+\))?|unsafe|override|virtual|suspend|open|inline|extern)\s+)*"
    r"(?:def|class|function\*?|func|fn|fun|sub|interface|struct|trait|impl|module|enum|proc)\b"
    r"\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+)?"
)
"""A line that begins a function or class by a keyword; in Go the receiver stands before its name.
"""
_CONTROL = re.compile(
    r"\s*[})\]]*\s*(?:if|else|elif|elsif|for|foreach|while|switch|case|default|try|catch|except|"
    r"finally|do|with|match|when|unless|return|throw|new|await|yield|using|lock|synchronized)\b"
)
_CALLED = re.compile(r"(?P<name>[\w$]+)\s*(?:=\s*(?:async\s*)?(?:function\b[^(]*)?)?\([^;]*$")
"""A name before parentheses, on a line that goes on with a block."""
_DECORATOR = re.compile(r"\s*[@#]\[?\w")
_LAST = re.compile(r"\s*(?:[})\]]|end\b)")
"""A line that only closes a block."""
MOST_ABOVE = 2_000
"""Lines above a place among which the beginning of its function is looked for."""


@dataclass(frozen=True)
class Function:
    """A function or class: its first and last line, 1-based, and its name, if it has one."""

    first: int
    last: int
    name: str = ""


def find_function(lines: Sequence[str], line: int) -> Function | None:
    """Return the innermost function or class around a line, with its decorators; None at the top
    level.
    """
    if not 1 <= line <= len(lines):
        return None
    place = line - 1
    while place > 0 and not lines[place].strip():
        place -= 1
    if _DECORATOR.match(lines[place]):
        below = next((n for n in range(place, len(lines)) if not _DECORATOR.match(lines[n])), place)
        place = below if _name_of(lines, below) is not None else place
    inner = _indent(lines[place])
    for number in range(place, max(place - MOST_ABOVE, -1), -1):
        text = lines[number]
        closes = _LAST.match(text) is not None
        if not text.strip() or (closes and number != place):
            continue
        if number != place and _indent(text) >= inner and not (closes and _indent(text) == inner):
            continue
        # A line that closes a block belongs to what begins on its own depth.
        inner = _indent(text) + (closes and number == place)
        name = _name_of(lines, number)
        if name is not None and (last := _end(lines, number)) >= place:
            return Function(_first(lines, number) + 1, last + 1, name)
    return None


def name_of(line: str) -> str:
    """Return the name of the function or class that a line begins by a keyword; empty: none."""
    found = _HEAD.match(line)
    return (found["name"] or "") if found else ""


def _name_of(lines: Sequence[str], number: int) -> str | None:
    """Return the name of what begins on a line, empty if it has none; None if nothing does."""
    text = lines[number]
    if found := _HEAD.match(text):
        return found["name"] or ""
    if _CONTROL.match(text) or not text.rstrip().endswith(("{", "(", ",", "=>")):
        return None
    if text.rstrip().endswith(("(", ",")) and not _opens_later(lines, number):
        return None
    found = _CALLED.search(text)
    return found["name"] if found else None


def _opens_later(lines: Sequence[str], number: int) -> bool:
    """True if the parameters that begin on a line end before a block."""
    indent = _indent(lines[number])
    for text in lines[number + 1 : number + 20]:
        if text.strip() and _indent(text) <= indent:
            return text.rstrip().endswith("{") and text.lstrip().startswith(")")
    return False


def _first(lines: Sequence[str], number: int) -> int:
    indent = _indent(lines[number])
    while number and _DECORATOR.match(lines[number - 1]) and _indent(lines[number - 1]) == indent:
        number -= 1
    return number


def _end(lines: Sequence[str], number: int) -> int:
    """Return the last line of what begins on a line."""
    indent, last = _indent(lines[number]), number
    for place in range(number + 1, len(lines)):
        text = lines[place]
        if not text.strip():
            continue
        if _indent(text) > indent:
            last = place
            continue
        # The end of its parameters, its opening brace, or its closing one.
        if not (_LAST.match(text) or text.strip() in ("{", ")", "):")):
            break
        last = place
        if not text.rstrip().endswith(("{", ":", "(")):
            break
    return last


def _indent(text: str) -> int:
    return len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
