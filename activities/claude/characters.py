"""Halves of characters: endpoints that count in UTF-16 can cut a character in two."""

from __future__ import annotations

from typing import Any

DEEPEST = 60
"""What is nested deeper stays as it is: nothing so deep is kept."""


def join_halves(value: Any, keep: bool = False, depth: int = 0) -> Any:
    """A document of JSON in whose texts two halves that meet are one character again. A half that
    is left becomes a replacement character, or stays for whoever is to `keep` it.
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
