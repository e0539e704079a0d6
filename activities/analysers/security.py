"""Dangerous calls and defaults, by bandit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from activities.analysers.lens import (
    PYTHON,
    Analyser,
    Command,
    Grade,
    Parsed,
    Sighting,
    decoded,
    is_python,
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


def command(files: Sequence[str], honour: bool) -> Command:
    """Bandit over files alone: no ini file, no exclusions, no profile of the repository."""
    options = ("-f", "json", "-q", "--ini", "/dev/null", "-x", "", "--exit-zero")
    ignore = () if honour else ("--ignore-nosec",)
    return Command((*PYTHON, "-m", "bandit", *options, *ignore, "--", *files))


def parse(stdout: bytes) -> Parsed:
    """Read bandit's JSON. What it quotes of the code is left behind."""
    report = decoded(stdout, dict)
    return Parsed(
        tuple(_sighting(item) for item in report["results"] if not _is_test_s_assert(item)),
        tuple(str(error["filename"]) for error in report["errors"]),
    )


def _is_test_s_assert(item: dict[str, str | int | list[int]]) -> bool:
    """A test consists of asserts. Bandit only means those that guard a program and are gone under
    `python -O`.
    """
    path = PurePosixPath(str(item["filename"]))
    return item["test_id"] == ASSERT and (
        bool(TEST_FILE.fullmatch(path.name)) or path.parent.name in ("test", "tests")
    )


def _sighting(item: dict[str, str | int | list[int]]) -> Sighting:
    rule, line = str(item["test_id"]), int(str(item["line_number"]))
    scale = f"{item['issue_severity']}/{item['issue_confidence']}"
    lines = item["line_range"]
    return Sighting(
        file=str(item["filename"]),
        line=line,
        last_line=max(lines) if isinstance(lines, list) and lines else line,
        rule=rule,
        message="Possible hard-coded password" if rule in PASSWORDS else str(item["issue_text"]),
        grade=rule if rule in GRADES else scale,
    )


ANALYSER = Analyser(
    name="security",
    looks_for="Python files",
    grades=GRADES,
    examines=is_python,
    command=command,
    parse=parse,
    marker=re.compile(rb"(?i)nosec"),
)
