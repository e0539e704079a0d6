"""Counting words, which models do badly."""

import re
from typing import Annotated

from pydantic import Field

from holdfast import Here, tool

_SENTENCE = re.compile(r"[^.!?\n]+(?:\n(?!\s*\n)[^.!?\n]+)*")


@tool()
async def long_sentences(
    here: Here,
    draft: Annotated[str, Field(description="Name of a text input.")],
    words: Annotated[int, Field(ge=5, le=200, description="More than this is long.")] = 25,
) -> str:
    """List the sentences of a text that have more words than this, each with its line."""
    text = (await here.content(draft)).decode("utf-8", "replace")
    found = []
    for sentence in _SENTENCE.finditer(text):
        count = len(sentence[0].split())
        if count > words:
            line = text.count("\n", 0, sentence.end() - len(sentence[0].lstrip())) + 1
            found.append(f"{draft}:{line}: {count} words: {' '.join(sentence[0].split())}")
    return "\n".join(found) or f"no sentence has more than {words} words"
