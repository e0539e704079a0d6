"""Dangerous calls and defaults, by bandit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from activities.code_review.lens import (
    PYTHON,
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
    beyond,
    decoded,
    sifted,
)

ASSERT = "B101"
TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
PASSWORDS = {"B105", "B106", "B107"}
"""Tests whose message quotes the value."""

GRADES = {
    # Bandit's own scale: how bad, how sure.
    "HIGH/HIGH": Grade("critical", 90),
    "HIGH/MEDIUM": Grade("critical", 80),
    "HIGH/LOW": Grade("critical", 50),
    "MEDIUM/HIGH": Grade("warning", 85),
    "MEDIUM/MEDIUM": Grade("warning", 75),
    "MEDIUM/LOW": Grade("warning", 50),
    "LOW/HIGH": Grade("info", 80),
    "LOW/MEDIUM": Grade("info", 60),
    "LOW/LOW": Grade("info", 40),
    # Tests that are sure of what they see and seldom of harm.
    "B101": Grade("info", 30),
    "B110": Grade("info", 70),
    "B112": Grade("info", 70),
    "B310": Grade("warning", 70),
    "B311": Grade("info", 50),
    "B403": Grade("info", 40),
    "B404": Grade("info", 40),
    "B603": Grade("info", 50),
    "B607": Grade("info", 50),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Bandit over files alone: no ini file, no exclusions, no profile of the repository."""
    options = ("-f", "json", "-q", "--ini", "/dev/null", "-x", "", "--exit-zero")
    ignore = () if honour else ("--ignore-nosec",)
    return sifted("bandit", *PYTHON, "-m", "bandit", *options, *ignore, "--", *files)


def parse(stdout: bytes) -> Parsed:
    """Read what is handed on of bandit's JSON. What it quotes of the code is left behind."""
    printed = decoded(stdout, dict)
    more = tuple(each for each in beyond(printed) if not _is_test_s_assert(each[0], each[1]))
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
    """A test is made of asserts. Bandit means those that guard a program until `python -O`."""
    path = PurePosixPath(file)
    return rule == ASSERT and (
        bool(TEST_FILE.fullmatch(path.name)) or path.parent.name in ("test", "tests")
    )


def _sighting(item: dict[str, str | int]) -> Sighting:
    rule = str(item["rule"])
    return Sighting(
        file=str(item["file"]),
        line=int(item["line"]),
        column=int(item["column"]),
        last_line=int(item["last_line"]),
        rule=rule,
        message="Possible hard-coded password" if rule in PASSWORDS else str(item["message"]),
        grade=rule if rule in GRADES else str(item["scale"]),
    )


ANALYSER = Analyser(
    name="security",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=command,
    parse=parse,
    marker=re.compile(rb"(?i)nosec"),
)
