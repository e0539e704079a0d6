"""Mistakes that fail or mislead at run time, by the rules of ruff that mean a real bug."""

from __future__ import annotations

import re
from dataclasses import replace

from holdfast.activities.review.analysing import ruff
from holdfast.activities.review.analysing.lens import Analyser, Grade, Parsed, Sighting

GRADES = {
    "invalid-syntax": Grade("critical", 91),
    # Format strings that do not fit their arguments.
    "F50": Grade("critical", 85),
    "F52": Grade("critical", 85),
    # Repeated keys, assertions on tuples, `is` with a literal, `if` with a tuple.
    "F6": Grade("warning", 70, Grade("warning", 82)),
    # Statements where the grammar forbids them.
    "F7": Grade("critical", 85),
    "F901": Grade("warning", 70),
    "F811": Grade("warning", 80, Grade("warning", 58)),
    "F821": Grade("warning", 68, Grade("critical", 98)),
    "F821 of Python 2": Grade("warning", 63),
    "F821 of gettext": Grade("info", 30),
    "F822": Grade("critical", 85),
    "F823": Grade("critical", 85, Grade("warning", 68)),
    "F841": Grade("info", 28),
    "E722": Grade("info", 4),
    "B002": Grade("warning", 70),
    "B003": Grade("warning", 70),
    "B005": Grade("warning", 47),
    "B006": Grade("warning", 10),
    "B012": Grade("warning", 63, Grade("warning", 76)),
    "B015": Grade("warning", 70, Grade("warning", 80)),
    "B016": Grade("critical", 88),
    "B017": Grade("info", 10),
    "B018": Grade("warning", 10),
    "B020": Grade("warning", 13),
    "B021": Grade("info", 70),
    "B022": Grade("warning", 70),
    "B023": Grade("warning", 25),
    "B025": Grade("warning", 70),
    "B026": Grade("info", 15),
    "B029": Grade("warning", 70),
    "B030": Grade("critical", 85),
    "B031": Grade("warning", 70),
    "B032": Grade("warning", 70),
    "B033": Grade("info", 30),
    "B035": Grade("warning", 70, Grade("warning", 56)),
    "B039": Grade("warning", 70),
    "B904": Grade("info", 5),
    # Errors of pylint, hidden and bidirectional characters among them.
    "PLE0101": Grade("info", 20),
    "PLE0605": Grade("info", 20),
    "PLE0704": Grade("info", 13),
    "PLE2502": Grade("info", 17),
    "PLE": Grade("critical", 85),
    "PLR0124": Grade("warning", 80),
    "PLW0127": Grade("warning", 10),
    "PLW0128": Grade("warning", 70, Grade("warning", 56)),
    "PLW0129": Grade("warning", 70),
    "PLW0131": Grade("warning", 70),
    "PLW0133": Grade("warning", 70),
    "PLW0177": Grade("warning", 70),
    "PLW0211": Grade("info", 24),
    "PLW0245": Grade("warning", 70),
    "PLW0406": Grade("warning", 24),
    "PLW0642": Grade("info", 24),
    "PLW0711": Grade("warning", 70),
    "PLW1501": Grade("critical", 85),
    "PLW1507": Grade("warning", 70),
    "PLW1508": Grade("info", 24),
    "PLW1509": Grade("warning", 24),
    "PLW1510": Grade("info", 6),
    "PLW2101": Grade("warning", 70),
    "ASYNC100": Grade("warning", 70),
    "ASYNC105": Grade("critical", 85),
    "RUF006": Grade("warning", 80),
    "RUF008": Grade("warning", 70),
    "RUF009": Grade("info", 30),
    "RUF016": Grade("critical", 85),
    "RUF018": Grade("warning", 70),
    "RUF024": Grade("warning", 70),
    "RUF026": Grade("warning", 70),
    "RUF032": Grade("info", 30),
    "RUF033": Grade("warning", 70),
    "RUF034": Grade("warning", 70),
    "RUF040": Grade("warning", 70),
    "RUF048": Grade("info", 30),
    "RUF049": Grade("info", 30),
    "RUF060": Grade("warning", 70),
    "RUF064": Grade("warning", 70),
    "PIE794": Grade("warning", 70),
    "PIE796": Grade("warning", 63),
    "LOG004": Grade("warning", 62),
    "LOG014": Grade("warning", 63),
    "SIM107": Grade("warning", 70),
    "SIM22": Grade("warning", 70),
    "PGH005": Grade("critical", 85),
    "YTT": Grade("warning", 13),
    "T100": Grade("warning", 70),
    "T100 import": Grade("info", 20),
    "DTZ": Grade("info", 7),
}

NOTEBOOK = re.compile(r"`(?:get_ipython|display)`")
"""Names that a notebook defines; code finds out by their lack that it is not in one."""
GETTEXT = "`_`"
"""The function that gettext puts among the builtins."""
PYTHON_2 = re.compile(
    r"`(?:basestring|cmp|execfile|file|long|raw_input|reduce|reload|unichr|unicode|xrange)`"
)


def parse(stdout: bytes) -> Parsed:
    """Read ruff's findings, with rows where one rule sees more than one thing."""
    parsed = ruff.parse(stdout, syntax=True)
    seen = (each for each in parsed.sightings if not _of_a_notebook(each))
    return replace(parsed, sightings=tuple(replace(each, grade=_row(each)) for each in seen))


def _of_a_notebook(sighting: Sighting) -> bool:
    return sighting.rule == "F821" and NOTEBOOK.search(sighting.message) is not None


def _row(sighting: Sighting) -> str:
    if sighting.rule == "F821" and PYTHON_2.search(sighting.message):
        return "F821 of Python 2"
    if sighting.rule == "F821" and GETTEXT in sighting.message:
        return "F821 of gettext"
    if sighting.rule == "T100" and sighting.message.startswith("Import"):
        return "T100 import"
    return sighting.grade


ANALYSER = Analyser(
    name="bugs",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=ruff.command(GRADES),
    reads_all=True,
    parse=parse,
    module="ruff",
    marker=ruff.MARKER,
)
