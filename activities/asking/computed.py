"""Find out whether a number follows from two others: an answer that adds up what was found invents
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from decimal import Decimal, localcontext

MOST_FIGURES = 60
"""Most figures to combine: with more, some two of them give any number."""
LEAST_DIGITS = 3
"""Significant digits of a number; one with fewer is matched by chance."""
LEAST_BESIDE = 2
"""The same of a number whose figures stand in its own sentence."""
LEAST_ROUNDED = 2
"""Digits that a rounded figure shows: one with a single digit is near too many."""
FROM_TWO = "computed from two"
DIGITS = 100
"""Precision of the arithmetic: more than any figure of the material has."""
EXACT: tuple[tuple[str, Callable[[Decimal, Decimal], Decimal]], ...] = (
    ("{} + {}", lambda one, other: one + other),
    ("{} - {}", lambda one, other: one - other),
    ("{} × {}", lambda one, other: one * other),
)
ROUNDED: tuple[tuple[str, Callable[[Decimal, Decimal], Decimal]], ...] = (
    ("{} / {}", lambda one, other: one / other),
    ("100 × {} / {}", lambda one, other: 100 * one / other),
    ("100 × ({0} - {1}) / {1}", lambda one, other: 100 * (one - other) / other),
)
"""Formulas whose result is compared only as far as the number is written out."""


def derive(number: str, figures: Collection[str], least_digits: int = LEAST_DIGITS) -> str:
    """Return how one of the figures, rounded, or two of them give the number, as `rounded: 184,000
    ≈ 183,853` or `computed from two: 256,000 = 1,256,000 - 1,000,000`; empty: none do. Figures are
    plain decimals; the number may have separators of thousands.
    """
    plain = number.replace(",", "")
    if rounded := _find_rounded(plain, figures):
        return f"rounded: {number} ≈ {_format(rounded)}"
    if len(plain.replace(".", "").strip("0")) < least_digits or len(figures) > MOST_FIGURES:
        return ""
    with localcontext() as context:
        context.prec = DIGITS
        wanted, places = Decimal(plain), len(plain.partition(".")[2])
        known = sorted({Decimal(each) for each in figures}, reverse=True)
        for one, other in itertools.product(known, known):
            for words, result in EXACT:
                if result(one, other) == wanted:
                    return f"{FROM_TWO}: {number} = {words.format(_format(one), _format(other))}"
            for words, result in ROUNDED if other else ():
                value = result(one, other)
                if abs(value - wanted) * 2 <= Decimal(1).scaleb(-places):
                    sign = "=" if value == wanted else "≈"
                    return (
                        f"{FROM_TWO}: {number} {sign} {words.format(_format(one), _format(other))}"
                    )
    return ""


def _find_rounded(plain: str, figures: Collection[str]) -> Decimal | None:
    """Return the figure of which a number is the rounding, to as many digits as it shows: 184000
    of 183853, 2.4 of 2.38.
    """
    shown = len(plain.replace(".", "").strip("0"))
    if shown < LEAST_ROUNDED:
        return None
    whole, _, places = plain.partition(".")
    unit = -len(places) if places else len(whole) - len(whole.rstrip("0"))
    wanted = Decimal(plain)
    for each in figures:
        known = Decimal(each)
        if known != wanted and abs(known - wanted) * 2 <= Decimal(1).scaleb(unit):
            return known
    return None


def _format(figure: Decimal) -> str:
    return f"{figure:,f}"
