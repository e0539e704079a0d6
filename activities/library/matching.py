"""Whether a goal is the one that a template is for, by words alone: no model is asked.

A wrong template is a wrong answer. So a goal fits surely only if each word outside of parameters is
the same, in order; what comes close is a question for a model, and everything else is no match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from heapq import nsmallest
from math import ceil
from typing import Generic, TypeVar

from holdfast.activities.library.template import VALUE_LETTERS, Parameter, Template
from holdfast.activities.library.words import Token, begins_sentence, tokens_of, values_of

MOST_WORDS = 6
"""Words of a text parameter, unless its example has more."""
CLOSE = 0.6
"""The share of words in common from which on a goal is worth a question."""
MOST_TOKENS = 400
"""A longer goal is one of its own."""
MOST_TRIED = 50
"""Templates of which all words are in a goal, that are compared with it word by word."""
MOST_NEAR = 8
"""The same of those of which some are missing."""

_BREAKS = re.compile(r"[,;:!?()\n\[\]{}]|\.\s|\s[-–—]\s")
"""Between parts of a sentence: no value goes across, unless its example does."""
_JOIN = """
in on at for with without and or but not no nor never except excluding including include plus also
then than by to from as per via using only into since until before after during between vs while
when if because that which who whose where how why what about against over under each every all
both either neither instead rather compared briefly shortly daily weekly monthly quarterly yearly
nobody nothing none nowhere anybody anyone anything everybody everyone everything
today tomorrow yesterday now is was do write list compare summarize tell find explain
"""
_JOINERS = frozenset(_JOIN.split())
"""Words that end a value or begin another demand: no value has one, unless its example does."""
_TELL = """
not no without except excluding never nor neither and also plus then or both either only all every
each any some top table csv json yaml bullet email mail letter slide deck presentation spreadsheet
chart graph diagram memo tweet post poem essay report translate translation german french english
spanish italian dutch polish portuguese chinese japanese russian more less fewer most least best
worst high highest low lowest cheap cheapest dear dearest expensive large largest small smallest
fast fastest slow slowest strong strongest weak weakest first last next previous before after
above below since until increase decrease rise fall grow shrink for against risk opportunity
strength weakness cause effect cost benefit daily weekly monthly quarterly yearly annual day week
month quarter year today tomorrow yesterday summarize compare list evaluate review explain write
rewrite rank recommend predict forecast buy sell internal external positive negative legal
technical financial short shorter long longer detailed
"""
_TELLING = frozenset(_TELL.split())
"""Words that make another goal of one: a goal that differs in one is not even close."""
_OF_NAMES = """
of de van von der den du la le and & the
"""
_SMALL = frozenset(_OF_NAMES.split())
"""Words of names that are written small."""

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Fit(Generic[Entry]):
    """A template that a goal fits, with the values of its parameters."""

    entry: Entry
    values: Mapping[str, str]
    sure: bool
    """False: a model should say whether it does."""


Key = tuple[str, str, tuple[str, ...]]
"""Playbook, form of the answer, kinds of the inputs: templates of another key are never tried."""


def key_of(playbook: str, answer: str, kinds: Iterable[str]) -> Key:
    return playbook, answer, tuple(sorted(kinds))


@dataclass(frozen=True)
class Slot:
    """What the values of a parameter must be like."""

    sort: tuple[str, str]
    """Kind and grain."""
    example: str
    words: frozenset[str]
    """Words of the example."""
    most: int
    """Words of a value."""

    @classmethod
    def of(cls, parameter: Parameter, *, quoted: bool) -> Slot:
        words = [each.form for each in tokens_of(parameter.example)]
        sort = ("quote", "") if quoted else _sort_of(parameter)
        return cls(sort, parameter.example, frozenset(words), max(MOST_WORDS, len(words)))


@dataclass(frozen=True)
class Pattern:
    """The goal of a template, taken apart."""

    key: Key
    tokens: tuple[Token, ...]
    slots: Mapping[str, Slot]
    fixed: frozenset[str]
    """Its words and values outside of parameters."""

    @classmethod
    def of(cls, template: Template) -> Pattern:
        tokens = tuple(_with_quoted_slots(tokens_of(template.goal), template.goal))
        quoted = {each.form for each in tokens if each.kind == "slot" and each.grain == "quote"}
        slots = {
            name: Slot.of(each, quoted=name in quoted) for name, each in template.parameters.items()
        }
        fixed = frozenset(_key(each) for each in tokens if each.kind != "slot")
        key = key_of(template.playbook, template.answer, template.inputs.values())
        return cls(key, tokens, slots, fixed)


def _key(token: Token) -> str:
    return f"{token.kind} {token.form}"


def _with_quoted_slots(tokens: Iterable[Token], text: str) -> Iterator[Token]:
    for each in tokens:
        inner = text[each.start + 1 : each.end - 1]
        if each.kind == "quote" and re.fullmatch(r"\{[a-z][a-z0-9_]*\}", inner):
            yield Token("slot", inner[1:-1], each.start, each.end, "quote")
        else:
            yield each


def _sort_of(parameter: Parameter) -> tuple[str, str]:
    if parameter.kind == "input":
        return "input", ""
    if parameter.kind in ("number", "date"):
        values = tokens_of(parameter.example)
        return parameter.kind, values[0].grain
    values = values_of(parameter.example)
    if len(values) == 1 and values[0].kind == "file" and values[0].form == parameter.example:
        return "file", ""
    return ("name", "") if _is_name(parameter.example) else ("phrase", "")


def _is_name(text: str) -> bool:
    words = [each for each in re.split(r"[\s/]+", text) if each]
    big = [each for each in words if not each[0].islower()]
    return bool(big) and all(each in _SMALL for each in words if each not in big)


# ---------------------------------------------------------------- one goal, one template


@dataclass(frozen=True)
class Asked:
    """A goal, taken apart."""

    text: str
    tokens: tuple[Token, ...]
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, text: str, inputs: Iterable[str]) -> Asked:
        return cls(text, tuple(tokens_of(text)), tuple(inputs))

    def said(self, token: Token) -> str:
        said = self.text[token.start : token.end]
        return said[1:-1] if token.kind == "quote" else said


def match(pattern: Pattern, asked: Asked) -> tuple[Mapping[str, str], bool] | None:
    """Return the values of the parameters and whether the goal surely fits; None: it does not, or
    not even nearly.
    """
    found = [*_align(pattern, asked, 0, 0, {})]
    values = {tuple(sorted(each.items())) for each in found}
    if len(values) == 1:
        return found[0], True
    return None if values else _near(pattern, asked)


def _align(
    pattern: Pattern, asked: Asked, at: int, here: int, values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the values with which the rest of the pattern is the rest of the goal, at most two."""
    tokens, goal = pattern.tokens, asked.tokens
    while at < len(tokens) and tokens[at].kind != "slot":
        if here >= len(goal) or _key(tokens[at]) != _key(goal[here]):
            return
        at, here = at + 1, here + 1
    if at == len(tokens):
        if here == len(goal):
            yield values
        return
    name, ends = tokens[at].form, 0
    for end, value in _values_at(pattern, asked, name, here):
        if values.get(name, value) != value:
            continue
        for found in _align(pattern, asked, at + 1, end, {**values, name: value}):
            yield found
            ends += 1
            if ends == 2:
                return


def _values_at(pattern: Pattern, asked: Asked, name: str, here: int) -> Iterator[tuple[int, str]]:
    """Yield the values that a parameter can have from this token on, each with where it ends."""
    slot = pattern.slots[name]
    sort, grain = slot.sort
    goal = asked.tokens
    if here >= len(goal):
        return
    first, said = goal[here], asked.said(goal[here])
    if sort == "input":
        if (given := said.strip("'\"`")) in asked.inputs:
            yield here + 1, given
    elif sort in ("number", "date", "quote", "file"):
        if first.kind == sort and (sort not in ("number", "date") or first.grain == grain):
            yield here + 1, said
    elif first.kind == "quote" and sort == "name":
        yield here + 1, said
    else:
        for end in range(here + 1, min(here + slot.most, len(goal)) + 1):
            value = asked.text[first.start : goal[end - 1].end]
            if _can_be(value, goal[here:end], slot):
                yield end, value


def _can_be(value: str, tokens: Sequence[Token], slot: Slot) -> bool:
    """True if a text can stand where the example of a parameter stands."""
    name = slot.sort[0] == "name"
    kinds = [each.kind for each in tokens if not (name and _key(each) == "sign &")]
    if len(value) > VALUE_LETTERS or not {*kinds} <= {"word", "number"}:
        return False
    if any(each.form.lower() in _JOINERS and each.form not in slot.words for each in tokens):
        return False
    if any(each[0].strip() not in slot.example for each in _BREAKS.finditer(value)):
        return False
    if value.lower().startswith("non-"):
        return False
    return _is_name(value) if name else not _starts_big(value)


def _starts_big(value: str) -> bool:
    """True if a phrase is a name in truth: where the example was none, another thing is asked."""
    return all(word[:1].isupper() for word in value.split())


# ---------------------------------------------------------------- what comes close


def _near(pattern: Pattern, asked: Asked) -> tuple[Mapping[str, str], bool] | None:
    """Return the values of a goal that says perhaps the same in other words: every value has its
    only place, and nothing differs that makes another goal of it.
    """
    rest, values = [*asked.tokens], dict[str, str]()
    fixed = Counter(_key(each) for each in pattern.tokens if each.kind != "slot")
    names = [*dict.fromkeys(each.form for each in pattern.tokens if each.kind == "slot")]
    for sort in dict.fromkeys(pattern.slots[name].sort for name in names):
        wanted = [name for name in names if pattern.slots[name].sort == sort]
        free = [*_free_values(sort, rest, asked, fixed)]
        if sort[0] == "phrase" or len(free) != len(wanted):
            return None
        for name, used in zip(wanted, free, strict=True):
            values[name] = asked.text[used[0].start : used[-1].end]
            values[name] = asked.said(used[0]) if len(used) == 1 else values[name]
            rest = [each for each in rest if each not in used]
    left = Counter(_key(each) for each in rest)
    same = (left & fixed).total()
    if same < CLOSE * max(left.total(), fixed.total()):
        return None
    other = (left - fixed) + (fixed - left)
    if any(
        key.partition(" ")[0] != "word" or key.partition(" ")[2].lower() in _TELLING
        for key in other
    ):
        return None
    if any(_is_named(each, asked) for each in rest if _key(each) not in fixed):
        return None
    if _changes(pattern, asked, rest) < 2:
        return None
    return values, False


def _changes(pattern: Pattern, asked: Asked, rest: Sequence[Token]) -> int:
    """Count the places at which the words differ. Who says the same in other words changes several;
    a word in place of another, or some more of them, is another demand.
    """
    one = [_key(each) if each.kind != "slot" else "" for each in pattern.tokens]
    free = [_key(each) if each in rest else "" for each in asked.tokens]
    # A value of several words is one.
    other = [each for place, each in enumerate(free) if each or not place or free[place - 1]]
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return sum(each[0] != "equal" for each in matcher.get_opcodes())


def _free_values(
    sort: tuple[str, str], tokens: Sequence[Token], asked: Asked, fixed: Counter[str]
) -> Iterator[list[Token]]:
    """Yield the values of a sort in a goal that the template does not have as they are."""
    kind, grain = sort
    if kind == "name":
        group: list[Token] = []
        for each in tokens:
            named = _key(each) not in fixed and _is_named(each, asked)
            if named and group and asked.text[group[-1].end : each.start].strip(" "):
                yield group
                group = []
            if named:
                group.append(each)
            elif group:
                yield group
                group = []
        yield from [group] if group else ()
        return
    for each in tokens:
        is_input = kind == "input" and asked.said(each) in asked.inputs
        same = each.kind == kind and (kind not in ("number", "date") or each.grain == grain)
        if is_input or (same and _key(each) not in fixed):
            yield [each]


def _is_named(token: Token, asked: Asked) -> bool:
    """True for a word that is written big though no sentence begins with it."""
    big = token.kind == "word" and asked.text[token.start].isupper()
    return big and not begins_sentence(asked.text, token.start)


# ---------------------------------------------------------------- one goal, thousands of templates


@dataclass
class Index(Generic[Entry]):
    """Templates by what they have in common with a goal. Of equal ones the first comes first."""

    _known: dict[Key, list[tuple[Pattern, Entry]]] = field(default_factory=dict)
    _places: dict[Key, Places] = field(default_factory=dict)

    def add(self, pattern: Pattern, entry: Entry) -> None:
        self._known.setdefault(pattern.key, []).append((pattern, entry))
        self._places.pop(pattern.key, None)

    def find(self, key: Key, asked: Asked) -> Fit[Entry] | None:
        """Return the template that a goal fits: one that surely does, else the closest."""
        if key not in self._known or len(asked.tokens) > MOST_TOKENS:
            return None
        words = {_key(each) for each in asked.tokens}
        places, known = self._placed(key), self._known[key]
        whole = [
            place
            for word in (*words, "")
            for place in places.rarest.get(word, ())
            if known[place][0].fixed <= words
        ]
        # The one with the most words of its own says the most of what is asked.
        whole.sort(key=lambda place: (-len(known[place][0].fixed), place))
        return self._first(key, asked, whole[:MOST_TRIED], sure=True) or self._first(
            key, asked, self._nearest(key, words), sure=False
        )

    def _first(
        self, key: Key, asked: Asked, places: Iterable[int], *, sure: bool
    ) -> Fit[Entry] | None:
        for place in places:
            pattern, entry = self._known[key][place]
            found = match(pattern, asked)
            if found is not None and found[1] is sure:
                return Fit(entry, *found)
        return None

    def _nearest(self, key: Key, words: Collection[str]) -> list[int]:
        """Return the templates of which the most words are in a goal, and enough of them."""
        places, known = self._placed(key).rare, self._known[key]
        some = {place for word in words for place in places.get(word, ())}
        share = {
            place: len(known[place][0].fixed.intersection(words)) / len(known[place][0].fixed)
            for place in some
        }
        enough = [place for place, part in share.items() if part >= CLOSE]
        return nsmallest(MOST_NEAR, enough, key=lambda place: (-share[place], place))

    def _placed(self, key: Key) -> Places:
        if key not in self._places:
            self._places[key] = Places.of([pattern for pattern, _ in self._known[key]])
        return self._places[key]


@dataclass(frozen=True)
class Places:
    """Where in a list the templates stand that have a word."""

    rarest: Mapping[str, list[int]]
    """By the rarest of its words: a goal that has them all has it. Under "": those without any."""
    rare: Mapping[str, list[int]]
    """By its rarest words: a goal that has enough of them all has one of these."""

    @classmethod
    def of(cls, patterns: Sequence[Pattern]) -> Places:
        often = Counter(word for each in patterns for word in each.fixed)
        rarest: dict[str, list[int]] = {}
        rare: dict[str, list[int]] = {}
        for place, each in enumerate(patterns):
            words = sorted(each.fixed, key=lambda word: (often[word], word))
            rarest.setdefault(words[0] if words else "", []).append(place)
            for word in words[: len(words) - ceil(CLOSE * len(words)) + 1]:
                rare.setdefault(word, []).append(place)
        return cls(rarest, rare)
