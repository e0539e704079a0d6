"""Run and read ruff, for every lens that uses it. A lens is a table of its rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from holdfast.activities.review.analysing.lens import (
    PYTHON,
    SYNTAX,
    CommandLine,
    Grade,
    Parsed,
    parse_items,
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
    parsed = parse_items(stdout)
    if syntax:
        return parsed
    seen = (each for each in parsed.sightings if each.rule != SYNTAX)
    return replace(parsed, sightings=tuple(seen))
