"""How sure a rate of passed trials is. Pure.

Wilson's interval of one rate, and Newcombe's of the difference of two, both of 95 %: they hold for
few trials, too, and for rates of 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

Z = 1.959964


def wilson(passed: int, trials: int) -> tuple[float, float]:
    """Return the bounds of a rate; 0 to 1 where nothing was tried."""
    if not trials:
        return 0.0, 1.0
    rate, square = passed / trials, Z * Z
    middle = rate + square / (2 * trials)
    margin = Z * sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials))
    whole = 1 + square / trials
    return max(0.0, (middle - margin) / whole), min(1.0, (middle + margin) / whole)


def difference(before: tuple[int, int], after: tuple[int, int]) -> tuple[float, float]:
    """Return the bounds of the later rate less the earlier, each as passed of trials."""
    if not (before[1] and after[1]):
        return -1.0, 1.0
    one, other = before[0] / before[1], after[0] / after[1]
    (low_one, high_one), (low_other, high_other) = wilson(*before), wilson(*after)
    change = other - one
    down = sqrt((other - low_other) ** 2 + (high_one - one) ** 2)
    up = sqrt((high_other - other) ** 2 + (one - low_one) ** 2)
    return change - down, change + up


def mean(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the mean of a few values with its bounds, by Student's t; None of fewer than two."""
    if len(values) < 2:
        return None
    middle, free = fmean(values), len(values) - 1
    # Fisher's expansion of t: two digits are right from three values on.
    t = Z + (Z**3 + Z) / (4 * free) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * free**2)
    margin = t * stdev(values) / sqrt(len(values))
    return middle, middle - margin, middle + margin
