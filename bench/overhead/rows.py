"""What was measured, as rows of the two tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from bench.instruments.tables import row
from bench.overhead.engines import Measured
from bench.overhead.loads import Load

ENGINES = ("floor", "bare Temporal", "here")
Times = Mapping[str, Sequence[Measured]]
"""Engine -> what was measured of it, once a repetition."""


def of_times(load: Load, times: Times) -> str:
    """How long each engine took; last, this project's figure by that of bare Temporal."""
    values = {name: [_value(load, each) for each in times[name]] for name in ENGINES}
    bare, here = (median(values[name]) for name in ENGINES[1:])
    cells = [_cell(values[name]) for name in ENGINES]
    name = f"{load.name}, {load.shown}"
    return row((name, _ideal(load), *cells, f"{here / bare:.2f}"))


def of_use(load: Load, times: Times) -> str:
    """What each engine used, a run; medians."""
    return "".join(row((load.name, name, *_used(times[name]))) for name in ENGINES)


def _value(load: Load, measured: Measured) -> float:
    match load.shown:
        case "over the ideal":
            return measured.seconds / load.ideal
        case "runs/s":
            return measured.runs / measured.seconds
        case "seconds":
            return measured.seconds


def _ideal(load: Load) -> str:
    if not load.ideal:
        return ""
    if not load.ending:
        return f"{load.ideal:.1f} s"
    return (
        f"{load.ideal:.1f} s: work {load.ideal - 2 * load.ending:.1f},"
        f" synthesis {load.ending:.1f}, critique {load.ending:.1f}"
    )


def _cell(values: Sequence[float]) -> str:
    """The median, and the range if there is one."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _used(times: Sequence[Measured]) -> list[str]:
    used = [each.used for each in times]
    own = [1_000 * median(each.worker for each in used)]
    if times[0].events:
        own += [
            1_000 * median(each.server for each in used),
            median(each.events for each in times),
            median(each.kilobytes for each in times),
            median(each.requests for each in used),
            median(each.stored for each in used),
        ]
    calls = f"{median(each.calls for each in used):.0f}"
    return [f"{each:.0f}" for each in own] + [""] * (6 - len(own)) + [calls]
