"""Shell scripts that do not do what they say, by shellcheck."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from holdfast.activities.review.analysing.lens import (
    SYNTAX,
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
    parse_items,
    sift_command,
)
from holdfast.deployment.extras import program

GRADES = {
    # Its parser is stricter than the shells are.
    SYNTAX: Grade("critical", 85),
    # Carriage returns: told once a file, at the first.
    "SC1017": Grade("warning", 70),
    # What deletes more than was meant, or runs what was data.
    "SC2114": Grade("critical", 85),
    "SC2115": Grade("critical", 85),
    "SC2091": Grade("warning", 70),
    "SC2092": Grade("warning", 70),
    "SC2294": Grade("warning", 70),
    # Conditions that are always the same, or other than they look.
    "SC2050": Grade("warning", 70),
    "SC2055": Grade("warning", 70),
    "SC2057": Grade("warning", 70),
    "SC2070": Grade("warning", 70),
    "SC2071": Grade("warning", 70),
    "SC2074": Grade("warning", 70),
    "SC2077": Grade("warning", 70),
    "SC2078": Grade("warning", 70),
    "SC2081": Grade("warning", 70),
    "SC2144": Grade("warning", 70),
    "SC2157": Grade("warning", 70),
    "SC2158": Grade("warning", 70),
    "SC2159": Grade("warning", 70),
    "SC2160": Grade("warning", 70),
    "SC2161": Grade("warning", 70),
    "SC2170": Grade("warning", 70),
    "SC2193": Grade("warning", 70),
    "SC2194": Grade("info", 30),
    "SC2210": Grade("warning", 70),
    "SC2221": Grade("info", 30),
    "SC2222": Grade("info", 30),
    "SC2319": Grade("warning", 70),
    "SC2320": Grade("info", 30),
    # Values that come out wrong, and loops that run other than they look.
    "SC2043": Grade("info", 30),
    "SC2048": Grade("warning", 70),
    "SC2066": Grade("warning", 70),
    "SC2068": Grade("info", 30),
    "SC2088": Grade("warning", 70),
    "SC2124": Grade("info", 24),
    "SC2128": Grade("warning", 70),
    "SC2145": Grade("info", 30),
    "SC2147": Grade("warning", 70),
    "SC2178": Grade("info", 30),
    "SC2199": Grade("warning", 70),
    "SC2247": Grade("warning", 70),
    "SC2258": Grade("warning", 70),
    # Redirections, pipes and processes.
    "SC2024": Grade("warning", 70),
    "SC2038": Grade("info", 30),
    "SC2064": Grade("info", 30),
    "SC2069": Grade("warning", 70),
    "SC2094": Grade("info", 30),
    "SC2095": Grade("warning", 70),
    "SC2238": Grade("warning", 70),
    "SC2259": Grade("warning", 70),
    "SC2260": Grade("warning", 70),
    "SC2261": Grade("warning", 70),
    # Where a name or a word is not what it says.
    "SC2034": Grade("info", 8),
    "SC2046": Grade("info", 8),
    "SC2082": Grade("warning", 70),
    "SC2154": Grade("info", 10),
    "SC2155": Grade("info", 7),
    "SC2164": Grade("info", 24),
    "SC2168": Grade("warning", 70),
    "SC2218": Grade("warning", 70),
    "SC2283": Grade("warning", 76),
    "SC2284": Grade("warning", 70),
}
EMPTY_PATH = "SC2115"
GUARD = r'\$\{{{name}:\?|(?:^|[\s;]){name}="?\$\{{\w+:\?'
"""`${out:?}`, or `out=${1:?}`: the script ends there if it is empty."""
STOPPED = ("SC1072", "SC1073", "SC1088", "SC1089")
"""Codes by which shellcheck says that it could not read on; the script makes syntax errors of them.
"""


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run shellcheck over files, without a settings file; it opens nothing that is not among
    them.
    """
    del honour
    codes = ",".join((*STOPPED, *(rule for rule in GRADES if rule != SYNTAX)))
    options = (
        "--norc",
        "--format=json1",
        "--severity=warning",
        "--extended-analysis=false",
        f"--include={codes}",
    )
    return sift_command("shellcheck", program("shellcheck"), *options, "--", *files)


def parse(stdout: bytes) -> Parsed:
    """Read shellcheck's findings, without paths that cannot be empty where they are deleted."""
    parsed = parse_items(stdout)
    kept = [each for each in parsed.sightings if each.rule != EMPTY_PATH or not _guarded(each)]
    return replace(parsed, sightings=tuple(kept))


def _guarded(sighting: Sighting) -> bool:
    """True if a line above ends the script where the variable of the path is empty, by `:?`."""
    with open(sighting.file, encoding="utf-8", errors="replace", newline="\n") as file:
        *above, line = islice(file, sighting.line)
    name = re.match(r"[^$]*\$\{?([A-Za-z_]\w*)", line[sighting.column - 1 :])
    if name is None:
        return False
    guard = re.compile(GUARD.format(name=name[1]))
    return any(guard.search(each.partition("#")[0]) for each in above)


ANALYSER = Analyser(
    name="shell",
    looks_for="shell scripts",
    grades=GRADES,
    languages=("Shell",),
    command=command,
    parse=parse,
    program="shellcheck",
)
