"""How sure a rate of passed trials is. Pure.

Wilson's interval of one rate, and Newcombe's of the difference of two, both of 95 %: they hold for
few trials, too, and for rates of 0 and 1.
"""

from __future__ import annotations

from math import sqrt

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
