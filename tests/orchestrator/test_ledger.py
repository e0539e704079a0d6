"""The ledger: random sequences of what can happen to it, and its edges."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from holdfast.contracts import MICRODOLLAR, Bill, Limits, Usage
from holdfast.ledger.ledger import Amount, DoesNotFit, Ledger

AMOUNTS = st.builds(
    Amount,
    st.decimals(0, 3, places=6),
    st.just(1),
    st.integers(0, 5_000),
)


class Books(RuleBasedStateMachine):
    """Whatever is reserved, settled, released or raised, in any order: spent + reserved <= cap, and
    what is kept for the synthesis is touched by the synthesis alone.
    """

    calls = Bundle("calls")
    teams = Bundle("teams")

    @initialize(
        dollars=st.decimals(0, 10, places=2), calls=st.integers(0, 8), tokens=st.integers(0, 20_000)
    )
    def open(self, dollars: Decimal, calls: int, tokens: int) -> None:
        self.ledger = Ledger.under(Limits(dollars=dollars, model_calls=calls, tokens=tokens))
        self.spent = Amount()
        self.assumed = Decimal(0)
        self.open_calls: dict[str, Amount] = {}
        self.below: dict[str, Ledger] = {}
        """Of the teams at work."""
        self.number = 0
        self.synthesizing = False

    @rule(kept=AMOUNTS)
    def keep(self, kept: Amount) -> None:
        """As `prepare` does it: before anything is reserved."""
        if not self.number and kept <= self.ledger.cap:
            self.ledger = Ledger(self.ledger.cap, kept)

    @rule(target=calls, amount=AMOUNTS, keep=st.booleans())
    def reserve(self, amount: Amount, keep: bool) -> object:
        self.number += 1
        call_id = f"call-{self.number}"
        kept = self.ledger.kept if keep else Amount()
        total = sum(self.open_calls.values(), self.spent) + amount + kept
        if not total <= self.ledger.cap:
            assert not self.ledger.fits(amount, keep=keep)
            with pytest.raises(DoesNotFit):
                self.ledger.reserve(call_id, amount, keep=keep)
            return multiple()
        self.ledger = self.ledger.reserve(call_id, amount, keep=keep)
        self.open_calls[call_id] = amount
        self.synthesizing = self.synthesizing or not keep
        return call_id

    @rule(call_id=calls)
    def reserve_again(self, call_id: str) -> None:
        if call_id in self.open_calls:
            with pytest.raises(DoesNotFit):
                self.ledger.reserve(call_id, Amount())

    @rule(call_id=consumes(calls), share=st.sampled_from((0, 1, 3, 4)))
    def settle(self, call_id: str, share: int) -> None:
        amount = self.open_calls.pop(call_id)
        paid = Amount(
            (amount.dollars * share / 4).quantize(Decimal("0.000001")),
            1,
            amount.tokens * share // 4,
        )
        usage = Usage(input_tokens=paid.tokens)
        self.ledger = self.ledger.settle(call_id, Bill(calls=1, usage=usage, dollars=paid.dollars))
        self.spent += paid

    @rule(call_id=consumes(calls))
    def settle_unknown(self, call_id: str) -> None:
        amount = self.open_calls.pop(call_id)
        self.spent += amount
        self.assumed += amount.dollars
        whole = Bill(
            calls=amount.calls, dollars=amount.dollars, assumed=amount.dollars, final=False
        )
        self.ledger = self.ledger.settle(call_id, whole)

    @rule(call_id=consumes(calls))
    def release(self, call_id: str) -> None:
        self.open_calls.pop(call_id)
        self.ledger = self.ledger.release(call_id)

    @rule(target=teams, part=st.sampled_from((1, 2)))
    def start_team(self, part: int) -> object:
        """A team gets a part of what is free as its own cap."""
        taken = sum(self.open_calls.values(), self.spent) + self.ledger.kept
        free = self.ledger.cap
        dollars = (free.dollars - taken.dollars) / part
        slice_ = Amount(
            dollars.quantize(MICRODOLLAR, rounding=ROUND_DOWN),
            (free.calls - taken.calls) // part,
            (free.tokens - taken.tokens) // part,
        )
        if not Amount() <= slice_:
            return multiple()
        self.number += 1
        team_id = f"team-{self.number}"
        self.ledger = self.ledger.reserve(team_id, slice_)
        self.open_calls[team_id] = slice_
        self.below[team_id] = Ledger.under(
            Limits(dollars=slice_.dollars, model_calls=slice_.calls, tokens=slice_.tokens)
        )
        assert self.below[team_id].cap == slice_
        return team_id

    @rule(team_id=teams, amount=AMOUNTS, share=st.sampled_from((0, 2, 4, None)))
    def team_asks(self, team_id: str, amount: Amount, share: int | None) -> None:
        """A call of the team comes back, or stays open (None)."""
        below = self.below[team_id]
        self.number += 1
        call_id = f"call-{self.number}"
        if not below.fits(amount):
            return
        below = below.reserve(call_id, amount)
        if share is not None:
            dollars = (amount.dollars * share / 4).quantize(MICRODOLLAR)
            usage = Usage(input_tokens=amount.tokens * share // 4)
            below = below.settle(call_id, Bill(calls=1, usage=usage, dollars=dollars))
        self.below[team_id] = below

    @rule(team_id=consumes(teams))
    def team_ends(self, team_id: str) -> None:
        """It closes, or is cut: its open calls count in full, and its report settles the slice."""
        below = self.below.pop(team_id)
        for call_id in tuple(below.reserved):
            open_call = below.reserved[call_id]
            usage = Usage(input_tokens=open_call.tokens)
            bill = Bill(calls=1, dollars=open_call.dollars, assumed=open_call.dollars, usage=usage)
            below = below.settle(call_id, bill)
        bill = Bill(
            calls=below.paid.calls,
            usage=below.all_usage,
            dollars=below.paid.dollars,
            assumed=below.all_assumed,
        )
        slice_ = self.open_calls.pop(team_id)
        self.ledger = self.ledger.settle(team_id, bill)
        assert below.paid <= slice_, "a team never spends more than its slice"
        self.spent += below.paid
        self.assumed += below.all_assumed

    @rule(team_id=consumes(teams))
    def team_is_lost(self, team_id: str) -> None:
        """It closed without a report: its whole slice counts."""
        self.below.pop(team_id)
        self.settle_unknown(team_id)

    @rule(dollars=st.decimals(0, 20, places=2), calls=st.integers(0, 16))
    def raise_cap(self, dollars: Decimal, calls: int) -> None:
        limits = Limits(dollars=dollars, model_calls=calls, tokens=40_000)
        bound = self.ledger.spent + self.ledger.held + self.ledger.kept
        cap = Amount(dollars, calls, 40_000)
        if bound <= cap or self.ledger.cap <= cap:
            self.ledger = self.ledger.raise_cap(limits)
            assert self.ledger.cap == Amount(dollars, calls, 40_000)
        else:
            with pytest.raises(DoesNotFit):
                self.ledger.raise_cap(limits)

    @invariant()
    def within_the_cap(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert self.ledger.spent + self.ledger.held <= self.ledger.cap
        if not self.synthesizing:
            assert self.ledger.spent + self.ledger.held + self.ledger.kept <= self.ledger.cap

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert dict(self.ledger.reserved) == self.open_calls
        assert self.ledger.spent == self.spent
        assert self.ledger.assumed == self.assumed


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, database=None)


def test_a_call_that_cost_more_than_was_reserved_shows_and_stops_what_follows() -> None:
    ledger = Ledger.under(Limits(dollars=Decimal(1), model_calls=5)).reserve(
        "work-a-1", Amount(Decimal("0.5"), 1, 100)
    )
    ledger = ledger.settle(
        "work-a-1", Bill(calls=1, usage=Usage(output_tokens=300), dollars=Decimal("1.2"))
    )
    assert ledger.spent == Amount(Decimal("1.2"), 1, 300)
    assert not ledger.fits(Amount())


def test_what_is_kept_serves_the_synthesis_alone() -> None:
    ledger = Ledger(Amount(Decimal(2), 2, 100), kept=Amount(Decimal(1), 1, 50))
    big = Amount(Decimal("1.5"), 1, 60)
    with pytest.raises(DoesNotFit, match="work-a-1"):
        ledger.reserve("work-a-1", big)
    assert ledger.reserve("synthesize-1", big, keep=False).held == big


def test_each_of_dollars_calls_and_tokens_is_a_cap_of_its_own() -> None:
    ledger = Ledger(Amount(Decimal(1), 1, 100))
    assert ledger.fits(Amount(Decimal(1), 1, 100))
    assert not ledger.fits(Amount(Decimal("1.000001"), 1, 100))
    assert not ledger.fits(Amount(Decimal(0), 2, 0))
    assert not ledger.fits(Amount(Decimal(0), 0, 101))


def test_one_unpriced_call_makes_the_whole_run_unpriced() -> None:
    amount = Amount(Decimal(0), 1, 10)
    ledger = Ledger.under(Limits()).reserve("a", amount).reserve("b", amount)
    assert not ledger.unpriced
    settled = ledger.settle("a", Bill(calls=1, dollars=None))
    assert settled.unpriced
    assert settled.settle("b", Bill(calls=1, dollars=Decimal(1))).unpriced


def test_what_is_known_of_a_call_without_an_answer_is_in_the_usage() -> None:
    ledger = Ledger.under(Limits()).reserve("a", Amount(Decimal("0.4"), 1, 500))
    bill = Bill(calls=1, usage=Usage(input_tokens=90), dollars=Decimal("0.4"), final=False)
    ledger = ledger.settle("a", bill)
    assert ledger.usage.input_tokens == 90
    assert ledger.spent == Amount(Decimal("0.4"), 1, 500)
