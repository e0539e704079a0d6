"""Take a goal apart: its words as far as they matter, and its literal values, each of a kind."""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["word", "number", "date", "quote", "file", "slot", "sign"]

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_YEAR = r"(?:19|20)\d\d"
_DATES: Mapping[str, str] = {
    "years": rf"\b{_YEAR}\s?[-–—/]\s?(?:{_YEAR}|\d\d(?![-/\d]))\b",
    "day": (
        r"\b(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
        rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? {_MONTH},? {_YEAR}"
        rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR})\b"
    ),
    "quarter": rf"\bQ[1-4](?:[ /-]?{_YEAR})\b",
    "quarter-alone": r"\bQ[1-4]\b",
    "half": rf"\bH[12](?:[ /-]?{_YEAR})\b",
    "month": rf"\b(?:{_MONTH},? {_YEAR}|\d{{4}}-\d\d(?![-\d]))(?!\w)",
    "month-alone": (
        r"\b(?:January|February|April|June|July|August|September|October|November|December)\b"
    ),
    "year": rf"(?<![\w$€£.,-]){_YEAR}(?![\w%-]|[.,]\d)",
}
"""Expressions of a day, a month and so on, the longest first: each is a grain of its own."""
_PARTS = (
    r"(?P<slot>\{[a-z][a-z0-9_]*\})",
    r"(?P<quote>\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“\n]{1,200}“|«[^»\n]{1,200}»|`[^`\n]{1,200}`"
    r"|(?<![\w])'[^'\n]{1,200}'(?!\w)|(?<!\w)‘[^’\n]{1,200}’(?!\w))",
    r"(?P<file>https?://[^\s<>\"]{0,300}[^\s<>\".,;:!?)]|[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{0,60}\w"
    r"|(?:[\w~.-]{0,60}/){0,12}[\w-]{1,80}(?:\.[\w-]{1,20}){0,4}\.[a-z][a-z0-9]{1,4}\b(?!\w)"
    r"|(?<![\w/])[~.]{0,2}/[\w./-]{0,200}\w)",
    *(rf"(?P<date_{name.replace('-', '_')}>{form})" for name, form in _DATES.items()),
    r"(?P<number>(?<![\w)])[-−]?[$€£]?\.?\d+(?:[.,]\d+)*(?:\s?%|[$€£])?)(?![\w])",
    r"(?P<short>(?i:what|who|where|how|it|that|there|let)['’]s\b)",
    r"(?P<own>['’]s\b)",
    r"(?P<word>[^\W_]+(?:(?:['’](?!s\b)|[-_])[^\W_]+)*)",
    # `C++` is not C, `<` not `>`, and 6" not 6'.
    r"(?P<sign>[!:]=|(?<=\d)[\"'’”]|[^\s\w.,;:!?{}\"'’‘“”„«»`…])",
)
_TOKEN = re.compile("|".join(_PARTS))
_COUNTED = "two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTED.split(), 2)}
_DROPPED = frozenset(("a", "an", "the"))
"""Words without which a goal asks for the same."""
_BEGINS = """
can you|could you|would you|will you|i need you to|i want you to|i would like you to|i'd like you to
we need you to|we want you to|we would like you to|i want to know|i need to know|we need to know
i would like to know|i'd like to know|i need|we need|i want|we want|i would like|i'd like
we would like|help me|help us|please|kindly
"""
_ENDS = """
for me|for us|thank you|thanks|please
"""
"""How a wish begins and ends says nothing of what is wished."""
_ORDERS: Mapping[str, str] = {
    "let me know": "tell", "give me": "tell", "give us": "tell", "tell me": "tell",
    "tell us": "tell", "show me": "tell", "show us": "tell", "give": "tell", "show": "tell",
    "say": "tell", "provide": "tell", "summary of": "summarize", "sum up": "summarize",
    "tell summarize": "summarize", "write summarize": "summarize", "tell summary of": "summarize",
    "write summary of": "summarize", "comparison of": "compare", "tell comparison of": "compare",
    "write comparison of": "compare", "list of": "list", "tell list of": "list",
    "write list of": "list", "tell which": "which", "tell what": "what", "tell who": "who",
    "tell how": "how", "tell why": "why", "tell when": "when", "tell where": "where",
    "tell whether": "whether", "enumerate": "list", "list out": "list", "write down": "list",
    "draw up": "write", "prepare": "write", "create": "write",
    "produce": "write", "make": "write", "compose": "write", "find out": "find",
    "identify": "find", "determine": "find", "figure out": "find", "look for": "find",
    "work out": "find", "assess": "evaluate", "go through": "review", "go over": "review",
}  # fmt: skip
"""The same order in other words: of its first words alone, as later ones may mean other things."""
_PHRASES: Mapping[str, str] = {
    "for what reason": "why", "most common": "most frequent", "bullet": "bullet point",
    "bullet point": "bullet point", "each": "every", "most important": "main",
    "biggest": "largest", "greatest": "largest", "are": "is", "were": "was",
    "what's": "what is", "who's": "who is", "where's": "where is", "how's": "how is",
    "it's": "it is", "that's": "that is", "there's": "there is", "don't": "do not",
    "doesn't": "do not", "does": "do", "pros and cons": "for and against",
    "advantage and disadvantage": "for and against", "versus": "vs", "analyse": "analyze",
    "concerning": "about", "regarding": "about", "on the subject of": "about",
    "per cent": "percent",
}  # fmt: skip
"""Words that mean the same wherever they stand, once each is in its own plain form."""
_PLURALS = frozenset(
    (
        "arms", "customs", "damages", "earnings", "economics", "electronics", "futures",
        "glasses", "goods", "grounds", "means", "minutes", "news", "politics", "premises",
        "proceeds", "savings", "securities", "spirits", "windows", "works",
    )
)  # fmt: skip
"""Words that are others without their `s`."""
_BRITISH = re.compile(r"(?<=\w{3})(is|ys)(?=(?:e|ed|es|ing|ation)$)")
LONGEST_PHRASE = 5
MOST_LETTERS = 4_000
"""A longer goal is one of its own: no template is made of it, and none is looked for."""


@dataclass(frozen=True)
class Token:
    """A word or a value of a text."""

    kind: TokenKind
    form: str
    """Its plain form; of a date its grain and itself, of a slot the parameter's name."""
    start: int
    end: int
    grain: str = ""
    """What a date or a number is exactly: another grain is another question."""


@functools.cache
def plain(word: str) -> str:
    """Return a word as it is compared: small, American, singular."""
    word = word.lower().replace("’", "'")
    if word in _PLURALS:
        return word
    if word.endswith("our") and len(word) > 5:
        word = f"{word[:-3]}or"
    word = _BRITISH.sub(lambda each: "iz" if each[1] == "is" else "yz", word)
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is", "'s")):
        return word[:-1]
    return word


Words = tuple[str, ...]


def _words(said: str) -> Words:
    return tuple(plain(each) for each in said.split())


def _listed(said: str) -> frozenset[Words]:
    return frozenset(_words(each) for each in re.split(r"[|\n]", said) if each)


BEGINS, ENDS = _listed(_BEGINS), _listed(_ENDS)
ORDERS = {_words(said): tuple(means.split()) for said, means in _ORDERS.items()}
SAME = {_words(said): tuple(means.split()) for said, means in _PHRASES.items()}


def tokens_of(text: str) -> list[Token]:
    """Return what a text asks for, in order: without articles and courtesies, words in plain form,
    values whole.
    """
    return _without_phrases([*_raw(text)])


def values_of(text: str) -> list[Token]:
    """Return the literal values in a text: what is quoted, files, dates, numbers."""
    return [each for each in _raw(text) if each.kind not in ("word", "slot", "sign")]


def _raw(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        name = found.lastgroup or "word"
        said, start, end = found[0], found.start(), found.end()
        if name.startswith("date_"):
            grain = name.removeprefix("date_")
            yield Token("date", said.lower(), start, end, grain)
        elif name == "number":
            below = "-" * (said[0] in "-−")
            unit = "%" if "%" in said else next((each for each in "$€£" if each in said), "")
            yield Token("number", said.replace(" ", ""), start, end, below + unit)
        elif name == "slot":
            yield Token("slot", said[1:-1], start, end)
        elif name in ("quote", "file"):
            yield Token("quote" if name == "quote" else "file", said, start, end)
        elif name == "own":
            # `Acme's prices` are the prices of Acme, and no other word.
            continue
        elif name == "sign":
            yield Token("sign", said, start, end)
        elif (word := said.lower()) in NUMBER_WORDS:
            yield Token("number", NUMBER_WORDS[word], start, end)
        else:
            named = said[0].isupper() and not begins_sentence(text, start)
            other = len(said) > 1 and said.isupper()
            yield Token("word", said if named or other else plain(said), start, end)


def begins_sentence(text: str, at: int) -> bool:
    """True if nothing of a sentence stands before this place: any word may be written big there."""
    while at and text[at - 1] == " ":
        at -= 1
    return not at or text[at - 1] in ".!?:\n"


def _without_phrases(tokens: list[Token]) -> list[Token]:
    # What no word follows is no article, as in `vitamin a`.
    following = [*(each.kind for each in tokens[1:]), ""]
    found = [
        each
        for each, then in zip(tokens, following, strict=True)
        if each.kind != "word" or each.form not in _DROPPED or then not in ("word", "slot")
    ]
    while size := _count(found, BEGINS):
        found = found[size:]
    while size := _count(found[::-1], {each[::-1] for each in ENDS}):
        found = found[:-size]
    if found and found[0].kind == "word" and found[0].form[:1].isupper():
        # It is the first word now, as in `Please Compare`.
        first = found[0]
        found[0] = Token("word", plain(first.form), first.start, first.end)
    # `give me` becomes `tell`, and `tell summary of` then `summarize`.
    for _ in range(3):
        if not (size := _count(found, ORDERS)):
            break
        found = _as_words(ORDERS[_forms(found[:size])], found[:size]) + found[size:]
    return _replaced(found)


def _forms(tokens: Sequence[Token]) -> Words:
    return tuple(each.form if each.kind == "word" else "" for each in tokens)


def _count(tokens: Sequence[Token], phrases: Container[Words]) -> int:
    """Return how many of the first words are one of these phrases, the longest there is."""
    sizes = range(min(LONGEST_PHRASE, len(tokens)), 0, -1)
    return next((size for size in sizes if _forms(tokens[:size]) in phrases), 0)


def _as_words(means: Words, instead: Sequence[Token]) -> list[Token]:
    return [Token("word", each, instead[0].start, instead[-1].end) for each in means]


def _replaced(tokens: list[Token]) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        size = _count(tokens[at:], SAME)
        part = tokens[at : at + max(size, 1)]
        found += _as_words(SAME[_forms(part)], part) if size else part
        at += len(part)
    return found
