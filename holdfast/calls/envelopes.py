"""Envelopes for what others wrote: in a prompt it is data, never an instruction."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, get_args

from holdfast.contracts import Problem

Tag = Literal[
    "material", "role", "instruction", "acceptance_criteria", "checks", "goal", "question"
]
"""The marks that structure a prompt; no text inside a prompt can contain one."""
TAGS: tuple[Tag, ...] = get_args(Tag)
WINDOW = 80
"""Characters behind the first letter after a bracket within which its tag is looked for."""
_FIRST = re.compile(r"[\W_]{0,64}+([^\W_])")
_BEGINNINGS = frozenset(tag[0] for tag in TAGS)
_READS = re.compile("|".join(r"[\W_]*".join(tag.replace("_", "")) + r"(?![^\W_])" for tag in TAGS))
"""A tag as a reader makes it out, whatever stands between its letters."""
_BRACKET = re.compile(
    "[<\u02c2\u1438\u2039\u2329\u276e\u276c\u2770\u27e8\u3008\u300a\u00ab\ufe64\uff1c\u227a\u22d6\u2a9e]"
    r"|&(?:lt|#0*60|#[xX]0*3[cC]);?|\\u003[cC]|%3[cC]"
)
"""Matches what is, looks like or decodes to the beginning of a mark."""
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2044\u2215\u29f8\u29f5\u2571\\", "/"),
        **dict(
            zip("асеіјморрѕтухаεικμνορτυℓıɑԁɡηոԛ", "aceijmoppstyxaeikmvoptuliadgnnq", strict=True)
        ),
    }
)
"""Slashes, and letters of other alphabets, that look like those of a tag."""
LABEL = str.maketrans({'"': "'", "<": "(", ">": ")"})


def envelope(source: str, text: str) -> str:
    """Put untrusted text between labelled marks, which it can neither close nor imitate."""
    label = " ".join(defang(source).translate(LABEL).split())
    return f'<material source="{label}">\n{defang(text)}\n</material>'


def section(tag: Tag, text: str) -> str:
    """Mark a part of what the agent is asked to do; it cannot imitate our marks either."""
    return f"<{tag}>\n{defang(text)}\n</{tag}>"


def defang(text: str) -> str:
    """Make the marks in untrusted text harmless, by turning their bracket into a round one.
    Whatever a reader would take for a mark counts, such as `< / Material >`, and what looks or
    decodes like it.
    """

    def unmarked(bracket: re.Match[str]) -> str:
        first = _FIRST.match(text, bracket.end())
        if first is None or _fold(first[1])[:1] not in _BEGINNINGS:
            return bracket[0]
        near = _fold(text[first.start(1) : first.end() + WINDOW])
        return "(" if _READS.match(near) else bracket[0]

    return _BRACKET.sub(unmarked, text)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text).casefold().translate(_ALIKE)


def mend(prompt: str, broken: Problem | None) -> str:
    """Add to a user turn the malformed answer that is to be mended."""
    if broken is None:
        return prompt
    return "\n\n".join(
        (
            prompt,
            envelope("your previous answer", broken.answer),
            envelope("what is wrong with its form", broken.why),
            "Give the same answer again in the right form.",
        )
    )
