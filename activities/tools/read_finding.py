"""Read a finding whose subtask's dependents were given it in fewer words."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.activities.toolset.pieces import cut_piece
from holdfast.activities.toolset.tool import Here, tool


@tool(seconds=30, reads=())
async def read_finding(
    here: Here,
    subtask: Annotated[str, Field(description="Its id, as the finding's label has it.")],
    from_character: Annotated[int, Field(description="Where to begin.", ge=0)] = 0,
) -> str:
    """Read the whole finding of a subtask that you were given in fewer words, or of which you have
    only the beginning. Read it before you rely on what is not in the words that you have.
    """
    return cut_piece(here.finding(subtask), from_character, "finding")
