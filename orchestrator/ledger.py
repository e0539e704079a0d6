"""What a run has reserved and spent: pure, driven by the workflow, so that it survives crashes and
has no race.

Invariant, always: spent + reserved <= cap, for dollars, calls and tokens. Work may not touch what
is kept for the
synthesis. A reservation covers the worst case of exactly one paid call; the worker refuses to send
what could cost
more than was reserved, so settling never exceeds a reservation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from orchestrator.contracts import Bill, Limits, Usage


@dataclass(frozen=True)
class Amount:
    """Dollars, paid calls and tokens."""

    dollars: Decimal = Decimal(0)
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.dollars + other.dollars, self.calls + other.calls, self.tokens + other.tokens
        )

    def __le__(self, other: Amount) -> bool:
        return (
            self.dollars <= other.dollars
            and self.calls <= other.calls
            and self.tokens <= other.tokens
        )


class DoesNotFit(Exception):
    """A reservation was made without asking `fits` first: a bug of the caller."""


@dataclass(frozen=True)
class Ledger:
    """Immutable; every operation returns the next ledger."""

    cap: Amount
    kept: Amount = Amount()
    """Of the cap, what only the synthesis may use."""
    spent: Amount = Amount()
    reserved: Mapping[str, Amount] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    unpriced: bool = False
    """Whether a call was settled whose price nobody knows: then `spent.dollars` is only a part."""

    @classmethod
    def under(cls, limits: Limits) -> Ledger:
        return cls(Amount(limits.dollars, limits.model_calls, limits.tokens))

    @property
    def held(self) -> Amount:
        """All open reservations together."""
        return sum(self.reserved.values(), Amount())

    def fits(self, amount: Amount, *, keep: bool = True) -> bool:
        """Whether a reservation can be made; `keep` False for the synthesis alone."""
        kept = self.kept if keep else Amount()
        return self.spent + self.held + amount + kept <= self.cap

    def reserve(self, call_id: str, amount: Amount, *, keep: bool = True) -> Ledger:
        """Set aside the worst case of a call. DoesNotFit if the caller did not ask first."""
        if call_id in self.reserved or not self.fits(amount, keep=keep):
            raise DoesNotFit(f"{call_id}: {amount} does not fit")
        return replace(self, reserved={**self.reserved, call_id: amount})

    def settle(self, call_id: str, bill: Bill) -> Ledger:
        """Replace a reservation by what was paid."""
        paid = Amount(bill.dollars or Decimal(0), bill.calls, bill.usage.total)
        return replace(
            self._without(call_id),
            spent=self.spent + paid,
            usage=self.usage + bill.usage,
            unpriced=self.unpriced or (bill.calls > 0 and bill.dollars is None),
        )

    def settle_unknown(self, call_id: str, bill: Bill = Bill()) -> Ledger:  # noqa: B008
        """A call that may have been billed: it counts at its full reservation, whatever usage is
        known. `bill.dollars` is None when its model has no price.
        """
        amount = self.reserved[call_id]
        return replace(
            self._without(call_id),
            spent=self.spent + amount,
            usage=self.usage + bill.usage,
            unpriced=self.unpriced or (bill.calls > 0 and bill.dollars is None),
        )

    def release(self, call_id: str) -> Ledger:
        """A call that was surely not billed."""
        return self._without(call_id)

    def raised(self, limits: Limits) -> Ledger:
        """The same ledger under another cap; refused (DoesNotFit) below what is spent and
        reserved.
        """
        cap = Amount(limits.dollars, limits.model_calls, limits.tokens)
        if not (self.cap <= cap or self.spent + self.held + self.kept <= cap):
            raise DoesNotFit("the new cap is below what is already spent, reserved and kept")
        return replace(self, cap=cap)

    def _without(self, call_id: str) -> Ledger:
        rest = {key: amount for key, amount in self.reserved.items() if key != call_id}
        return replace(self, reserved=rest)
