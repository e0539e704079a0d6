"""What a person, a team or a reset tells a run."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from hashlib import sha256

from pydantic import AwareDatetime, Field, field_validator

from holdfast.contracts.base import Contract, Tier
from holdfast.contracts.calls import Bill
from holdfast.contracts.goals import Limits
from holdfast.contracts.plans import Plan


def seal_word(word: str) -> str:
    """Return what shows that somebody has a word, and does not tell the word."""
    return sha256(word.encode()).hexdigest()


MOST_DOLLARS, MOST_CALLS, MOST_TOKENS = 10_000, 3_000, 10**12
"""Of one call or team that a reset has undone: no more than the Limits of a run can allow."""


class Order(Contract):
    """One steering command: the argument of every Update. Which fields count, its kind says."""

    subtask_id: str = ""
    call: int = Field(0, strict=True)
    """The number of a call of a tool that waits to be approved; 0: it is about none."""
    text: str = ""
    """An answer, a finding supplied by hand, a new instruction, or why."""
    tier: Tier | None = None
    plan: Plan | None = None
    limits: Limits | None = None
    by: str = ""
    """Who gave it, for the record."""

    @property
    def what(self) -> str:
        """What it approves or declines."""
        return f"call {self.call}" if self.call else "the plan"


class Given(Contract):
    """An order of a person whose turn has come, and whether the run could follow it."""

    number: int
    """Of the run's orders, from 1; 0: it was told to the server, as the cancel of a run is."""
    command: str
    order: Order
    at: datetime
    refused: str = ""
    """Why it made no sense any more; empty: it was carried out."""
    before: Plan | None = None
    """Of an edit: the plan as it was."""
    about: str = ""
    """Of an order about a call of a tool: whose it is, and the call as the person was shown it."""


class Lost(Contract):
    """A call that was paid, or may have been, and that its run forgot when it was reset."""

    id: str = Field(max_length=300)
    """Of its activity, or the run of a team."""
    bill: Bill

    @field_validator("bill")
    @classmethod
    def _credible(cls, bill: Bill) -> Bill:
        """Anybody who can reach the server can tell a run of a reset."""
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
    """What a team tells the run above it: that it waits, or that it goes on."""

    team: str
    """The team's run."""
    number: int
    """Of what it tells, from 1: the latest counts."""
    why: str = Field("", max_length=500)
    """What it waits for; empty: it goes on."""
    at: AwareDatetime


class Undone(Contract):
    """What a reset undid: told by whoever resets a run, to the run as it goes on."""

    execution: str = Field(max_length=100)
    """Temporal's id of the execution that was left."""
    at: AwareDatetime
    """When it was reset: until then, from the point it was reset to, the deadline stood still."""
    lost: tuple[Lost, ...] = ()
    seal: str = Field("", max_length=100)
    """`seal_word` of a word that only the sender knows: who shows the word can take this back."""
    withdrawn: bool = False
    """Whether the server refused the reset after it was told: then nothing was undone."""
    word: str = Field("", max_length=100)
    """Of what is withdrawn, the word of its seal: anybody can read a history, and send Signals."""
    by: str = ""
