"""Criteria that code can decide about an answer, at the end of the activity that produced it.

Patterns come from a model or a plan file: they are RE2 (linear time), at most 200 characters.
"""

from __future__ import annotations

import json
import re as linear
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

import re2
from pydantic import JsonValue

from holdfast.contracts import Check, CheckKind, Draft, Plan

PATTERN_LENGTH = 200
WORDS_LENGTH = 6
"""Digits of a number of words."""
DIGITS, EXACT = 15, 50
"""Digits of a number that is added up, before or behind the point, and of its exact sum."""
NUMBER = linear.compile(r"-?\d[\d,]*(?:\.\d+)?")
LISTED = linear.compile(r"(\w+)\.(\w+) ?, ?(\w+)")
"""A list of the result, a key of its rows, and a key beside it."""


def verdicts(checks: tuple[Check, ...], draft: Draft) -> tuple[str, ...]:
    """Return one sentence for each check that the draft fails."""
    return tuple(
        why for check in checks if (why := _CHECKS[check.kind].verdict(check.argument, draft))
    )


def plan_problems(plan: Plan) -> tuple[str, ...]:
    """Return a sentence, with its place, for every check of a plan that cannot be carried out."""
    return tuple(
        f"subtasks[{place}] {subtask.id!r}: checks: {why}"
        for place, subtask in enumerate(plan.subtasks)
        for why in problems(subtask.checks)
    )


def problems(wanted: Sequence[Check]) -> tuple[str, ...]:
    """Return a sentence for every check that cannot be carried out, or that no answer can meet."""
    found = [why for check in wanted if (why := _problem(check))]
    return tuple(found or _contradictions(wanted))


def _contradictions(wanted: Sequence[Check]) -> Iterator[str]:
    least = [int(check.argument) for check in wanted if check.kind == "min_words"]
    most = [int(check.argument) for check in wanted if check.kind == "max_words"]
    if least and most and max(least) > min(most):
        yield f"no answer has at least {max(least)} and at most {min(most)} words; change one"


def foreign_keys(wanted: Sequence[Check], form: Mapping[str, JsonValue]) -> str:
    """Return why no result in this form can have the keys that are wanted; empty: one can. `form`
    is the JSON schema of a closed object; empty: text.
    """
    properties = form.get("properties")
    if not isinstance(properties, dict):
        return ""
    keys = [key for check in wanted if check.kind == "keys" for key in _named(check.argument)]
    foreign = [key for key in keys if key not in properties]
    known = ", ".join(properties)
    return f"checks: keys: {', '.join(foreign)}: its result has only {known}" if foreign else ""


def _named(argument: str) -> list[str]:
    return [key.strip() for key in argument.split(",") if key.strip()]


def _problem(check: Check) -> str:
    argument = check.argument
    if check.kind == "regex":
        if len(argument) > PATTERN_LENGTH:
            return f"regex: longer than {PATTERN_LENGTH} characters"
        try:
            compile_pattern(argument)
        except re2.error as error:
            # RE2 gives its reason as bytes.
            said = error.args[0] if error.args else b"it is no pattern"
            return f"regex {argument!r}: {said.decode('utf-8', 'replace')}"
    if check.kind in ("min_words", "max_words") and not _is_count(argument.strip()):
        return f"{check.kind}: needs a number of words, not {argument!r}"
    if check.kind == "number_between" and _bounds(argument) is None:
        return f"number_between: needs two numbers as 'low,high', not {argument!r}"
    if check.kind in ("adds_up", "acyclic") and not LISTED.fullmatch(argument.strip()):
        return f"{check.kind}: needs 'list.key,key', not {argument!r}"
    named = argument.replace(",", " ") if check.kind == "keys" else argument
    if check.kind in ("valid_json", "cites_sources") and argument.strip():
        return f"{check.kind}: takes no argument; {argument!r} has no effect"
    if check.kind in ("keys", "contains") and not named.strip():
        return f"{check.kind}: needs an argument"
    return ""


def compile_pattern(pattern: str, *, any_case: bool = False) -> Any:
    """Return a pattern of RE2, which writes nothing to the error stream. Raise re2.error."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not any_case
    return re2.compile(pattern, options)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= WORDS_LENGTH


def _parse(content: str, number: Callable[[str], Any] = float) -> Any:
    """Parse the JSON of an answer. ValueError, also where it is nested too deeply."""
    try:
        return json.loads(content, parse_constant=_no_constant, parse_float=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _valid_json(_argument: str, draft: Draft) -> str:
    try:
        _parse(draft.content)
    except ValueError as error:
        return f"the result is not valid JSON: {error}"
    return ""


def _keys(argument: str, draft: Draft) -> str:
    try:
        value = _parse(draft.content)
    except ValueError:
        return "the result is not valid JSON, so it has no keys"
    rows = value if isinstance(value, list) else [value]
    missing = [
        key
        for key in _named(argument)
        if any(not isinstance(row, dict) or key not in row for row in rows)
    ]
    if not rows:
        return "the list is empty, so it has no keys"
    return f"keys are missing: {', '.join(missing)}" if missing else ""


def _regex(argument: str, draft: Draft) -> str:
    found = compile_pattern(argument).search(draft.content)
    return "" if found else f"nothing matches the pattern {argument!r}"


def _contains(argument: str, draft: Draft) -> str:
    found = argument.casefold() in draft.content.casefold()
    return "" if found else f"the text {argument!r} is missing"


def _min_words(argument: str, draft: Draft) -> str:
    words = len(draft.content.split())
    return "" if words >= int(argument) else f"{words} words, at least {argument} are wanted"


def _max_words(argument: str, draft: Draft) -> str:
    words = len(draft.content.split())
    return "" if words <= int(argument) else f"{words} words, at most {argument} are wanted"


def _cites_sources(_argument: str, draft: Draft) -> str:
    return "" if draft.sources else "no source is cited"


def _bounds(argument: str) -> tuple[float, float] | None:
    parts = argument.split(",")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        return None
    return (low, high) if low <= high else None


def _number_between(argument: str, draft: Draft) -> str:
    bounds = _bounds(argument)
    numbers = [float(text.replace(",", "")) for text in NUMBER.findall(draft.content)]
    if bounds and any(bounds[0] <= number <= bounds[1] for number in numbers):
        return ""
    return f"no number between {argument.replace(',', ' and ')} is in the result"


def _listed(argument: str, draft: Draft) -> tuple[Mapping[str, Any], str, list[Any], str, str]:
    """Return the result, and the list, its rows and the two keys that a check names. ValueError if
    the result has no such list.
    """
    found = LISTED.fullmatch(argument.strip())
    assert found, "a plan with another argument is refused"
    name, inner, outer = found.groups()
    whole = _parse(draft.content, Decimal)
    rows = whole.get(name) if isinstance(whole, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and inner in row for row in rows
    ):
        raise ValueError(f"it has no list {name!r} whose rows have {inner!r}")
    return whole, name, rows, inner, outer


def _adds_up(argument: str, draft: Draft) -> str:
    try:
        whole, name, rows, inner, outer = _listed(argument, draft)
        with localcontext(prec=EXACT):
            total = sum((_exact(row[inner]) for row in rows), Decimal())
        said = _exact(whole.get(outer))
    except ValueError as error:
        return f"the result does not add up: {error}"
    return "" if total == said else f"{name}.{inner} adds up to {total:f}, and {outer} is {said:f}"


def _exact(value: object) -> Decimal:
    """Return a number, or a text that is one, without a rounding. ValueError for all else."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r:.80} is no number") from None
    if isinstance(value, bool) or not number.is_finite():
        raise ValueError(f"{value!r:.80} is no number")
    if len(number.as_tuple().digits) > DIGITS or abs(number.adjusted()) > DIGITS:
        raise ValueError(f"{value!r:.80} has more than {DIGITS} digits")
    return number


def _acyclic(argument: str, draft: Draft) -> str:
    try:
        _, name, rows, inner, outer = _listed(argument, draft)
    except ValueError as error:
        return f"the result has no order: {error}"
    edges: dict[str, list[str]] = {}
    for row in rows:
        # One that is listed twice waits for what both of its rows name.
        edges.setdefault(str(row[inner]), []).extend(map(str, _several(row.get(outer))))
    unknown = {each for needed in edges.values() for each in needed if each not in edges}
    if unknown:
        return f"{name}.{outer} names what is not in the list: {', '.join(sorted(unknown))}"
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return f"{name}.{outer} goes round in a circle: {' → '.join(reversed(error.args[1]))}"
    return ""


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else () if value in (None, "") else (value,)


@dataclass(frozen=True)
class _Kind:
    """A kind of check: how to decide it, and how planners are told of it."""

    verdict: Callable[[str, Draft], str]
    """Takes argument and draft; returns what is missing, empty if the draft passes."""
    argument: str


_CHECKS: Mapping[CheckKind, _Kind] = {
    "valid_json": _Kind(_valid_json, "no argument"),
    "keys": _Kind(_keys, "comma-separated"),
    "regex": _Kind(_regex, f"RE2, at most {PATTERN_LENGTH} characters"),
    "contains": _Kind(_contains, "text"),
    "min_words": _Kind(_min_words, "a number"),
    "max_words": _Kind(_max_words, "a number"),
    "cites_sources": _Kind(_cites_sources, "no argument"),
    "number_between": _Kind(_number_between, "low,high"),
    "adds_up": _Kind(_adds_up, "list.key,total key"),
    "acyclic": _Kind(_acyclic, "list.id key,prerequisites key"),
}
KINDS = ", ".join(f"{name} ({kind.argument})" for name, kind in _CHECKS.items())
"""The checks that a plan may ask for, for planners: `{checks}` in a system prompt."""
