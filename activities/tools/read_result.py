"""Read on in a result that was too long to be shown whole."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.activities.toolset.pieces import cut_piece
from holdfast.activities.toolset.tool import Here, tool


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
    return cut_piece(text, from_character, "result")
