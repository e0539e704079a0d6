"""Functions that are too tangled or too long to change safely, by lizard, in many languages."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    script,
)

GRADES = {
    "complexity above 50": Grade("warning", 90),
    "complexity above 25": Grade("warning", 85),
    "complexity above 15": Grade("info", 80),
    "300 lines or more": Grade("info", 80),
    "120 lines or more": Grade("info", 70),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run lizard over files; suppressed functions are reported as such in the same run."""
    del honour
    return script("measure_complexity.py", files)


ANALYSER = Analyser(
    name="complexity",
    looks_for="files in a language that lizard knows",
    grades=GRADES,
    command=command,
    parse=parse_items,
    module="lizard",
    summed=True,
    rules=("complex-function", "long-function"),
)
