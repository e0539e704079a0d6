"""Read a text file, or some lines of it."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from holdfast.activities.toolset.inputs import TEXT_BYTES, clean_line, decode_text, quote_path, read
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import pluralize

LINE_LETTERS = 2_000
"""Characters shown of a line."""
SHOWN_LETTERS = 400_000
"""Characters of all lines of one call, before the rest is left for the next."""


@tool(seconds=60, reads=("folder", "repository"))
async def read_file(
    here: Here,
    file_path: Annotated[str, Field(description="As list_files shows it: INPUT/folder/name.")],
    offset: Annotated[int, Field(description="The first line to read.", ge=1)] = 1,
    limit: Annotated[int, Field(description="How many lines.", ge=1, le=20_000)] = 2_000,
) -> str:
    """Read a text file of your inputs, with the numbers of its lines. Cite a line as `path:12`.
    What looks like a secret is shown as [redacted]. For PDF and Office documents use read_document.
    """
    content = await read(here, file_path, TEXT_BYTES)
    return await anyio.to_thread.run_sync(_number_lines, content, file_path, offset, limit)


def _number_lines(content: bytes, path: str, offset: int, limit: int) -> str:
    lines = decode_text(content, path).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return f"[{quote_path(path)} is empty]"
    if offset > len(lines):
        raise ToolError(
            f"{quote_path(path)} has {pluralize(len(lines), 'line')}; there is no line {offset:,}"
        )
    numbered, left = [], SHOWN_LETTERS
    for number, line in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        numbered.append(f"{number:>6}\t{clean_line(line, LINE_LETTERS)}")
        left -= len(numbered[-1])
        if left < 0:
            break
    end = offset + len(numbered) - 1
    if end < len(lines):
        numbered.append(
            f"[lines {offset:,} to {end:,} of {len(lines):,}; offset={end + 1} reads on]"
        )
    return "\n".join(numbered)
