"""What a person, a team or a reset tells a run."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue, field_validator

from holdfast.contracts.base import Contract, Tier
from holdfast.contracts.calls import Bill
from holdfast.contracts.goals import Limits
from holdfast.contracts.plans import Plan


def seal_word(word: str) -> str:
    """Return a seal that proves knowledge of a word without revealing it."""
    return sha256(word.encode()).hexdigest()


MOST_DOLLARS, MOST_CALLS, MOST_TOKENS = 10_000, 1_000_000, 10**12
"""Bounds on one call or team that a reset has undone: no more than a run's Limits can allow."""


RowsWhich = Literal["all", "complete", "failed", "skipped", "supplied", "open"]
"""Rows of a map by how they stand; open ones have no result yet, and have not failed."""


class Order(Contract):
    """One steering command: the argument of every Update. Its kind decides which fields count."""

    subtask_id: str = ""
    call: int = Field(default=0, strict=True)
    """Number of the tool call that waits for approval; 0 if it is not about one."""
    text: str = ""
    """An answer, a finding supplied by hand, a new instruction, or a reason."""
    tier: Tier | None = None
    role: str = ""
    """The role that a subtask is handed to."""
    plan: Plan | None = None
    limits: Limits | None = None
    rows: bool = False
    """True if it is about rows of a map, and not about the whole subtask."""
    ids: tuple[str, ...] = ()
    """Their items' ids; empty: all that stand so, by `which`."""
    which: RowsWhich = "failed"
    value: JsonValue = None
    """The result that is supplied for one row."""
    by: str = ""

    @property
    def what(self) -> str:
        return f"call {self.call}" if self.call else "the plan"


class Given(Contract):
    """An order whose turn has come, and whether the run could follow it."""

    number: int
    """Number of the order in the run, from 1; 0 for the cancel of the run."""
    command: str
    order: Order
    at: datetime
    refused: str = ""
    """Why it no longer made sense; empty: it was carried out."""
    before: Plan | None = None
    """The plan before an edit."""
    unmet: str = ""
    """What of an order about rows could not be done, beside the rest."""
    about: str = ""
    """The tool call that an order is about, as the person saw it, and whose it is; or how many rows
    of a map.
    """


class Lost(Contract):
    """A call that was or may have been paid, and that its run forgot when it was reset."""

    id: str = Field(max_length=300)
    """Activity id, or id of a team's run."""
    bill: Bill
    rows: bool = False
    """True of a map's rows, which count in dollars and not in calls."""

    @field_validator("bill")
    @classmethod
    def _credible(cls, bill: Bill) -> Bill:
        """Refuse absurd bills: anybody who can reach the server can send one."""
        dollars = (bill.dollars or Decimal(0), bill.assumed)
        if not all(0 <= each <= MOST_DOLLARS for each in dollars):
            raise ValueError(f"dollars are from 0 to {MOST_DOLLARS}")
        if not 0 <= bill.calls <= MOST_CALLS:
            raise ValueError(f"calls are from 0 to {MOST_CALLS}")
        if not all(0 <= each <= MOST_TOKENS for each in bill.usage.model_dump().values()):
            raise ValueError(f"tokens are from 0 to {MOST_TOKENS}")
        if bill.dollars is not None and bill.assumed > bill.dollars:
            raise ValueError("no more of a price is assumed than there is of it")
        if not bill.calls and (bill.dollars != 0 or bill.assumed):
            raise ValueError("without a call nothing is paid")
        return bill


class Standstill(Contract):
    """A team tells the run above it that it waits, or that it goes on."""

    team: str
    number: int
    """Counts its messages from 1: the latest counts."""
    why: str = Field(default="", max_length=500)
    """What it waits for; empty: it goes on."""
    at: AwareDatetime


class Undone(Contract):
    """What a reset undid, sent by whoever resets a run to the run as it goes on."""

    execution: str = Field(max_length=100)
    """Temporal's id of the execution that was left."""
    at: AwareDatetime
    """When it was reset. From the point it was reset to until then, the deadline stood still."""
    lost: tuple[Lost, ...] = ()
    seal: str = Field(default="", max_length=100)
    """`seal_word` of a word that only the sender knows: who shows the word can take this back."""
    withdrawn: bool = False
    """True if the server refused the reset after it was announced: nothing was undone."""
    word: str = Field(default="", max_length=100)
    """The word of the seal of what is withdrawn: anybody can read a history and send Signals."""
    by: str = ""
