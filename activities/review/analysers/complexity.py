"""Functions that are too tangled or too long to change safely, by lizard, in many languages."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
    decode,
    parse_beyond,
    script,
)

COMPLEX, VERY_COMPLEX, EXTREME = 16, 26, 51
LONG, VERY_LONG = 120, 300
"""Lines of code without blank lines and comments."""

COMPLEX_FUNCTION, LONG_FUNCTION = "complex-function", "long-function"
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
    return script("measure_complexity.py", files, str(COMPLEX), str(LONG))


def parse(stdout: bytes) -> Parsed:
    printed = decode(stdout, dict)
    sightings = tuple(
        Sighting(
            file=str(item["file"]),
            line=int(item["line"]),
            last_line=int(item["last_line"]),
            rule=COMPLEX_FUNCTION if item["complexity"] >= COMPLEX else LONG_FUNCTION,
            message=(
                f"The function {str(item['name'])[:100]} has cyclomatic complexity"
                f" {item['complexity']} over {item['length']} lines of code"
            ),
            grade=_grade(int(item["complexity"]), int(item["length"])),
            suggestion=_advice(int(item["complexity"])),
            weight=int(item["complexity"]),
            suppressed=bool(item["suppressed"]),
        )
        for item in printed["functions"]
    )
    more = parse_beyond(printed)
    return Parsed(sightings, tuple(printed["not_parsed"]), int(printed["read"]), beyond=more)


def _advice(complexity: int) -> str:
    return "Split it along its decisions" if complexity >= COMPLEX else "Split off parts of it"


def _grade(complexity: int, length: int) -> str:
    if complexity >= EXTREME:
        return "complexity above 50"
    if complexity >= VERY_COMPLEX:
        return "complexity above 25"
    if complexity >= COMPLEX:
        return "complexity above 15"
    return "300 lines or more" if length >= VERY_LONG else "120 lines or more"


ANALYSER = Analyser(
    name="complexity",
    looks_for="files in a language that lizard knows",
    grades=GRADES,
    command=command,
    parse=parse,
    module="lizard",
    summed=True,
    rules=(COMPLEX_FUNCTION, LONG_FUNCTION),
)
