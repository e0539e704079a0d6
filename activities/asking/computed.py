"""Whether a figure follows from two others: an answer that adds up what was found invents none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from decimal import Decimal, localcontext

MOST_FIGURES = 60
"""Of very many something gives any number: then nothing follows from it."""
LEAST_DIGITS = 3
"""Digits that count in a number; of fewer some two figures give it by chance."""
DIGITS = 100
"""Of the arithmetic: more than a figure of material has."""
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
"""A quotient is right as far as it is written out."""


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
