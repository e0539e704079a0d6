"""Marking words of an answer that no finding supports, where they stand. Pure.

Code compares each figure, address and citation of an answer with the findings. What none of them
has may still be right, for example a sum; so it is marked, and a reader looks there first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from holdfast.text import pluralize

BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\](?!\()")
URL = re.compile(r"https?://[^\s<>()\[\]\"'`]+")
NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,]{0,40}\d)?(?:\.\d{1,40})?(?![\w])")
"""Bounded, because a number that never ends would be tried from each of its digits."""
MARK = "(⚠ in no finding)"
LOOK_FIRST = "Look here first: not supported by any finding"
"""Heading of the lines that say what it is."""
_PLACES = re.compile(
    r"(?P<code>`[^`\n]*`)|(?P<link>\]\([^()\n]*\))|(?P<address><?https?://[^\s<>()\[\]\"'`]+>?)"
    rf"|(?P<cited>{BRACKETS.pattern})|(?P<number>{NUMBER.pattern})%?"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def strip_stop(address: str) -> str:
    """Return an address without the stop behind it."""
    return address.rstrip(".,;:")


def count_unsupported(flags: Sequence[str]) -> str:
    """Return how many statements nothing supports, in words; empty for none."""
    return f"{pluralize(len(flags), 'statement')} that no finding supports" if flags else ""


def mark_unsupported(answer: str, doubtful: Collection[str]) -> str:
    """Mark these words in a Markdown answer, except in code blocks, which people copy."""
    if not doubtful:
        return answer
    lines, fence = [], ""
    for line in answer.splitlines(keepends=True):
        opened = _FENCE.match(line)
        if fence:
            over = opened is not None and opened[1].startswith(fence) and line.strip() == opened[1]
            fence = "" if over else fence
        elif opened:
            fence = opened[1]
        else:
            line = _PLACES.sub(lambda found: _mark(found, doubtful), line)
        lines.append(line)
    return "".join(lines)


def _mark(found: re.Match[str], doubtful: Collection[str]) -> str:
    whole = found[0]
    if found["number"]:
        wrong = found["number"] in doubtful
    elif found["cited"]:
        words = re.split(r"[^\w-]+", found["cited"].lower())
        wrong = any(f"[{word}]" in doubtful for word in words)
    else:
        # Within code and behind a link's text a mark would be a part of what people copy.
        held = [strip_stop(each) for each in URL.findall(whole)]
        held += NUMBER.findall(whole) if found["code"] else []
        wrong = any(each in doubtful for each in held)
    return f"{whole} {MARK}" if wrong else whole
