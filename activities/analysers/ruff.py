"""How ruff is run and read, for every lens that uses it. A lens is a table of its rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from activities.analysers.lens import PYTHON, Command, Grade, Parsed, Sighting, decoded

SYNTAX = "invalid-syntax"
UNREADABLE = "E902"
MARKER = re.compile(rb"(?i)noqa")
_TARGET = "py314"
"""The newest grammar, so that no file is refused for being newer than this Python."""


def command(
    grades: Mapping[str, Grade],
) -> Callable[[Sequence[str], bool], Command]:
    """The command whose rules are the rows of the table."""
    rules = ",".join((*(rule for rule in grades if rule != SYNTAX), UNREADABLE))

    def build(files: Sequence[str], honour: bool) -> Command:
        options = (
            "check", "--isolated", "--no-cache", "--exit-zero", "--no-fix",
            "--no-respect-gitignore", "--output-format=json", f"--target-version={_TARGET}",
            f"--select={rules}",
        )  # fmt: skip
        ignore = () if honour else ("--ignore-noqa",)
        return Command((*PYTHON, "-m", "ruff", *options, *ignore, "--", *files))

    return build


def parse(stdout: bytes, *, syntax: bool) -> Parsed:
    """Read ruff's JSON. With `syntax`, the first syntax error of a file is a sighting of its
    own.
    """
    sightings: list[Sighting] = []
    not_parsed: dict[str, None] = {}
    for item in decoded(stdout, list):
        file, rule = str(item["filename"]), str(item["code"] or SYNTAX)
        if rule in (SYNTAX, UNREADABLE):
            if syntax and rule == SYNTAX and file not in not_parsed:
                sightings.append(_sighting(item, file, rule, f"Syntax error: {item['message']}"))
            not_parsed[file] = None
        else:
            sightings.append(_sighting(item, file, rule, str(item["message"])))
    return Parsed(tuple(sightings), tuple(not_parsed))


def _sighting(item: dict[str, Any], file: str, rule: str, text: str) -> Sighting:
    fix = item.get("fix") or {}
    return Sighting(
        file=file,
        line=int(item["location"]["row"]),
        rule=rule,
        message=text,
        grade=rule,
        suggestion=str(fix.get("message") or ""),
        anywhere=rule == SYNTAX,
    )
