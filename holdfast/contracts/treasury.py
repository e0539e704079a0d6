"""What workers and the treasurer of their deployment say to each other. It stands in a history."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from holdfast.contracts.base import Contract

TREASURER = "TreasurerWorkflow"
Amount = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=200)]


def treasurer_of(queue: str) -> str:
    """Return the id of the treasurer of the workers of a task queue: none that a run can have."""
    return f"_treasurer-{queue}"


def treasurers_queue(queue: str) -> str:
    """Return the task queue of the treasurer, beside that of the runs: of no version, so that any
    build's workers carry it on, whichever dies.
    """
    return f"{queue}-treasurer"


class Caps(Contract):
    """The most dollars that may be spent; None: any number."""

    day: Amount | None = None
    month: Amount | None = None
    each: dict[Name, Amount] = Field(default_factory=dict, max_length=1_000)
    """Of those who have a cap of their own: dollars a day."""

    @property
    def bind(self) -> bool:
        """True if there is any."""
        return self.day is not None or self.month is not None or bool(self.each)


class Sums(Contract):
    """What was paid in a day or a month."""

    paid: Amount = Decimal(0)
    by: dict[str, Amount] = Field(default_factory=dict)
    """By who asked."""


class Slice(Contract):
    """Dollars that one worker holds for calls of one requester."""

    requester: str
    holds: Amount
    paid: Amount = Decimal(0)
    """All that it has told of as paid since it began."""
    until: datetime
    """When it counts as paid in full, if nothing more is heard of it."""


class Books(Contract):
    """The state of a treasurer."""

    caps: Caps = Caps()
    told: Caps = Caps()
    """What the workers' settings said last."""
    days: dict[date, Sums] = Field(default_factory=dict)
    months: dict[date, Sums] = Field(default_factory=dict)
    """By their first day."""
    slices: dict[str, Slice] = Field(default_factory=dict)


class Asked(Contract):
    """What a holder wants its slice to be."""

    slice: Name
    requester: Name = ""
    began: bool = True
    """False: it holds nothing yet, and has paid nothing."""
    paid: Amount | None = Decimal(0)
    """All that it has paid since it began; None: all that it held, as nobody knows."""
    under_way: Amount = Decimal(0)
    """The worst case of its calls under way."""
    needs: Amount = Decimal(0)
    """The least that it must hold: with the call that is to leave."""
    likes: Amount = Decimal(0)
    """What it would rather hold, for the calls to come."""
    seconds: int = Field(ge=1, le=1_000_000)
    """For how long it may be silent."""


class Given(Contract):
    """What a slice is now."""

    holds: Amount = Decimal(0)
    known: bool = True
    """False: it was silent for too long, and counts as paid."""
    refused: str = ""
    """Why the call may not leave."""
    over: bool = False
    """True: what is paid leaves no room for it; else what others hold may come back."""


class Statement(Contract):
    """How the books stand, for people."""

    caps: Caps
    day: date
    today: Sums = Sums()
    month: Sums = Sums()
    held: Amount = Decimal(0)
    """Set aside for calls under way, and for those to come."""
