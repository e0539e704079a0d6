"""Find the passages of a folder that say most of some words."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from holdfast.activities.toolset.child import ChildFailed, in_child
from holdfast.activities.toolset.inputs import (
    TEXT_BYTES,
    File,
    Location,
    clean_line,
    decode_text,
    list_below,
    place_of,
    quote_path,
    read_file,
)
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import for_terminal

FOLDER_BYTES = 100 * 1024 * 1024
"""Bytes of a folder's files that are indexed, the first by path."""
INDEX_BYTES = 1024 * 1024 * 1024
SECONDS, ALL_SECONDS = 100.0, 150.0
"""How long indexing goes on to the next file; how long making and asking may take in all."""
LINE_LETTERS = 300
AROUND = 1
"""Lines before and after the best one of a passage."""
WORD = re.compile(r"\w+")


@tool(seconds=170, reads=("folder", "repository"))
async def search_documents(
    here: Here,
    query: Annotated[
        str, Field(description="Words to look for, the more telling the better.", max_length=1_000)
    ],
    path: Annotated[str, Field(description="The input to search: a folder or repository.")],
    limit: Annotated[int, Field(description="Passages at most.", ge=1, le=50)] = 10,
) -> str:
    """Find the passages of a folder's text files that say most of some words, the best first, each
    with file and line. Words are found in any case, and as they are written: no other forms of
    them. For exact text, signs, and languages without spaces use search_files.
    """
    if not WORD.search(query):
        raise ToolError("the query has no words; search_files finds signs")
    place = place_of(here, path)
    if place.below:
        raise ToolError(
            f"{quote_path(path)} is within an input; name the input, {quote_path(place.input)}"
        )
    root = await here.folder(place.input)
    index = here.scratch / f"search-{here.inputs[place.input].digest}" / "index.db"
    files, left_out = _choose([] if index.exists() else await list_below(here, path))
    asked = {
        "root": str(root),
        "files": files,
        "index": str(index),
        "query": query,
        "most": limit,
        "seconds": SECONDS,
        "left_out": left_out,
    }
    index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Marks it as used, so that nobody removes it in the next minutes.
    os.utime(index.parent)
    try:
        request = json.dumps(asked).encode()
        script = "search_documents.py"
        said = await in_child(script, request, seconds=ALL_SECONDS, writes=INDEX_BYTES)
    except ChildFailed as error:
        raise ToolError(f"{quote_path(path)} is not searched: its index {error}") from None
    answer = json.loads(said)
    if not answer["searched"]:
        here.not_read(place.input)
    return await anyio.to_thread.run_sync(_render, root, place.input, answer, query)


def _choose(files: list[File]) -> tuple[list[str], dict[str, int]]:
    """Return the files to index, by their paths below the folder, and how many are left out and
    why.
    """
    chosen: list[str] = []
    left_out: Counter[str] = Counter()
    size = 0
    for file in files:
        reason = ""
        if file.size > TEXT_BYTES:
            reason = f"larger than {TEXT_BYTES >> 20} MiB"
        elif size + file.size > FOLDER_BYTES:
            reason = f"beyond {FOLDER_BYTES >> 20} MiB in all"
        if reason:
            left_out[reason] += 1
            continue
        size += file.size
        chosen.append("/".join(file.place.below))
    return chosen, left_out


def _render(root: Path, name: str, answer: dict[str, Any], query: str) -> str:
    """Return the passages, as the files have them. Blocking."""
    words = {_plain(word) for word in WORD.findall(query)}

    @cache
    def lines_of(place: Location) -> list[str]:
        return decode_text(read_file(root, place, TEXT_BYTES), str(place)).split("\n")

    found = []
    for path, first, last in answer["hits"]:
        place = Location(name, tuple(path.split("/")))
        found.append(_passage(place, first, lines_of(place)[first - 1 : last], words))
    lines = [*filter(None, found)] or ["[no passage has any of these words]"]
    if left_out := answer["left_out"]:
        reasons = ", ".join(f"{count:,} {why}" for why, count in sorted(left_out.items()))
        lines.append(f"[not searched: {reasons}]")
    return "\n\n".join(lines)


def _passage(place: Location, first: int, text: list[str], words: set[str]) -> str:
    """Return the line of a passage with most of the words, and those around it; empty if the words
    were only in a secret.
    """
    lines = [clean_line(line, LINE_LETTERS) for line in text]
    scores = [len(words & {_plain(word) for word in WORD.findall(line)}) for line in lines]
    if not any(scores):
        return ""
    best = scores.index(max(scores))
    near = range(max(0, best - AROUND), min(len(lines), best + AROUND + 1))
    told = [f"{first + number:>6}\t{lines[number]}" for number in near]
    return "\n".join([f"{for_terminal(str(place))}:{first + best}", *told])


def _plain(word: str) -> str:
    """Return a word as the index compares it: without case and accents."""
    parts = unicodedata.normalize("NFKD", word.lower())
    return "".join(each for each in parts if not unicodedata.combining(each))
