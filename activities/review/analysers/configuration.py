"""YAML and TOML that cannot be read, or in which a key is lost, by a script of ours."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.activities.review.analysing.lens import (
    SYNTAX,
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    script,
)

GRADES = {SYNTAX: Grade("critical", 85), "repeated-key": Grade("warning", 70)}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run the script over files; nothing suppresses what it says."""
    del honour
    return script("check_configuration.py", files)


ANALYSER = Analyser(
    name="configuration",
    looks_for="YAML or TOML files",
    grades=GRADES,
    languages=("YAML", "TOML", "GitHub workflow", "GitHub action"),
    command=command,
    parse=parse_items,
)
