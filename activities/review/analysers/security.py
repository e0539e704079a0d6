"""Dangerous calls and defaults, by bandit."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any

from holdfast.activities.review.analysing.lens import (
    PYTHON,
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
    decode,
    parse_beyond,
    sift_command,
)

ASSERT = "B101"
TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
READING_MARKS = ("u200e", "u200f")
"""Marks that texts of some languages need, and that turn nothing around."""
PASSWORDS = {"B105", "B106", "B107"}
"""Tests whose message quotes the value."""

NARROWED = {
    "B102": ("from outside", "formatted"),
    "B301": ("from outside",),
    "B307": ("from outside", "formatted"),
    "B324": ("password",),
    "B602": ("from outside", "formatted"),
    "B605": ("from outside", "formatted"),
    "B608": ("quoted",),
}
"""Tests with more than one row: what stands around a place tells the rows apart."""

GRADES = {
    "B101": Grade("info", 2),
    "B102": Grade("warning", 28),
    "B102 formatted": Grade("warning", 70),
    "B102 from outside": Grade("critical", 85),
    "B103": Grade("warning", 70),
    "B104": Grade("info", 5),
    "B105": Grade("info", 3),
    "B106": Grade("info", 8),
    "B107": Grade("info", 8),
    "B108": Grade("info", 12),
    "B110": Grade("info", 2),
    "B112": Grade("info", 2),
    "B113": Grade("warning", 79, Grade("warning", 91)),
    "B113 timeout set to None": Grade("info", 13),
    "B201": Grade("warning", 70),
    "B202": Grade("warning", 47),
    "B301": Grade("info", 9),
    "B301 from outside": Grade("warning", 49, Grade("warning", 88)),
    "B306": Grade("warning", 70, Grade("warning", 80)),
    "B307": Grade("warning", 35),
    "B307 formatted": Grade("warning", 70),
    "B307 from outside": Grade("critical", 85),
    "B308": Grade("info", 9),
    "B310": Grade("info", 13),
    "B311": Grade("info", 2),
    "B31": Grade("info", 2),
    "B320": Grade("info", 5),
    "B321": Grade("info", 4),
    "B323": Grade("warning", 70),
    "B324": Grade("info", 6),
    "B324 password": Grade("warning", 35, Grade("warning", 76)),
    "B40": Grade("info", 1),
    "B41": Grade("info", 2),
    "B50": Grade("warning", 70, Grade("warning", 80)),
    "B601": Grade("warning", 70),
    "B602": Grade("info", 10),
    "B602 formatted": Grade("warning", 47, Grade("warning", 63)),
    "B602 from outside": Grade("critical", 85),
    "B603": Grade("info", 2),
    "B604": Grade("info", 5),
    "B605": Grade("info", 10),
    "B605 formatted": Grade("warning", 70),
    "B605 from outside": Grade("critical", 85),
    "B606": Grade("info", 4),
    "B607": Grade("info", 2),
    "B608": Grade("info", 6),
    "B608 quoted": Grade("warning", 62),
    "B609": Grade("warning", 70),
    "B610": Grade("info", 16),
    "B611": Grade("info", 9),
    "B612": Grade("warning", 70),
    "B613": Grade("warning", 70),
    "B613 mark": Grade("info", 11),
    "B614": Grade("info", 20),
    "B615": Grade("info", 10),
    "B701": Grade("info", 9),
    "B702": Grade("info", 20),
    "B703": Grade("info", 9),
    "B704": Grade("info", 16),
    # Tests that nobody has looked at, by bandit's own scale: how bad, how sure.
    "HIGH": Grade("warning", 20),
    "MEDIUM": Grade("warning", 20),
    "LOW": Grade("info", 20),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run bandit over files alone: no ini file, no exclusions, no profile of the repository."""
    options = ("-f", "json", "-q", "--ini", "/dev/null", "-x", "", "--exit-zero")
    ignore = () if honour else ("--ignore-nosec",)
    return sift_command("bandit", *PYTHON, "-m", "bandit", *options, *ignore, "--", *files)


def parse(stdout: bytes) -> Parsed:
    """Read bandit's findings, without what it quotes of the code."""
    printed = decode(stdout, dict)
    more = tuple(each for each in parse_beyond(printed) if not _is_test_s_assert(each[0], each[1]))
    return Parsed(
        tuple(
            _sighting(item)
            for item in printed["items"]
            if not _is_test_s_assert(str(item["file"]), str(item["rule"]))
        ),
        tuple(map(str, printed["errors"])),
        beyond=more,
    )


def _is_test_s_assert(file: str, rule: str) -> bool:
    """True for an assert in a test, which is made of them. Bandit means those that guard a program
    until `python -O`.
    """
    path = PurePosixPath(file)
    return rule == ASSERT and (
        bool(TEST_FILE.fullmatch(path.name)) or path.parent.name in ("test", "tests")
    )


def _sighting(item: dict[str, Any]) -> Sighting:
    rule = str(item["rule"])
    return Sighting(
        file=str(item["file"]),
        line=int(item["line"]),
        column=int(item["column"]),
        first_line=int(item["first_line"]),
        last_line=int(item["last_line"]),
        rule=rule,
        message="Possible hard-coded password" if rule in PASSWORDS else str(item["message"]),
        grade=_row(rule, str(item["message"]), item["near"], str(item["scale"])),
    )


def _row(rule: str, message: str, near: Collection[str], scale: str) -> str:
    """Return the row of the table, by the test, its message and what stands around."""
    if rule == "B113" and "None" in message:
        return "B113 timeout set to None"
    if rule == "B613" and any(mark in message.lower() for mark in READING_MARKS):
        return "B613 mark"
    known = [rule, *(f"{rule} {each}" for each in NARROWED.get(rule, ()) if each in near)]
    row = next((each for each in (*known[1:], rule) if each in GRADES), "")
    return row or (rule if _begins(rule) else scale)


def _begins(rule: str) -> bool:
    return any(rule.startswith(row) for row in GRADES)


ANALYSER = Analyser(
    name="security",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=command,
    parse=parse,
    module="bandit",
    marker=re.compile(rb"(?i)nosec"),
)
