"""What the items of a map show a model: which of their fields, and how."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

SHOWN_BYTES = 256 * 1024
"""Bytes that one item may show a model; a larger one fails by itself."""
SHORT_LETTERS = 200
"""Characters of a field that still stands in a table of rows; no longer one does, and no list."""
STRAY_LETTERS = 30
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def named_fields(instruction: str) -> tuple[str, ...]:
    """Return the fields that an instruction names in braces, each once; none: all are shown. Braces
    that are doubled are text.
    """
    names = (found[1].strip() for found in _BRACES.finditer(instruction) if found[1] is not None)
    return tuple(dict.fromkeys(names))


def say_fields(instruction: str) -> str:
    """Return an instruction as a model is told it: fields as names, doubled braces as one."""
    said = {"{{": "{", "}}": "}"}
    return _BRACES.sub(lambda found: said.get(found[0], f"`{found[1]}`"), instruction)


def stray_brace(instruction: str) -> str:
    """Return the text from the first brace on that has no other half; empty: each has its own."""
    rest = _BRACES.sub(lambda found: " " * len(found[0]), instruction)
    place = min((n for n in map(rest.find, "{}") if n >= 0), default=-1)
    return "" if place < 0 else " ".join(instruction[place:].split())[:STRAY_LETTERS]


def is_short(value: JsonValue) -> bool:
    """True if a field of this value may stand in a table of its items."""
    if isinstance(value, str):
        return len(value) <= SHORT_LETTERS
    return not isinstance(value, dict | list)


def shown_text(value: JsonValue) -> str:
    """Return the value of a field as a model is shown it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
