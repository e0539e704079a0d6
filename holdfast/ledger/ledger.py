"""What a run has reserved and spent. Pure and driven by the workflow, so it survives crashes and
has no race.

Invariant: spent + reserved <= cap, for dollars, calls and tokens. What a reset has lost counts as
spent and may exceed what the cap left: then nothing more can be reserved. Work may not touch what
is kept for the synthesis. A reservation covers the worst case of exactly one paid call, and the
worker refuses to send what could cost more, so settling never exceeds it.
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

    def __mul__(self, times: int) -> Amount:
        return Amount(self.dollars * times, self.calls * times, self.tokens * times)

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
    """The part of the cap that only the synthesis may use."""
    spent: Amount = Amount()
    reserved: Mapping[str, Amount] = field(default_factory=dict)
    held: Amount = Amount()
    """The sum of all open reservations."""
    usage: Usage = field(default_factory=Usage)
    assumed: Decimal = Decimal(0)
    """The part of `spent.dollars` that is the worst case of calls whose answers were lost."""
    unpriced: bool = False
    """True once a call without a known price was settled: `spent.dollars` is only a part."""
    lost: tuple[Lost, ...] = ()
    """Paid before a reset and not in `spent`, because no answer was found again."""

    @classmethod
    def under(cls, limits: Limits) -> Ledger:
        return cls(Amount(limits.dollars, limits.model_calls, limits.tokens))

    @property
    def paid(self) -> Amount:
        """Spent, and lost by a reset."""
        return sum((_amount(each) for each in self.lost), self.spent)

    @property
    def all_usage(self) -> Usage:
        """Usage of everything paid."""
        return sum((each.bill.usage for each in self.lost), self.usage)

    @property
    def all_assumed(self) -> Decimal:
        """The part of `paid.dollars` that is the worst case of calls whose answers were lost."""
        return sum((each.bill.assumed for each in self.lost), self.assumed)

    @property
    def all_priced(self) -> bool:
        """True if the price of everything paid is known."""
        return not (self.unpriced or any(each.bill.dollars is None for each in self.lost))

    def fits(self, amount: Amount, *, keep: bool = True) -> bool:
        """True if a reservation can be made; `keep` is False for the synthesis alone."""
        kept = self.kept if keep else Amount()
        return self.paid + self.held + amount + kept <= self.cap

    def reserve(self, call_id: str, amount: Amount, *, keep: bool = True) -> Ledger:
        """Reserve the worst case of a call. DoesNotFit if `fits` would have said no."""
        if call_id in self.reserved or not self.fits(amount, keep=keep):
            raise DoesNotFit(f"{call_id}: {amount} does not fit")
        reserved = {**self.reserved, call_id: amount}
        return replace(self, reserved=reserved, held=self.held + amount)

    def settle(self, call_id: str, bill: Bill, tokens: int = 0, *, rows: bool = False) -> Ledger:
        """Replace a reservation by what was paid. A bill that is not final counts at no fewer
        tokens than were reserved; its dollars are right. `tokens`: what it counts at where no usage
        says more, as for a turn that an agent lost. `rows`: it is of a map's rows, which count in
        dollars, and only without a price in tokens: the other caps bound agents and their loops.
        """
        reserved, tokens = self.reserved[call_id], max(tokens, bill.usage.total)
        if not bill.final:
            tokens = max(tokens, reserved.tokens)
        paid = Amount(bill.dollars or Decimal(0), bill.calls, tokens)
        if rows:
            paid = Amount(paid.dollars, 0, tokens if bill.dollars is None else 0)
        return replace(
            self._without(call_id, bill),
            spent=self.spent + paid,
            usage=self.usage + bill.usage,
            assumed=self.assumed + bill.assumed,
            unpriced=self.unpriced or (bill.calls > 0 and bill.dollars is None),
        )

    def release(self, call_id: str) -> Ledger:
        """Drop the reservation of a call that was surely not billed."""
        return self._without(call_id)

    def raise_cap(self, limits: Limits) -> Ledger:
        """Set another cap. DoesNotFit if it is below what is spent, reserved and kept."""
        cap = Amount(limits.dollars, limits.model_calls, limits.tokens)
        if not (self.cap <= cap or self.paid + self.held + self.kept <= cap):
            raise DoesNotFit("the new cap is below what is already spent, reserved and kept")
        return replace(self, cap=cap)

    def add_lost(self, lost: tuple[Lost, ...]) -> Ledger:
        return replace(self, lost=(*self.lost, *lost))

    def take_back(self, lost: tuple[Lost, ...]) -> Ledger:
        """Remove losses that did not happen, each once: another reset may have lost the same."""
        kept = list(self.lost)
        for each in lost:
            if each in kept:
                kept.remove(each)
        return replace(self, lost=tuple(kept))

    def _without(self, call_id: str, bill: Bill = Bill()) -> Ledger:  # noqa: B008
        rest = {key: amount for key, amount in self.reserved.items() if key != call_id}
        held = self.held - self.reserved[call_id] if rest else Amount()
        lost = _drop_found(self.lost, call_id, bill)
        return replace(self, reserved=rest, held=held, lost=lost)


def _amount(lost: Lost) -> Amount:
    bill, tokens = lost.bill, lost.bill.usage.total
    if lost.rows:
        return Amount(bill.dollars or Decimal(0), 0, tokens if bill.dollars is None else 0)
    return Amount(bill.dollars or Decimal(0), bill.calls, tokens)


def _drop_found(lost: tuple[Lost, ...], call_id: str, bill: Bill) -> tuple[Lost, ...]:
    """Return what stays lost when a bill from before the reset comes in. It stands for a loss of
    its own call: the one of the same price, else one that was assumed.
    """
    own = [each for each in lost if each.id == call_id] if bill.earlier else []
    same = [each for each in own if each.bill.dollars == bill.dollars and bill.usage.total]
    found = next(iter((*same, *(each for each in own if each.bill.assumed))), None)
    return tuple(each for each in lost if each is not found)
