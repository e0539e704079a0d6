"""Turn what a person sent by a form of the live page into an Order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from holdfast.client.orders import about_rows, supply_order
from holdfast.client.planned import Waiting
from holdfast.contracts import Limits, Order, Plan
from holdfast.contracts.view import RunView
from holdfast.errors import Refused
from holdfast.intake import plans
from holdfast.rendering.preview import price, totals
from holdfast.state.run import State
from holdfast.untrusted.reading import NotPlain, from_json

BARE = ("pause", "resume")
OF_SUBTASK = ("answer", "retry", "hand", "supply", "skip")
NEEDS_WORDS = {"answer": "the answer", "supply": "the finding"}
OF_ROWS = ("retry", "supply", "skip")
OF_CALL = ("approve", "decline")
_AMOUNT = re.compile(r"\$?(?=\.?[0-9])([0-9]{0,7}(?:\.[0-9]{0,20})?)")
"""Decimal itself takes more: `1_0`, digits of every script."""


def order_of(command: str, given: Mapping[str, str], view: RunView) -> Order:
    """Return the order; Refused if it is none. Whether it makes sense now, the run itself says."""
    text, subtask = given.get("text", "").strip(), given.get("subtask", "")
    if command in BARE:
        return Order()
    if command in OF_CALL:
        return Order(call=_number(given.get("call", "0")), text=text)
    if command == "reject":
        return Order(text=text)
    if command in OF_ROWS and "rows" in given:
        return _of_rows(command, subtask, given)
    if command in OF_SUBTASK:
        if command in NEEDS_WORDS and not text:
            raise Refused(f"{NEEDS_WORDS[command]} is empty; write one")
        return Order(subtask_id=subtask, text=text, role=given.get("role", ""))
    if command == "raise_cap":
        dollars = dollars_of(given.get("dollars", ""))
        caps = Limits(dollars=dollars, model_calls=view.model_calls_cap, tokens=view.tokens_cap)
        return Order(limits=caps)
    raise Refused(f"{command!r:.40} is not an order of this page")


def _of_rows(command: str, subtask: str, given: Mapping[str, str]) -> Order:
    """Return an order about rows of a map; none of them named is never the whole subtask."""
    rows = given["rows"].strip()
    if not rows:
        raise Refused("no row is named; write the ids of items, or failed")
    if command != "supply":
        return Order(subtask_id=subtask, **about_rows(rows))
    try:
        value = from_json(given.get("value", ""))
    except NotPlain as error:
        raise Refused(f'the result: {error}; write JSON, a text as "text"') from error
    return supply_order(subtask, row=rows, value=value)


@dataclass(frozen=True)
class Changed:
    plan: Plan
    price: str


def changed_plan(state: State, text: str) -> Changed:
    """Return the plan in a text. Refused with all its mistakes, if no plan waits, or if it is as
    it was.
    """
    waiting = Waiting.of(state)
    plan = waiting.checked(plans.parse_plan(text, "the plan", as_yaml=True), "the plan")
    if plan == waiting.plan:
        raise Refused("the plan is unchanged; nothing was sent")
    old, new = waiting.priced(waiting.plan), waiting.priced(plan)
    now = totals(new, state.ledger.cap.dollars)[0]
    return Changed(plan, f"Not sent yet. Before the change: {price(old)}. {now}.")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(f"{text!r:.40} is not a number of a call")
    return int(text)


def dollars_of(text: str) -> Decimal:
    """Return an amount as people type it. Refused if it is none."""
    amount = _AMOUNT.fullmatch(text.strip())
    dollars = Decimal(amount[1]) if amount else Decimal(0)
    if not 0 < dollars <= 1_000_000:
        raise Refused(f"{text!r:.40} is not an amount of dollars; write one such as 2.50")
    return dollars
