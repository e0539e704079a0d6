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


def derive(number: str, figures: Collection[str]) -> str:
    """Return how two of the figures give the number, as `256,000 = 1,256,000 - 1,000,000`; empty:
    no two do. Figures are plain decimals; the number may have separators of thousands.
    """
    plain = number.replace(",", "")
    if len(plain.replace(".", "").strip("0")) < LEAST_DIGITS or len(figures) > MOST_FIGURES:
        return ""
    with localcontext() as context:
        context.prec = DIGITS
        wanted, places = Decimal(plain), len(plain.partition(".")[2])
        known = sorted({Decimal(each) for each in figures}, reverse=True)
        for one, other in itertools.product(known, known):
            for words, result in EXACT:
                if result(one, other) == wanted:
                    return f"{number} = {words.format(_format(one), _format(other))}"
            for words, result in ROUNDED if other else ():
                value = result(one, other)
                if abs(value - wanted) * 2 <= Decimal(1).scaleb(-places):
                    sign = "=" if value == wanted else "≈"
                    return f"{number} {sign} {words.format(_format(one), _format(other))}"
    return ""


def _format(figure: Decimal) -> str:
    return f"{figure:,f}"
