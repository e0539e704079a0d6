"""What a call may hand over, and what it does: of other languages than Python by their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.activities.review.uses.matching import split_list
from holdfast.text import pluralize


@dataclass(frozen=True)
class Parameters:
    """What a call of a definition may hand over."""

    positional: tuple[str, ...]
    """Names of those that may stand without one; for those that only may, `*name`."""
    needed: int
    """How many of these, from the first, have no default."""
    keyword: tuple[str, ...] = ()
    keyword_needed: tuple[str, ...] = ()
    more: bool = False
    more_keywords: bool = False

    def misfit(self, given: Arguments) -> str:
        """Return why a call does not fit; empty: it does."""
        if given.count > len(self.positional) and not self.more:
            return self._describe_excess(given)
        for name in self.positional[: given.count]:
            if name in given.keywords:
                return f"`{name}` is given twice"
        missing = [
            name.lstrip("*")
            for name in self.positional[given.count : self.needed]
            if name not in given.keywords
        ]
        missing += [name for name in self.keyword_needed if name not in given.keywords]
        if missing:
            return f"it needs `{'`, `'.join(missing)}`"
        unknown = sorted(given.keywords - {*self.positional, *self.keyword})
        if unknown and not self.more_keywords:
            return f"it has no parameter `{'`, `'.join(unknown)}`"
        return ""

    def _describe_excess(self, given: Arguments) -> str:
        """Return why so many arguments without a name are too many, and which must be named now."""
        most = len(self.positional)
        said = f"it takes {pluralize(most, 'positional argument')} at most, and gets {given.count}"
        if not most:
            said = f"it takes no positional argument, and gets {given.count}"
        named = [name for name in self.keyword if name not in given.keywords]
        # Of fewer nobody can tell which one the surplus was.
        if len(named) < given.count - most:
            return said
        return f"{said}; {' and '.join(f'`{each}`' for each in named)} must be named"

    def misplaced(self, before: Parameters, given: Arguments) -> str:
        """Return which argument without a name is another parameter's than before; empty: none is.
        A parameter that is only called otherwise is the one that it was.
        """
        was, now = ([name.lstrip("*") for name in side.positional] for side in (before, self))
        for place, (old, new) in enumerate(zip(was[: given.count], now, strict=False), 1):
            if old != new and (old in now or new in was):
                return f"argument {place} was its `{old}` and is its `{new}` now"
        return ""

    def in_places(self, body: str) -> str:
        """Return a body with the places of parameters for their names."""
        places = {name.lstrip("*"): f"${at}" for at, name in enumerate(self.positional)}
        placed = re.sub(r"\w+", lambda word: places.get(word[0], word[0]), body)
        return re.sub(r"\s+", "", placed)


@dataclass(frozen=True)
class Arguments:
    """What a call hands over: how many without a name, and the names of the others."""

    count: int
    keywords: frozenset[str] = frozenset()


def misfit(
    was: Parameters | None, now: Parameters | None, given: Arguments | None, bodies: Sequence[str]
) -> str:
    """Return why a call that fitted does not fit any more; empty: it does, or did not before.
    `bodies`: of the definition before and now, if the call stands as it stood; else there are none.
    """
    if was is None or now is None or given is None or was.misfit(given):
        return ""
    if why := now.misfit(given):
        return why
    # Who names parameters otherwise, and does the same with each, has exchanged none.
    if not bodies or (bodies[0] and was.in_places(bodies[0]) == now.in_places(bodies[1])):
        return ""
    return now.misplaced(was, given)


def parameters_of(text: str, *, types: bool = False) -> Parameters:
    """Return the parameters of Go or, with `types` in angle brackets, of Java."""
    parts = split_list(text, types=types)
    variadic = bool(parts) and "..." in parts[-1]
    own = parts[:-1] if variadic else parts
    names = (re.match(r".*?(\w+)$" if types else r"(\w+)", each, re.DOTALL) for each in own)
    listed = tuple(f"*{name[1] if name else ''}" for name in names)
    return Parameters(listed, len(own), more=variadic)


typed_parameters = partial(parameters_of, types=True)


def go_arguments(text: str) -> Arguments | None:
    parts = split_list(text)
    if parts and (parts[-1].endswith("...") or (len(parts) == 1 and parts[0].endswith(")"))):
        return None
    return Arguments(len(parts))


def arguments_of(text: str) -> Arguments | None:
    return Arguments(len(split_list(text)))


def script_parameters(text: str, body: str) -> Parameters | None:
    """Return the parameters of JavaScript or TypeScript; one that the body itself expects to be
    absent is none that is needed. None: the body reads `arguments`.
    """
    if re.search(r"\barguments\b", body):
        return None
    parts = split_list(text, types=True) if text.startswith("(") else [text]
    parts = [each for each in parts if not re.match(r"this\s*:", each)]
    rest = bool(parts) and parts[-1].startswith("...")
    own = parts[:-1] if rest else parts
    least = 0
    names: list[str] = []
    for index, part in enumerate(own, 1):
        name = re.match(r"(?:(?:public|private|protected|readonly)\s+)*([\w$]+)\s*(\??)", part)
        names.append(f"*{name[1] if name else part}")
        optional = bool(re.search(r"(?<![=<>!])=(?![=>])", part))
        if name is not None:
            optional = optional or bool(name[2]) or _may_be_absent(name[1], body)
        if not optional:
            least = index
    return Parameters(tuple(names), least, more=rest)


def _may_be_absent(name: str, body: str) -> bool:
    word = rf"(?<![\w$.]){re.escape(name)}(?![\w$])"
    return bool(
        re.search(
            rf"typeof\s+{word}|{word}\s*(?:\?\?|\|\||&&|\?(?!\.)|\?\.|===?|!==?)|!\s*{word}"
            rf"|if\s*\(\s*{word}",
            body,
        )
    )


def script_arguments(text: str) -> Arguments | None:
    parts = split_list(text)
    return None if any(each.startswith("...") for each in parts) else Arguments(len(parts))


def ruby_parameters(text: str) -> Parameters:
    least = 0
    splat = open_ = False
    names, keywords, needed = list[str](), list[str](), list[str]()
    for part in split_list(text):
        if part.startswith("&") or part == "...":
            splat, open_ = splat or part == "...", open_ or part == "..."
        elif part.startswith("**"):
            open_ = True
        elif part.startswith("*"):
            splat = True
        elif named := re.match(r"(\w+):\s*(.*)\Z", part, re.DOTALL):
            keywords.append(named[1])
            if not named[2]:
                needed.append(named[1])
        else:
            names.append(f"*{part.partition('=')[0].strip()}")
            least += "=" not in part
    return Parameters(tuple(names), least, tuple(keywords), tuple(needed), splat, open_)


def ruby_arguments(text: str, keywords_too: bool) -> Arguments | None:
    """Return what a call hands over; None: nobody can tell. Without `keywords_too` a hash without
    braces is the last positional one.
    """
    count = 0
    keywords = set[str]()
    for part in split_list(text):
        if part.startswith("&"):
            continue
        if part.startswith(("*", "::*")) or "=>" in part or part == "...":
            return None
        named = re.match(r"(\w+):(?!:)", part)
        if named:
            keywords.add(named[1])
        else:
            count += 1
    if keywords and not keywords_too:
        return None
    return Arguments(count, frozenset(keywords))
