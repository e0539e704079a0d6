"""Parameters and arguments of other languages than Python, as their texts say them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from holdfast.activities.review.uses.matching import split_list


@dataclass(frozen=True)
class Parameters:
    """What a call may hand over."""

    least: int
    most: int | None
    """None: any number."""
    keywords: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    """Keywords without a default."""
    open: bool = False
    """True if any keyword is taken."""

    def misfit(self, given: Arguments) -> str:
        """Return why a call does not fit; empty: it does."""
        if given.count < self.least:
            return f"it needs {self.least} {_arguments(self.least)}, and gets {given.count}"
        if self.most is not None and given.count > self.most:
            return f"it takes {self.most} {_arguments(self.most)} at most, and gets {given.count}"
        if missing := sorted(self.needed - given.keywords):
            return f"it needs `{'`, `'.join(missing)}`"
        unknown = sorted(given.keywords - self.keywords)
        if unknown and not self.open:
            return f"it has no parameter `{'`, `'.join(unknown)}`"
        return ""


@dataclass(frozen=True)
class Arguments:
    count: int
    keywords: frozenset[str] = frozenset()


def _arguments(count: int) -> str:
    return "argument" if count == 1 else "arguments"


def parameters_of(text: str, *, types: bool = False) -> Parameters:
    """Return the parameters of Go or, with `types` in angle brackets, of Java."""
    parts = split_list(text, types=types)
    variadic = bool(parts) and "..." in parts[-1]
    return Parameters(len(parts) - variadic, None if variadic else len(parts))


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
    for index, part in enumerate(own, 1):
        name = re.match(r"(?:(?:public|private|protected|readonly)\s+)*([\w$]+)\s*(\??)", part)
        optional = bool(re.search(r"(?<![=<>!])=(?![=>])", part))
        if name is not None:
            optional = optional or bool(name[2]) or _may_be_absent(name[1], body)
        if not optional:
            least = index
    return Parameters(least, None if rest else len(own))


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
    least = most = 0
    splat = open_ = False
    keywords, needed = set[str](), set[str]()
    for part in split_list(text):
        if part.startswith("&") or part == "...":
            splat, open_ = splat or part == "...", open_ or part == "..."
        elif part.startswith("**"):
            open_ = True
        elif part.startswith("*"):
            splat = True
        elif named := re.match(r"(\w+):\s*(.*)\Z", part, re.DOTALL):
            keywords.add(named[1])
            if not named[2]:
                needed.add(named[1])
        else:
            most += 1
            least += "=" not in part
    most_all = None if splat else most
    return Parameters(least, most_all, frozenset(keywords), frozenset(needed), open_)


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
