"""What runs took, told at their end, and what later ones learn of it.

Neither has any text of a run: only names of roles and playbooks, sizes and amounts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, NamedTuple

from pydantic import Field

from holdfast.contracts.base import Contract

Name = Annotated[str, Field(max_length=100)]
Millionths = Annotated[int, Field(ge=0, le=10**12)]
"""Of a dollar: many of them stand in a list."""
Measured = Annotated[float, Field(ge=0, le=10**12, allow_inf_nan=False)]


class RowTook(NamedTuple):
    """What one row of a preview took; of a map, what one of its items did."""

    sort: Name
    role: Name
    tier: Name
    size: Annotated[int, Field(ge=0, le=64)]
    """Bits of the number of input tokens: twice as many are one more."""
    mark: Name
    """Digest of whatever else makes such a row dearer or cheaper."""
    price: Measured
    """Millionths of a dollar; an item of a map may cost a few."""


class RunTook(Contract):
    """What a closed run took."""

    project: Name = ""
    playbook: Name = ""
    said: tuple[Millionths, Millionths, Millionths] | None = None
    """Low, expected and high of its preview; None: its price is not to be measured by that."""
    paid: Millionths = 0
    rows: Annotated[tuple[RowTook, ...], Field(max_length=100)] = ()


class Took(Contract):
    """What rows of one sort took in closed runs."""

    sort: str
    role: str
    tier: str
    size: int
    count: int
    low: Decimal
    expected: Decimal
    high: Decimal
    """Dollars, which may be less than a millionth: of a map those of one item."""
