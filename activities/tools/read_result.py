"""Read on in a result that was too long to be shown whole."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.activities.toolset.tool import Here, ToolError, tool

PIECE_BYTES = 16_000
"""Bytes of one reading: less than a model is shown at once, so that a piece is never cut again."""


@tool(seconds=30, reads=())
async def read_result(
    here: Here,
    handle: Annotated[str, Field(description="As the cut result named it.", max_length=200)],
    from_character: Annotated[int, Field(description="Where to read on.", ge=0)] = 0,
) -> str:
    """Read on in an earlier result that was too long to be shown whole. The result that was cut
    names the handle and the character to go on from.
    """
    text = (await here.kept(handle)).decode("utf-8", "replace")
    if from_character >= len(text):
        raise ToolError(f"that result has {len(text):,} characters; there is nothing from there on")
    piece = text[from_character : from_character + PIECE_BYTES].encode()[:PIECE_BYTES]
    shown = piece.decode("utf-8", "ignore")
    end = from_character + len(shown)
    if end == len(text):
        return f"{shown}\n\n[This is the end of it.]"
    return f"{shown}\n\n[Up to character {end:,} of {len(text):,}; from_character={end} reads on.]"
