"""Run and read ruff, for every lens that uses it. A lens is a table of its rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.activities.review.analysing.lens import (
    PYTHON,
    SYNTAX,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
    decode,
    parse_beyond,
    sift_command,
)

UNREADABLE = "E902"
MARKER = re.compile(rb"(?i)noqa")
_TARGET = "py314"
"""The newest grammar, so that no file is refused for being newer than this Python."""


def command(
    grades: Mapping[str, Grade],
) -> Callable[[Sequence[str], bool], CommandLine]:
    """Return the command whose rules are the rows of the table."""
    rules = ",".join((*(rule for rule in grades if rule != SYNTAX and " " not in rule), UNREADABLE))

    def build(files: Sequence[str], honour: bool) -> CommandLine:
        options = (
            "check",
            "--isolated",
            "--no-cache",
            "--exit-zero",
            "--no-fix",
            "--no-respect-gitignore",
            "--output-format=json-lines",
            f"--target-version={_TARGET}",
            f"--select={rules}",
        )
        ignore = () if honour else ("--ignore-noqa",)
        return sift_command("ruff", *PYTHON, "-m", "ruff", *options, *ignore, "--", *files)

    return build


def parse(stdout: bytes, *, syntax: bool) -> Parsed:
    """Read ruff's findings. With `syntax`, the first syntax error of a file is a sighting of its
    own.
    """
    sightings: list[Sighting] = []
    not_parsed: dict[str, None] = {}
    report = decode(stdout, dict)
    for item in report["items"]:
        file, rule = str(item["file"]), str(item["rule"])
        if rule in (SYNTAX, UNREADABLE):
            if syntax and rule == SYNTAX and file not in not_parsed:
                sightings.append(_sighting(item, file, rule, f"Syntax error: {item['message']}"))
            not_parsed[file] = None
        else:
            sightings.append(_sighting(item, file, rule, str(item["message"])))
    more = tuple(each for each in parse_beyond(report) if each[1] not in (SYNTAX, UNREADABLE))
    return Parsed(tuple(sightings), tuple(not_parsed), beyond=more)


def _sighting(item: dict[str, Any], file: str, rule: str, text: str) -> Sighting:
    return Sighting(
        file=file,
        line=int(item["line"]),
        column=int(item["column"]),
        rule=rule,
        message=text,
        grade=rule,
        suggestion=str(item["suggestion"]),
        anywhere=rule == SYNTAX,
    )
