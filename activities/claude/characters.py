"""Join halves of characters: endpoints that count in UTF-16 can cut a character in two."""

from __future__ import annotations

from typing import Any

DEEPEST = 60
"""Levels of nesting; what is deeper stays as it is, and is not kept anyway."""


def join_halves(value: Any, keep: bool = False, depth: int = 0) -> Any:
    """Return a JSON document in whose texts two halves that meet are one character. A half that is
    left over becomes a replacement character, or stays if `keep`.
    """
    if depth > DEEPEST:
        return value
    if isinstance(value, str):
        if value.isascii():
            return value
        left = "surrogatepass" if keep else "replace"
        return value.encode("utf-16", "surrogatepass").decode("utf-16", left)
    if isinstance(value, dict):
        return {
            join_halves(name, keep): join_halves(inner, keep, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [join_halves(inner, keep, depth + 1) for inner in value]
    return value
