"""Holes and defects in many languages, by our rules for ast-grep: `rules/patterns/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    parse_items,
    sift_command,
)
from holdfast.contracts import Severity
from holdfast.deployment.extras import program
from holdfast.untrusted.reading import SHIPPED_LOADER

RULES = Path(__file__).parents[1] / "rules"
SEVERITIES: dict[str, Severity] = {"error": "critical", "warning": "warning", "info": "info"}
PER_ITEM = "-per-item"
"""How the names of the rules end that see a query or request for each item of a loop."""
BATCHES = re.compile(
    r"(?i)(?:^|/)(?:commands|migrations?|migrate|scripts?|tasks|jobs|cron|bin|tools|seeds?|alembic)/"
    r"|(?:^|/)\w*(?:seed|migrat|backfill|import)\w*\.\w+$"
)
"""Where nobody waits for an item."""
IGNORED = ("hidden", "dot", "exclude", "global", "parent", "vcs")
"""Reasons for which ast-grep leaves out files, even those that are named."""


def rules() -> list[dict[str, Any]]:
    """Return every rule, in the order of the files."""
    texts = [file.read_text("utf-8") for file in sorted((RULES / "patterns").glob("*.yml"))]
    return [rule for text in texts for rule in yaml.load_all(text, SHIPPED_LOADER) if rule]


def _grade(rule: dict[str, Any]) -> Grade:
    severity, told = SEVERITIES[rule["severity"]], rule["metadata"]
    change = Grade(severity, told["change"]) if "change" in told else None
    return Grade(severity, told["confidence"], change)


GRADES = {rule["id"]: _grade(rule) for rule in rules()}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run ast-grep over files, with our rules and languages alone."""
    del honour
    return sift_command(
        "ast-grep",
        program("ast-grep"),
        "scan",
        f"--config={RULES / 'sgconfig.yml'}",
        "--json=stream",
        "--threads=2",
        *(f"--no-ignore={kind}" for kind in IGNORED),
        "--",
        *files,
    )


def parse(stdout: bytes) -> Parsed:
    """Read ast-grep's findings. Each call of a chain begins where the first does: that is one
    place.
    """
    parsed = parse_items(stdout)
    places = {
        (each.file, each.rule, each.line, each.column): each
        for each in parsed.sightings
        if not (each.rule.endswith(PER_ITEM) and BATCHES.search(each.file))
    }
    return replace(parsed, sightings=tuple(places.values()))


ANALYSER = Analyser(
    name="patterns",
    looks_for="Go, Java, JavaScript, PHP, Python, Ruby, Rust or TypeScript files",
    grades=GRADES,
    languages=("Go", "Java", "JavaScript", "PHP", "Python", "Ruby", "Rust", "TypeScript"),
    by_ending=True,
    command=command,
    parse=parse,
    program="ast-grep",
)
