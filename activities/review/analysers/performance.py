"""Work that is done in vain or in the wrong place, by the rules of ruff that are about cost."""

from __future__ import annotations

from functools import partial

from holdfast.activities.review.analysing import ruff
from holdfast.activities.review.analysing.lens import Analyser, Grade

GRADES = {
    # Blocking calls inside async functions: everything else on the event loop waits.
    "ASYNC210": Grade("warning", 70),
    "ASYNC212": Grade("warning", 70),
    "ASYNC22": Grade("warning", 70),
    "ASYNC230": Grade("warning", 56),
    "ASYNC250": Grade("warning", 70),
    "ASYNC251": Grade("warning", 70),
    "ASYNC110": Grade("info", 30),
    # A cache on a method keeps every instance alive.
    "B019": Grade("warning", 8),
    # Quadratic: each addition copies what came before.
    "RUF017": Grade("warning", 15),
    "RUF015": Grade("info", 5),
    "PERF101": Grade("info", 10),
    "PERF102": Grade("info", 5),
    "PERF401": Grade("info", 5),
    "PERF402": Grade("info", 8),
    "PERF403": Grade("info", 5),
    # Throw-away containers around generators and sorts.
    "C400": Grade("info", 6),
    "C401": Grade("info", 8),
    "C403": Grade("info", 5),
    "C411": Grade("info", 10),
    "C413": Grade("info", 10),
    "C414": Grade("info", 5),
    "C419": Grade("info", 6),
    "FURB129": Grade("info", 7),
    "FURB192": Grade("info", 4),
    "SIM118": Grade("info", 5),
    "PIE810": Grade("info", 5),
}

ANALYSER = Analyser(
    name="performance",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=ruff.command(GRADES),
    parse=partial(ruff.parse, syntax=False),
    module="ruff",
    marker=ruff.MARKER,
)
