"""What a run has reserved and spent: pure, driven by the workflow, so that it survives crashes and
has no race.

Invariant, always: spent + reserved <= cap, for dollars, calls and tokens. What a reset has lost
counts like what was spent, except that it can be more than the cap left room for: then nothing is
reserved any more. Work may not touch what is kept for the synthesis. A reservation covers the worst
case of exactly one paid call; the worker refuses to send what could cost more than was reserved, so
settling never exceeds a reservation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from holdfast.contracts import Bill, Limits, Lost, Usage
from holdfast.contracts.replacing import replace


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

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            self.dollars - other.dollars, self.calls - other.calls, self.tokens - other.tokens
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
    held: Amount = Amount()
    """All open reservations together."""
    usage: Usage = field(default_factory=Usage)
    assumed: Decimal = Decimal(0)
    """Of `spent.dollars`, what is the worst case of calls whose answers were lost."""
    unpriced: bool = False
    """Whether a call was settled whose price nobody knows: then `spent.dollars` is only a part."""
    lost: tuple[Lost, ...] = ()
    """What was paid before a reset and is not in `spent`, because no answer was found again."""

    @classmethod
    def under(cls, limits: Limits) -> Ledger:
        return cls(Amount(limits.dollars, limits.model_calls, limits.tokens))

    @property
    def paid(self) -> Amount:
        """All that is gone: what was spent, and what was lost by a reset."""
        return sum((_amount(each.bill) for each in self.lost), self.spent)

    @property
    def all_usage(self) -> Usage:
        """Of all that is gone."""
        return sum((each.bill.usage for each in self.lost), self.usage)

    @property
    def all_assumed(self) -> Decimal:
        """Of all that is gone, what is the worst case of calls whose answers were lost."""
        return sum((each.bill.assumed for each in self.lost), self.assumed)

    @property
    def all_priced(self) -> bool:
        """Whether the price of all that is gone is known."""
        return not (self.unpriced or any(each.bill.dollars is None for each in self.lost))

    def fits(self, amount: Amount, *, keep: bool = True) -> bool:
        """Whether a reservation can be made; `keep` False for the synthesis alone."""
        kept = self.kept if keep else Amount()
        return self.paid + self.held + amount + kept <= self.cap

    def reserve(self, call_id: str, amount: Amount, *, keep: bool = True) -> Ledger:
        """Set aside the worst case of a call. DoesNotFit if the caller did not ask first."""
        if call_id in self.reserved or not self.fits(amount, keep=keep):
            raise DoesNotFit(f"{call_id}: {amount} does not fit")
        reserved = {**self.reserved, call_id: amount}
        return replace(self, reserved=reserved, held=self.held + amount)

    def settle(self, call_id: str, bill: Bill, tokens: int = 0) -> Ledger:
        """Replace a reservation by what was paid. Of a bill that is not final only the dollars are
        right: it counts at the calls and tokens that were reserved, if those are more. `tokens`:
        what it counts at where no usage tells, as of a turn that an agent has lost.
        """
        reserved, tokens = self.reserved[call_id], max(tokens, bill.usage.total)
        if not bill.final:
            tokens = max(tokens, reserved.tokens)
        paid = Amount(bill.dollars or Decimal(0), bill.calls, tokens)
        return replace(
            self._without(call_id, bill),
            spent=self.spent + paid,
            usage=self.usage + bill.usage,
            assumed=self.assumed + bill.assumed,
            unpriced=self.unpriced or (bill.calls > 0 and bill.dollars is None),
        )

    def settle_unknown(self, call_id: str, bill: Bill = Bill()) -> Ledger:  # noqa: B008
        """A call that may have been billed: it counts at its full reservation, whatever usage is
        known. `bill.dollars` is None when its model has no price.
        """
        amount = self.reserved[call_id]
        return replace(
            self._without(call_id, bill),
            spent=self.spent + amount,
            usage=self.usage + bill.usage,
            assumed=self.assumed + amount.dollars,
            unpriced=self.unpriced or (bill.calls > 0 and bill.dollars is None),
        )

    def release(self, call_id: str) -> Ledger:
        """A call that was surely not billed."""
        return self._without(call_id)

    def raised(self, limits: Limits) -> Ledger:
        """The same ledger under another cap; DoesNotFit below what is spent and reserved."""
        cap = Amount(limits.dollars, limits.model_calls, limits.tokens)
        if not (self.cap <= cap or self.paid + self.held + self.kept <= cap):
            raise DoesNotFit("the new cap is below what is already spent, reserved and kept")
        return replace(self, cap=cap)

    def reset(self, lost: tuple[Lost, ...]) -> Ledger:
        """Count what a reset has lost."""
        return replace(self, lost=(*self.lost, *lost))

    def not_reset(self, lost: tuple[Lost, ...]) -> Ledger:
        """Take back what was said to be lost, each once: another reset may have lost the same."""
        kept = list(self.lost)
        for each in lost:
            if each in kept:
                kept.remove(each)
        return replace(self, lost=tuple(kept))

    def _without(self, call_id: str, bill: Bill = Bill()) -> Ledger:  # noqa: B008
        rest = {key: amount for key, amount in self.reserved.items() if key != call_id}
        held = self.held - self.reserved[call_id] if rest else Amount()
        lost = _found_again(self.lost, call_id, bill)
        return replace(self, reserved=rest, held=held, lost=lost)


def _amount(bill: Bill) -> Amount:
    return Amount(bill.dollars or Decimal(0), bill.calls, bill.usage.total)


def _found_again(lost: tuple[Lost, ...], call_id: str, bill: Bill) -> tuple[Lost, ...]:
    """What stays lost when a bill of before the reset comes in: it is one of those of its call, if
    it can be told which, the same or else an unknown one.
    """
    own = [each for each in lost if each.id == call_id] if bill.earlier else []
    same = [each for each in own if each.bill.dollars == bill.dollars and bill.usage.total]
    found = next(iter((*same, *(each for each in own if each.bill.assumed))), None)
    return tuple(each for each in lost if each is not found)
