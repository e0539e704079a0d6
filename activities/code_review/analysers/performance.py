"""Work that is done in vain or in the wrong place, by the rules of ruff that are about cost."""

from __future__ import annotations

from functools import partial

from activities.code_review import ruff
from activities.code_review.lens import Analyser, Grade

GRADES = {
    # Blocking calls inside async functions: everything else on the event loop waits.
    "ASYNC210": Grade("warning", 90),
    "ASYNC212": Grade("warning", 85),
    "ASYNC22": Grade("warning", 90),
    "ASYNC230": Grade("warning", 80),
    "ASYNC250": Grade("warning", 90),
    "ASYNC251": Grade("warning", 95),
    "ASYNC110": Grade("info", 80),
    # A cache on a method keeps every instance alive.
    "B019": Grade("warning", 85),
    # Quadratic: each addition copies what came before.
    "RUF017": Grade("warning", 90),
    "RUF015": Grade("info", 75),
    "PERF101": Grade("info", 85),
    "PERF102": Grade("info", 85),
    "PERF401": Grade("info", 65),
    "PERF402": Grade("info", 70),
    "PERF403": Grade("info", 65),
    # Throw-away containers around generators and sorts.
    "C400": Grade("info", 65),
    "C401": Grade("info", 65),
    "C403": Grade("info", 65),
    "C411": Grade("info", 70),
    "C413": Grade("info", 80),
    "C414": Grade("info", 80),
    "C419": Grade("info", 75),
    "FURB129": Grade("info", 75),
    "FURB192": Grade("info", 80),
    "SIM118": Grade("info", 60),
    "PIE810": Grade("info", 60),
}

ANALYSER = Analyser(
    name="performance",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=ruff.command(GRADES),
    parse=partial(ruff.parse, syntax=False),
    marker=ruff.MARKER,
)
