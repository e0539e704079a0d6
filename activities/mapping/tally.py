"""What comes of rows, one by one, until all are told together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal

from holdfast.activities.asking.replies import load_answer, make_reply
from holdfast.activities.mapping.wanted import Row, Wanted
from holdfast.calls.row import RowValue
from holdfast.calls.rows import Outcome, RowsDone, RowsMaterial
from holdfast.contracts import Bill, Call, Draft, ModelCard, Reply, Unreached, Usage
from holdfast.contracts.data import as_text
from holdfast.contracts.errors import OrchestrationError
from holdfast.contracts.plans import Lane
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import LANE_SHARE, at_lane, worst
from holdfast.plans import checks
from holdfast.ports import PriceOf, Store
from holdfast.text import one_line

MOST_NOTES = 5
WHY = 500
"""Characters of a reason."""
HEAVY_ROWS = 200
"""Outcomes beyond which they are written in a thread: the event loop serves every call."""

UNBOUND = 10**15
"""Tokens of a model with a price, which its dollars bound."""

Group = Literal["complete", "failed", "declined", "hopeless"]


@dataclass
class Tally:
    """What came of the rows of one activity in its lane."""

    wanted: Wanted
    material: RowsMaterial
    lane: Lane
    price: PriceOf
    """The ordinary dollars of a call, by the model that served it."""
    outcomes: list[Outcome] = field(default_factory=list)
    groups: dict[Group, list[int]] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    dollars: Decimal = Decimal(0)
    assumed: Decimal = Decimal(0)
    calls: int = 0
    earlier: int = 0
    """The part of them that the run had paid before it was reset."""
    priced: bool = True
    notes: dict[str, None] = field(default_factory=dict)
    whys: dict[str, None] = field(default_factory=dict)
    unreached: Unreached | None = None
    stopping: Literal["", "endpoint", "allowance"] = ""

    @cached_property
    def card(self) -> ModelCard:
        """The model that is asked, at the price of the lane."""
        assert self.wanted.call.model is not None
        return at_lane(self.wanted.call.model, self.lane)

    @cached_property
    def _call(self) -> Call:
        return self.wanted.call.model_copy(update={"model": self.card})

    @property
    def failed(self) -> int:
        """Answers so far that are no result."""
        return len(self.outcomes) - len(self.groups.get("complete", ()))

    def price_here(self, model: str, usage: Usage) -> Decimal | None:
        """Return the dollars of a call in this lane, by the model that served it."""
        cost = self.price(model, usage)
        return None if cost is None else cost * LANE_SHARE[self.lane]

    @cached_property
    def reserved(self) -> Amount:
        """What is reserved for all rows: dollars, or tokens of a model without a price."""
        call = self.wanted.call
        return Amount(call.ceiling, 0, UNBOUND if self.card.prices else call.token_ceiling)

    def most_of(self, row: Row) -> Amount:
        """Return the most that a row can use: a token a byte."""
        call, tokens = self.wanted.call, self.wanted.shared + row.size
        hour = self.material.caching == "1h"
        dollars = worst(self.card, tokens, call.max_output, hour=hour)
        return Amount(dollars or Decimal(0), 0, tokens + call.max_output)

    def take(self, row: Row, kept: str, *, earlier: bool = False) -> Decimal:
        """Take the recorded answer of a row. Return its dollars. Raise PossiblyBilled if it cannot
        be read. `earlier`: it was sent before the run was reset.
        """
        reply = make_reply(self._call, self.wanted.shape, kept, self.price_here)
        outcome, group = self._judge(row, reply)
        bill = reply.bill.model_copy(update={"earlier": earlier})
        cost = self._pay(bill, self.most_of(row))
        dollars = None if cost is None or row.paid is None else row.paid + cost
        update: dict[str, object] = {"dollars": dollars, "tokens": reply.bill.usage.total}
        if group != "complete":
            update["raw"] = load_answer(kept).text
        self._keep(outcome.model_copy(update=update), group)
        return cost or Decimal(0)

    def refuse(self, row: Row, why: str) -> None:
        """Take that the endpoint will never take a row. It costs nothing."""
        self._keep(self._outcome(row, why), "hopeless")

    def lose(self, row: Row, error: OrchestrationError) -> Decimal:
        """Take that a row was sent and that its answer will never come. Return what it counts."""
        found = [each for each in error.details if isinstance(each, Bill)]
        bill = found[0] if found else Bill(calls=1, dollars=None, final=False)
        most = self.most_of(row)
        cost = self._pay(bill.model_copy(update={"calls": 1}), most)
        if cost is None and not bill.usage.total:
            # A model without a price is held by its tokens.
            self.usage += Usage(input_tokens=most.tokens)
        self.lost.append(row.n)
        self._note_why(error.message)
        return cost or Decimal(0)

    def leave(self, row: Row, why: str) -> None:
        """Take that a row was not asked, or surely cost nothing."""
        self.left.append(row.n)
        self._note_why(why)

    async def done(self, store: Store) -> RowsDone:
        """Return what came of all rows. The outcomes are kept in the store."""
        digest = ""
        if self.outcomes:
            lines = sorted(self.outcomes, key=lambda each: each.n)
            many = len(lines) > HEAVY_ROWS
            blob = await asyncio.to_thread(_write, lines) if many else _write(lines)
            digest = await store.put(blob)
        found = self.groups
        return RowsDone(
            outcomes=digest,
            complete=len(found.get("complete", ())),
            failed=tuple(sorted(found.get("failed", ()))),
            declined=tuple(sorted(found.get("declined", ()))),
            hopeless=len(found.get("hopeless", ())),
            lost=tuple(sorted(self.lost)),
            left=tuple(sorted(self.left)),
            bill=Bill(
                model=self.card.id,
                calls=self.calls,
                usage=self.usage,
                dollars=self.dollars if self.priced else None,
                note="; ".join([*self.notes][:MOST_NOTES]),
                assumed=self.assumed,
                earlier=0 < self.calls <= self.earlier,
            ),
            cached=self.usage.cache_read_tokens,
            why="; ".join([*self.whys][:MOST_NOTES]),
            unreached=self.unreached,
            stopping=self.stopping,
            finished=datetime.now(UTC),
        )

    def _pay(self, bill: Bill, most: Amount) -> Decimal | None:
        """Count what a row cost: its bill, and no less than its own reservation where that is not
        final. None if the model has no price.
        """
        self.calls += bill.calls
        self.earlier += bill.calls if bill.earlier else 0
        self.usage += bill.usage
        if bill.note:
            self.notes[bill.note] = None
        if not self.card.prices and bill.dollars is None:
            self.priced = False
            return None
        cost = bill.dollars
        if cost is None or not bill.final:
            cost = max(cost or Decimal(0), most.dollars)
            self.assumed += cost
        self.dollars += cost
        return cost

    def _judge(self, row: Row, reply: Reply[RowValue]) -> tuple[Outcome, Group]:
        value, problem = reply.value, reply.problem
        if problem is not None or value is None:
            why = problem.why if problem else "it has no answer"
            return self._outcome(row, why), "failed"
        if value.status == "failed":
            why = value.why or "its model gave no reason"
            # What the item itself says against a check no stronger model cures.
            return self._outcome(row, why), "hopeless" if row.checked else "declined"
        if why := self._check(value):
            return self._outcome(row, why).model_copy(update={"checked": True}), "failed"
        outcome = self._outcome(row, "")
        return outcome.model_copy(update={"status": "complete", "result": value.result}), "complete"

    def _check(self, value: RowValue) -> str:
        """Return what the checks of the subtask say against a result; empty: nothing."""
        wanted = self.material.work.subtask.checks
        if not wanted:
            return ""
        data = value.result if isinstance(value.result, dict) else {}
        text = as_text(data) if data else str(value.result)
        return "; ".join(checks.verdicts(wanted, Draft(content=text, data=data)))

    def _outcome(self, row: Row, why: str) -> Outcome:
        """Return the outcome of a row that has failed."""
        return Outcome(
            n=row.n,
            id=row.id,
            status="failed",
            why=one_line(why[:WHY]),
            tier=self.wanted.call.tier,
            tries=row.tries + 1,
            dollars=row.paid,
        )

    def _keep(self, outcome: Outcome, group: Group) -> None:
        self.outcomes.append(outcome)
        self.groups.setdefault(group, []).append(outcome.n)

    def _note_why(self, why: str) -> None:
        if why:
            self.whys[one_line(why[:WHY])] = None


def row_call(call: Call, most: Amount) -> Call:
    """Return the call of one row, which may cost no more than this."""
    return call.model_copy(update={"ceiling": most.dollars, "token_ceiling": most.tokens})


def _write(outcomes: Iterable[Outcome]) -> bytes:
    return b"".join(each.model_dump_json().encode() + b"\n" for each in outcomes)
