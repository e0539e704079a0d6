"""Read `.holdfast.toml` at the top of a repository: what its owners take out of a review. It is a
stranger's file: it can only narrow, what is unknown in it is reported and not obeyed, and the
report tells what it took out.

It is read by `tomllib` in a thread of this process and not in a child: it loads and runs nothing,
deep nesting ends in an error, and its time grows with the square of the dots of a key alone, which
are bounded here. The worst that fit take about a tenth of a second; a test measures them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.activities.toolset.globs import name_pattern
from holdfast.activities.toolset.tool import ToolError
from holdfast.contracts import Narrowing
from holdfast.text import one_line
from holdfast.text.mistakes import suggest
from holdfast.untrusted.redact import redact

NAME = ".holdfast.toml"
MOST_BYTES = 16 * 1024
MOST_DOTS = 300
"""Dots in one line."""
MOST_GLOBS, MOST_RULES = 100, 100
LETTERS = 200
"""Characters of a pattern, a rule, a reason or a key, as it is kept and told."""
KEYS = ("paths_out", "rules_off", "threshold")
IN_FULL = tuple(f"review.{key}" for key in KEYS)


def parse_settings(content: bytes, source: str) -> Narrowing:
    """Return what such a file takes out, and what of it is not obeyed; `source` names it in the
    report.
    """
    if len(content) > MOST_BYTES:
        return _none(source, f"it is larger than {MOST_BYTES >> 10} KiB")
    if any(line.count(b".") > MOST_DOTS for line in content.splitlines()):
        return _none(source, f"a line of it has more than {MOST_DOTS} dots")
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        return _none(source, f"it cannot be read as TOML ({_short(why)})")
    said = [_unknown(key, ["review"]) for key in found if key != "review"]
    review = found.get("review", {})
    if not isinstance(review, dict):
        return _none(source, "[review] is not a table")
    said += [_unknown(f"review.{key}", IN_FULL) for key in review if key not in KEYS]
    return Narrowing(
        source=source,
        paths_out=tuple(_paths(review.get("paths_out", []), said)),
        rules_off=dict(_rules(review.get("rules_off", {}), said)),
        threshold=_threshold(review.get("threshold", 0), said),
        not_obeyed=tuple(_few(said)),
    )


def _unknown(key: str, known: Sequence[str]) -> str:
    return f"unknown key {_short(key)!r}{suggest(key, known)}"


def _none(source: str, why: str) -> Narrowing:
    return Narrowing(source=source, not_obeyed=(f"all of it, because {why}",))


def _paths(given: Any, said: list[str]) -> Iterator[str]:
    if not isinstance(given, list):
        said.append("review.paths_out, because it is not a list of patterns")
        return
    for index, each in enumerate(given):
        if index == MOST_GLOBS:
            said.append(f"patterns beyond the first {MOST_GLOBS}")
            return
        if not isinstance(each, str) or not 0 < len(each) <= LETTERS:
            said.append(f"pattern {index + 1}, because it is not text of up to {LETTERS} letters")
            continue
        try:
            name_pattern(each)
            if redact(each) != each:
                raise ToolError("it looks like a secret")
        except ToolError as error:
            said.append(f"pattern {index + 1}: {_short(str(error))}")
        else:
            yield each


def _rules(given: Any, said: list[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(given, Mapping):
        said.append('review.rules_off, because it is not a table of RULE = "reason"')
        return
    for index, (rule, reason) in enumerate(given.items()):
        if index == MOST_RULES:
            said.append(f"rules beyond the first {MOST_RULES}")
            return
        if not isinstance(reason, str) or not reason.strip():
            said.append(f"rule {_short(rule)!r}, because it gives no reason")
        elif len(rule) > LETTERS or redact(rule) != rule:
            said.append(f"rule {_short(rule)!r}, because no rule has such a name")
        else:
            yield rule, _short(reason)


def _threshold(given: Any, said: list[str]) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= 100:
        said.append("review.threshold, because it is not a number from 0 to 100")
        return 0
    return given


def _few(said: list[str]) -> Iterator[str]:
    yield from said[:10]
    if len(said) > 10:
        yield f"{len(said) - 10} more"


def _short(text: str) -> str:
    return redact(one_line(text))[:LETTERS]
