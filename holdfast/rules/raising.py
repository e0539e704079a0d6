"""Raising what an open run may spend. Pure."""

from __future__ import annotations

from datetime import datetime

from holdfast.contracts import Limits, Order, policies
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount, DoesNotFit
from holdfast.rules import keeping
from holdfast.state.run import State

CAPS = ("dollars", "model_calls", "tokens")


def refusal(state: State, order: Order) -> str:
    """Why the caps of an order cannot be taken; empty: they can."""
    if order.limits is None:
        return "no limit was given; raise dollars, model_calls or tokens"
    cap, wanted = state.goal.limits, order.limits
    lower = [
        name
        for name in ("dollars", "model_calls", "tokens")
        if getattr(wanted, name) < getattr(cap, name)
    ]
    if lower:
        return f"{', '.join(lower)}: below the present cap; a cap can only be raised"
    if state.briefing is not None and state.briefing.within(wanted) != wanted:
        most = state.briefing.most_dollars
        return f"this deployment allows at most ${most:f} a run ({policies.MOST_RUN})"
    same = all(getattr(wanted, name) == getattr(cap, name) for name in CAPS)
    return "that is the present cap; name a higher one" if same else ""


def raised(state: State, order: Order, _now: datetime) -> State:
    """The state with higher caps; what waits for money goes on."""
    assert order.limits is not None
    raised: dict[str, object] = {name: getattr(order.limits, name) for name in CAPS}
    limits: Limits = state.goal.limits.model_copy(update=raised)
    try:
        ledger = state.ledger.raise_cap(limits)
    except DoesNotFit:
        return state
    goal = state.goal.model_copy(update={"limits": limits})
    if state.ledger.kept != Amount() and state.briefing and state.phase != "synthesizing":
        ledger = keeping.grow_kept(ledger, limits, state.briefing)
    return replace(state, goal=goal, ledger=ledger, short="", short_since=None)
