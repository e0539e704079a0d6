"""How a run stands in lists, which read no history: its search attributes and its memo. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from temporalio.common import SearchAttributeUpdate

from holdfast.contracts.remarks import SEVERITIES
from holdfast.contracts.search import (
    DOLLARS,
    MEMO_ASSUMED,
    MEMO_DOLLARS,
    MEMO_PLAN,
    MEMO_REMARKS,
    MEMO_STATUS,
    MEMO_TOOK,
    MEMO_WHY,
    OUTAGE,
    PLAN,
    PLAYBOOK,
    REQUESTER,
    STATUS,
    UNPRICED,
    WAITING,
)
from holdfast.ledger.ledger import Amount
from holdfast.rendering.remarks import by_severity
from holdfast.rendering.running import waits
from holdfast.rules import past, templates
from holdfast.rules.reporting import status_of
from holdfast.state.moves import StopReason
from holdfast.state.run import State

_WORDS: Mapping[StopReason, str] = {
    "budget": "cap",
    "deadline": "deadline",
    "endpoint": "endpoint",
    "no json": "no JSON",
    "refused": "goal refused",
    "small cap": "cap too small",
    "unprepared": "not prepared",
}
"""What stopped a run that failed, as a list has room for it."""


def search_attributes(state: State) -> list[SearchAttributeUpdate[Any]]:
    """Return what a run is found by at the server: where it is, what it cost, whom it waits for."""
    values: list[SearchAttributeUpdate[Any]] = [
        STATUS.value_set(where(state)),
        WAITING.value_set(waits(state)),
    ]
    if state.goal.playbook:
        values.append(PLAYBOOK.value_set(state.goal.playbook))
    if state.goal.requester:
        values.append(REQUESTER.value_set(state.goal.requester))
    if state.phase == "closed" and state.ledger.all_priced:
        values.append(DOLLARS.value_set(float(state.ledger.paid.dollars)))
    if state.phase == "closed" and (source := templates.source_of_plan(state)):
        values.append(PLAN.value_set(source))
    return values


def stands(state: State) -> bool:
    """True if what lists say of the price holds for a while: it is over, or in an outage."""
    return where(state) == OUTAGE or state.phase == "closed"


def where(state: State) -> str:
    """Return the status that a run is found by."""
    if state.phase == "closed":
        return status_of(state)
    return OUTAGE if state.out_of_reach else state.phase


def memo(state: State) -> dict[str, str]:
    """Return how a run went, for lists, which read no history. `dollars` is a decimal number, empty
    if no model was asked, "unpriced" where no price is known; `why` says in a word or two what
    stopped a run that failed; `remarks` has the counts of a review's verdict.
    """
    ledger = state.ledger
    # Rows of maps are no calls of the run.
    asked = ledger.paid + ledger.held != Amount()
    dollars = str(ledger.paid.dollars + ledger.held.dollars) if ledger.all_priced else UNPRICED
    closed = state.phase == "closed"
    went = templates.how_it_went(state, status_of(state)) if closed else ""
    took = past.tell_run(state) if closed else ""
    return {
        **({MEMO_PLAN: went} if went else {}),
        **({MEMO_TOOK: took} if took else {}),
        MEMO_STATUS: status_of(state),
        MEMO_DOLLARS: dollars if asked else "",
        MEMO_ASSUMED: str(ledger.all_assumed + ledger.held.dollars),
        MEMO_WHY: _in_a_word(state),
        MEMO_REMARKS: _remarks(state),
    }


def _remarks(state: State) -> str:
    """Return the counts of a review's verdict, as `6 critical, 1 warning`, or that there are none;
    empty if it is not a review.
    """
    synthesis = state.finishing.synthesis
    data = synthesis.data if synthesis else {}
    counts = data.get("by_severity")
    if not isinstance(counts, dict):
        return ""
    known = Counter({kind: n for kind in SEVERITIES if isinstance(n := counts.get(kind), int)})
    looked = data.get("looked_at") or data.get("agents")
    said = by_severity(known) or ("no remarks" if looked else "nothing looked at")
    return f"{said}, not whole" if data.get("lacks") else said


def _in_a_word(state: State) -> str:
    """Return what stopped a run that failed; empty if it did not fail, or nothing stopped it."""
    if state.stop is None or status_of(state) != "failed":
        return ""
    if state.stopped_by("budget") and not state.ledger.paid.calls:
        return "cap too small"
    return _WORDS.get(state.stop.reason, "")
