"""Show a long text to a model piece by piece."""

from __future__ import annotations

from holdfast.activities.toolset.tool import ToolError

PIECE_BYTES = 16_000
"""Bytes of one reading: less than a model is shown at once, so that a piece is never cut again."""


def cut_piece(text: str, from_character: int, what: str) -> str:
    """Return a piece of a text, and how to read on. Raise ToolError if nothing is there."""
    if from_character >= len(text):
        raise ToolError(f"that {what} has {len(text):,} characters; there is nothing from there on")
    piece = text[from_character : from_character + PIECE_BYTES].encode()[:PIECE_BYTES]
    shown = piece.decode("utf-8", "ignore")
    end = from_character + len(shown)
    if end == len(text):
        return f"{shown}\n\n[This is the end of it.]"
    return f"{shown}\n\n[Up to character {end:,} of {len(text):,}; from_character={end} reads on.]"
