"""Compile patterns of file names and of lines that match in time linear in the text."""

from __future__ import annotations

import re
from typing import Any

import re2

from holdfast.activities.toolset.tool import ToolError
from holdfast.text import one_line

PATTERN_LETTERS = 1_000
_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|[{},]|.", re.DOTALL)
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_nl = True
"""A match is within a line, whatever the pattern says."""


def line_pattern(pattern: str, *, ignore_case: bool) -> Any:
    """Compile a regular expression for the lines of UTF-8 bytes. Raise ToolError if it is not
    one.
    """
    return _compile(f"(?{'i' if ignore_case else ''}m){pattern}", pattern)


def name_pattern(glob: str) -> Any:
    """Compile a glob for paths: `*` and `?` within a name, `**` across folders, `[ab]` and `{a,b}`.
    Without a slash it is tried on names alone, wherever they stand.
    """
    prefix = "" if "/" in glob else "(?:.*/)?"
    depth, parts = 0, [f"^{prefix}"]
    for part in _PARTS.findall(glob.removeprefix("/")):
        depth += (part == "{") - (part == "}")
        parts.append(_translate(part, within=depth > 0))
    return _compile("".join(parts) + "$", glob)


def _translate(part: str, *, within: bool) -> str:
    match part:
        case "**/":
            return "(?:[^/]+/)*"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case "{":
            return "(?:"
        case "}":
            return ")"
        case ",":
            return "|" if within else ","
    if len(part) > 1:
        negated = part[1] == "!"
        letters = "".join(
            f"\\{each}" if each in "\\^[" else each for each in part[1 + negated : -1]
        )
        return f"[{'^/' if negated else ''}{letters}]"
    return str(re2.escape(part))


def _compile(text: str, meant: str) -> Any:
    if len(meant) > PATTERN_LETTERS:
        raise ToolError(f"the pattern has {len(meant):,} letters; at most {PATTERN_LETTERS:,}")
    try:
        return re2.compile(text.encode("utf-8", "backslashreplace"), _OPTIONS)
    except re2.error as error:
        said = error.args[0].decode() if error.args else "it is none"
        raise ToolError(
            f"the pattern {one_line(meant)[:200]!r} cannot be used: {one_line(said)[:200]};"
            " look-arounds and back-references are not there"
        ) from None
